"""Every toolset's record: its name, the document it comes from, what agents are told about it.

Their operations are in the modules that `catalog.py` names, and are loaded when their toolset is on.
"""

from __future__ import annotations

from handrail.operation import Toolset

INTROSPECTION = Toolset(
    name="introspection",
    family="registry",
    purpose="What this server is and which tools it has on.",
    flag="--enable-mcp-introspection",
)
GUIDE = Toolset(
    name="guide",
    family="guide",
    purpose="Follow a guide step by step and have each step's output checked.",
    instructions=(
        "Before non-trivial work pick a guide with workflow_list, then loop: workflow_next, do the step, "
        "workflow_validate. Pass completedSteps and context; only isComplete ends it."
    ),
)
JOURNAL = Toolset(
    name="journal",
    family="journal",
    purpose="What was done and why, with the exact files each task changed.",
    instructions=(
        "start_workflow once, start_task before you change files, complete_task after. It finds the changed files; "
        "log_* only what matters later, empty lists are fine."
    ),
)
WORKFLOW = Toolset(
    name="workflow",
    family="plan",
    purpose="Durable workflows: what is to be done, its plan and its tasks.",
)
TASK = Toolset(name="task", family="plan", purpose="The tasks of a plan: their own plans, states and outcomes.")
CHECKPOINT = Toolset(
    name="checkpoint",
    family="plan",
    purpose="Progress, decisions and errors recorded on a task.",
)
CONTEXT = Toolset(
    name="context",
    family="plan",
    purpose="Everything needed to continue a task, within a token budget.",
    instructions=(
        "At the start and after a cleared or compacted conversation call task_load_context. It finds the open task "
        "and returns all you need to continue."
    ),
)
ORCHESTRATION = Toolset(
    name="orchestration",
    family="plan",
    purpose="What is next, what is blocked, how far the work is.",
    instructions="workflow_next_tasks says what is next.",
)
WORKSPACE = Toolset(
    name="workspace",
    family="plan",
    purpose="Worktrees for parallel tasks, predicted conflicts, reserved paths.",
)
REPOSITORY = Toolset(
    name="repository",
    family="plan",
    purpose="The repositories one store serves.",
)
TEMPLATE = Toolset(
    name="template",
    family="plan",
    purpose="Reusable plans with variables to fill in.",
)
AGENT = Toolset(
    name="agent",
    family="plan",
    purpose="Who works here, and which task is whose.",
    instructions="With others: agent_register, task_claim before you touch a task. Claim with start.",
)
MESSAGE = Toolset(
    name="message",
    family="plan",
    purpose="Messages between agents and with the human: threads, priorities, waiting for what arrives.",
    instructions="unread_messages in a reply: call message_list. With wait_ms it waits for some.",
)
PIPELINE = Toolset(
    name="pipeline",
    family="pipeline",
    purpose="From a request to a pull request in phases: one typed action at a time, reviews and gates that hold.",
    instructions=(
        "pipeline_init, then do exactly what pipeline_next_action says. Between them, "
        "pipeline_init_with_context brings what the person confirmed; gates are theirs to answer."
    ),
)
RESOURCES = Toolset(
    name="resources",
    family="registry",
    purpose="Everything under sc:// addresses: plans as graphs with their versions, events, logs, boards.",
    flag="--enable-resources",
)
EVENTS = Toolset(
    name="events",
    family="registry",
    purpose="The bus of events and the logs: everything that happens, in order, with cursors that outlive the process.",
    flag="--enable-events-bus",
)
BLACKBOARD = Toolset(
    name="blackboard",
    family="registry",
    purpose="Boards: values under keys for all agents to read, set on a condition, and watch.",
    instructions="bb_set shares a value. bb_query a board, then bb_watch it from its latest_version.",
)
IDEMPOTENCY = Toolset(
    name="idempotency",
    family="registry",
    purpose="idempotency_key on every tool that writes: a call sent twice is done once.",
    flag="--enable-idempotency",
)
CANCELLATION = Toolset(
    name="cancellation",
    family="registry",
    purpose="Cancels what is running: calls that were given an op_id, and workflows.",
    flag="--enable-cancellation",
)
CHILDREN = Toolset(
    name="children",
    family="registry",
    purpose="Children are the registered agents: their state, role and limits. Starting processes comes later.",
    flag="--enable-child-ops-fine",
)
PLAN_LIFECYCLE = Toolset(
    name="plan-lifecycle",
    family="registry",
    purpose="A run's status, pause and resume, and a dry run of what is left or only planned.",
    flag="--enable-plan-lifecycle",
)
VALUES = Toolset(
    name="values",
    family="registry",
    purpose="A team's values, weighed against a plan: which part of it breaks which value.",
    flag="--enable-values-explain",
)
TX = Toolset(
    name="tx",
    family="registry",
    purpose="Graphs, and transactions that change them and plans: tried first, then committed all at once.",
    flag="--enable-tx",
)
DIFF_PATCH = Toolset(
    name="diff-patch",
    family="registry",
    purpose="Differences between versions of a graph or plan, and patches to it (RFC 6902, RFC 7386).",
    flag="--enable-diff-patch",
)
LOCKS = Toolset(
    name="locks",
    family="registry",
    purpose="Locks on graphs and plans that expire by themselves.",
    flag="--enable-locks",
)
BULK = Toolset(
    name="bulk",
    family="registry",
    purpose="Many changes at once, all or none: entries of boards, operations on a graph or plan.",
    flag="--enable-bulk",
)
ASSIST = Toolset(
    name="assist",
    family="registry",
    purpose="Facts, plans suggested from past work, and what led to an outcome.",
    flag="--enable-assist",
)
DYNAMIC = Toolset(
    name="dynamic",
    family="dynamic",
    purpose="Turn toolsets on while connected.",
    instructions="More tools: toolset_list, toolset_enable.",
    flag="--dynamic",
)

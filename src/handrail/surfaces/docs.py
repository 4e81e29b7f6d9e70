"""The generated reference pages: tools, commands, errors, settings, states. Functions of the catalog and of the command
line; `python -m handrail.surfaces.docs` rewrites them all, and a test keeps them equal to the code. Pages written by
hand are not touched. The one piece of prose here, when to use each toolset, is not needed by any tool at run time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from handrail.catalog import ENABLE_FLAGS, PROFILES, TOOLSETS, operations_of, whole_catalog
from handrail.domain.gates.gate import GATE_MACHINE
from handrail.domain.work.task import TASK_MACHINE
from handrail.domain.work.workflow import WORKFLOW_MACHINE
from handrail.kernel.errors import Refusal, refusal_types
from handrail.kernel.tokens import estimate_tokens
from handrail.operation import Effect, Example, Operation, PublishedOperation, Toolset
from handrail.protocol.wire import encode
from handrail.selection import published, select
from handrail.settings import setting_fields
from handrail.surfaces.command_docs import GENERATED, commands_page
from handrail.surfaces.mcp.tools import for_the_model, tool_of
from handrail.surfaces.schemas import kind_of, request_schema, response_schema

WHEN: dict[str, str] = {
    "introspection": "Once, when it wants to know what it is connected to, or why a tool is not there.",
    "guide": "Before work that has a known good order. Nothing is stored: the agent says how far it is.",
    "journal": "Around every piece of work that changes files: before the first edit and after the last.",
    "workflow": "When there is more to do than one conversation holds: the plan is written down once and outlives it.",
    "task": "While it works on one task of a plan: how it will go about it, where it stands, what came of it.",
    "checkpoint": "Whenever it learned something that the next one should not have to find out again.",
    "context": "First thing in a conversation, and again after one was cleared or compacted.",
    "orchestration": "Whenever a task has ended, to choose the next; or to tell a person how far the work is.",
    "workspace": "When several tasks are done at the same time: each gets a working copy, and meetings are foreseen.",
    "repository": "When one store serves several repositories (`--global`, or PostgreSQL).",
    "template": "When the same kind of work comes again: the plan is there, with blanks to fill in.",
    "agent": "As soon as it is not alone: it says who it is, and takes a task so that nobody else does.",
    "message": "When another agent, or the person, should know something or has to be asked.",
    "pipeline": "When a request is to become a pull request and every phase, review and gate has to hold.",
    "resources": "To read or follow anything by its address, in the way MCP itself has for it.",
    "events": "To follow what happens, from a place it remembers, without asking everybody.",
    "blackboard": "To leave a value where others find it: a result, a switch, a piece of shared state.",
    "idempotency": "When a call may be sent twice: after a lost reply, the same key gets the same answer.",
    "cancellation": "To stop a call that takes long, or to give up a whole workflow.",
    "children": "An agent that leads others looks after them so: how each stands, what it may spend.",
    "plan-lifecycle": "To hold a run still and let it go on, or to see what a plan would do before it does it.",
    "values": "Before something that cannot be taken back: does the plan break what the team holds to?",
    "tx": "To change a plan that is being worked on: try the change, look at it, then make all of it at once.",
    "diff-patch": "To see what was changed in a plan between two looks, or to change it by a patch.",
    "locks": "To keep a plan as it is while somebody thinks about it.",
    "bulk": "When many small changes should be one: all of them, or none.",
    "assist": "Before planning: what was done before in such a case. Afterwards: what led to what.",
    "dynamic": "When the tools it needs are not on: it turns them on while connected.",
}
"""When an agent uses a toolset, for readers of the pages. What agents are told is `Toolset.instructions`."""

MORE: dict[str, tuple[str, ...]] = {
    "guide": ("guides",),
    "journal": ("journal", "journal-for-people"),
    "workflow": ("states", "lifecycle"),
    "task": ("states",),
    "checkpoint": ("recovery",),
    "context": ("recovery",),
    "orchestration": ("reservations",),
    "workspace": ("worktrees", "reservations"),
    "repository": ("repositories",),
    "template": ("templates",),
    "agent": ("crew",),
    "message": ("crew",),
    "pipeline": ("pipeline", "flows", "prompts"),
    "resources": ("registry",),
    "events": ("registry",),
    "blackboard": ("registry",),
    "idempotency": ("registry",),
    "cancellation": ("registry",),
    "children": ("registry",),
    "plan-lifecycle": ("lifecycle",),
    "values": ("lifecycle",),
    "tx": ("graphs",),
    "diff-patch": ("graphs",),
    "locks": ("graphs",),
    "bulk": ("graphs",),
    "assist": ("lifecycle",),
}
"""The pages that explain the rules behind a toolset."""


def tools_page() -> str:
    """docs/tools.md: profiles, toolsets with their pages, and where each tool is."""
    lines = [
        "# Tools\n",
        GENERATED,
        "Each tool answers to `tools/call`, to its bare name as a JSON-RPC method, and to `handrail call NAME`. Tools",
        "come in toolsets, and each toolset has a page; every example on it runs in the tests, on every surface.",
        "`handrail tools` lists what is on here and what it costs.\n",
        "## Profiles\n",
        "| profile | toolsets here | tools | tokens |",
        "|---|---|---|---|",
        *(_profile_row(name) for name in PROFILES),
        "",
        "`--profile NAME` chooses a bundle, `--toolsets a,b` names toolsets in its place, and each of these adds one:",
        ", ".join(f"`--enable-{flag}`" for flag in ENABLE_FLAGS) + ".",
        "A toolset that is not in this version is left out of a profile and refused by name. Tokens are what the list",
        "of tools takes in a client's context, estimated high; [benchmarks](benchmarks.md) has it measured.\n",
        "## Toolsets\n",
        "| toolset | for | tools | tokens |",
        "|---|---|---|---|",
        *(_toolset_row(toolset) for toolset in TOOLSETS),
        "",
        "## Every tool\n",
        "| tool | does | toolset |",
        "|---|---|---|",
    ]
    for operation in sorted(whole_catalog(), key=lambda one: (one.name, one.toolset.name)):
        page = f"tools/{operation.toolset.name}.md"
        lines.append(
            f"| [`{operation.name}`]({page}#{operation.name}) | {operation.summary} | {operation.toolset.name} |"
        )
    return "\n".join(lines) + "\n"


def _profile_row(name: str) -> str:
    selection = select(profile=name, toolsets=(), enable=(), dynamic=False)
    entries = published(selection)
    cost = sum(_cost(entry, whole=selection.names == ("guide",)) for entry in entries)
    return f"| `{name}` | {', '.join(selection.names) or '–'} | {len(entries)} | {cost} |"


def _toolset_row(toolset: Toolset) -> str:
    # The anchor marks where the toolset's own section used to be on this page, so that old links still work.
    anchor = f'<a id="{toolset.name}"></a>'
    count = len(operations_of(toolset.name))
    name = f"{anchor}[{toolset.name}](tools/{toolset.name}.md)"
    return f"| {name} | {toolset.purpose} | {count} | {_toolset_cost(toolset)} |"


def _toolset_cost(toolset: Toolset) -> int:
    return sum(_cost(PublishedOperation(one.name, one), whole=False) for one in operations_of(toolset.name))


def _cost(entry: PublishedOperation, *, whole: bool) -> int:
    tool = tool_of(entry, whole=whole, as_documented=whole)
    return estimate_tokens(encode(for_the_model(tool)).decode())


def toolset_page(toolset: Toolset) -> str:
    """docs/tools/NAME.md: one toolset, what it is for and each of its tools."""
    operations = operations_of(toolset.name)
    lines = [f"# {toolset.name}\n", GENERATED, f"{toolset.purpose}\n", f"**When.** {WHEN[toolset.name]}\n"]
    if toolset.instructions:
        lines += [f"**What agents are told of it.** {toolset.instructions}\n"]
    in_profiles = [name for name in PROFILES if toolset in _selected(name)]
    profiles = "It is part of the profiles " + ", ".join(f"`{name}`" for name in in_profiles) + "."
    switch = f"`{toolset.flag}`" if toolset.flag else f"`--toolsets`, with `{toolset.name}` among the names"
    lines += [
        f"**Turned on by** {switch}. {profiles if in_profiles else 'No profile has it.'}\n",
        f"**Costs** about {_toolset_cost(toolset)} tokens of a client's context.\n",
    ]
    if toolset.name in MORE:
        pages = ", ".join(f"[{name}](../{name}.md)" for name in MORE[toolset.name])
        lines += [f"**The rules behind it:** {pages}.\n"]
    if operations:
        lines += ["| tool | does | effect |", "|---|---|---|", *map(_tool_row, operations), ""]
    else:
        lines += ["It has no tool of its own.\n"]
    for operation in operations:
        lines += _tool_section(operation)
    lines += ["[All toolsets](../tools.md)"]
    return "\n".join(lines) + "\n"


def _selected(profile: str) -> tuple[Toolset, ...]:
    return select(profile=profile, toolsets=(), enable=(), dynamic=False).toolsets


def _tool_row(operation: Operation[Any, Any]) -> str:
    return f"| [`{operation.name}`](#{operation.name}) | {operation.summary} | {_effect(operation.effect)} |"


def _effect(effect: Effect) -> str:
    return {Effect.READ: "reads", Effect.WRITE: "writes", Effect.DESTRUCTIVE: "writes, can take away"}[effect]


def _tool_section(operation: Operation[Any, Any]) -> Iterable[str]:
    schema = request_schema(operation)
    yield f"## `{operation.name}`\n"
    yield f"{operation.summary}.\n"
    if schema["properties"]:
        yield "| argument | type | required | meaning |"
        yield "|---|---|---|---|"
        for name, member in schema["properties"].items():
            required = "yes" if name in schema.get("required", ()) else ""
            yield f"| `{name}` | {kind_of(member)} | {required} | {member.get('description', '')} |"
    else:
        yield "No arguments."
    yield ""
    yield f"Result: {_members(operation)}.\n"
    if operation.refusals:
        yield "Refusals: " + ", ".join(map(_linked, operation.refusals)) + ".\n"
    yield from _example(next(example for example in operation.examples if example.response is not None))


def _members(operation: Operation[Any, Any]) -> str:
    """The members of a result or, if its shape depends on the request, those that the examples show."""
    members = response_schema(operation).get("properties")
    if members:
        return ", ".join(f"`{name}`" for name in members)
    shown = [name for example in operation.examples for name in example.response or ()]
    return ", ".join(f"`{name}`" for name in dict.fromkeys(shown)) + " and others, by what is asked"


def _example(shown: Example) -> Iterable[str]:
    after = ", ".join(f"`{name}`" for name in dict.fromkeys(name for name, _ in shown.given))
    yield f"For example, {shown.title}{f' (after {after})' if after else ''}:\n"
    yield "```json"
    yield "→ " + encode(shown.request).decode()
    yield "← " + encode(shown.response).decode()
    yield "```\n"


def _linked(refusal: type[Refusal]) -> str:
    return f"[`{refusal.code}`](../errors.md#{refusal.code.lower()})"


def errors_page() -> str:
    """docs/errors.md: the one catalogue of codes."""
    lines = [
        "# Errors\n",
        GENERATED,
        "A refusal has a stable code, a message that says what was wrong, a hint that names the next legal move, and",
        "details. Through `tools/call` it is a result with `isError: true` and `structuredContent.error`; in the bare",
        "call style a JSON-RPC error with the same object in `data`. The `guide` toolset answers with its document's",
        "numbers instead (except on 2026-07-28, which retires them; there the number is in `details.number`).\n",
        "| code | number in guide.md | meaning |",
        "|---|---|---|",
    ]
    for refusal in refusal_types():
        number = "" if refusal.number is None else str(refusal.number)
        anchor = f'<a id="{refusal.code.lower()}"></a>'
        lines.append(f"| {anchor}`{refusal.code}` | {number} | {(refusal.__doc__ or '').strip()} |")
    lines += [
        "",
        "The command line ends with 0 when it did what was asked, 1 when refused, 2 for wrong usage, 70 for a bug, 130",
        "when it was stopped with Ctrl-C, and 141 when the reader of its output closed the pipe.",
    ]
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    """docs/settings.md: every setting and where it can be given."""
    lines = [
        "# Settings\n",
        GENERATED,
        "Each setting can be given as `--set name=value`, as an environment variable, or as a line in the project's",
        "`.handrail/config.toml`; the first of these that names it wins. `handrail settings` shows what is in force.\n",
        "| setting | variable | default | meaning |",
        "|---|---|---|---|",
    ]
    for field in setting_fields():
        default = msgspec.json.encode(field.default).decode()
        lines.append(f"| `{field.name}` | `{field.variable}` | `{default}` | {field.description} |")
    lines += [
        "\n## What the project's file may do\n",
        "`.handrail/config.toml` may have come with a repository, and an agent can write it. So what it would run,",
        "reach or loosen waits until you have run `handrail trust`, which shows it and asks once; when such a value",
        "changes, it waits again. What makes Handrail stricter applies at once, and a running server follows it from",
        "its next call on; to loosen anything, you start it again. Options and variables are your own and need no",
        "trust.\n",
        "| setting | before you trust it, the file is followed | a running server hears of a change |",
        "|---|---|---|",
    ]
    lines += [
        f"| `{field.name}` | {field.caution.obeyed.value} | {field.caution.heard.value} |" for field in setting_fields()
    ]
    lines += [
        "",
        "Stricter is: `human`, `strict`, fewer `own_flows`, a smaller limit, a higher price, and evidence kept longer.",
        "A `db` outside of the project and `global_store` are refused rather than ignored while they wait; a `db`",
        "inside of the project needs no trust. What you agreed to stays the least: a file that no longer says `human`",
        "waits, too.",
    ]
    return "\n".join(lines) + "\n"


def states_page() -> str:
    """docs/states.md: the state machines, drawn from their tables."""
    lines = [
        "# States\n",
        GENERATED,
        "Which state may follow which. A call that asks for another is refused with `ILLEGAL_TRANSITION` and the",
        "states that may follow. A task that is `pending` with unfinished dependencies shows as `blocked`; that is",
        "computed, never stored.\n",
    ]
    for machine in (WORKFLOW_MACHINE, TASK_MACHINE, GATE_MACHINE):
        lines += [f"## {machine.name}\n", "```mermaid", machine.as_mermaid(), "```\n"]
    return "\n".join(lines).rstrip() + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "tools.md": tools_page,
    "commands.md": commands_page,
    "errors.md": errors_page,
    "settings.md": settings_page,
    "states.md": states_page,
    **{f"tools/{toolset.name}.md": functools.partial(toolset_page, toolset) for toolset in TOOLSETS},
}


def write_pages(folder: Path) -> None:
    """Writes them all, and deletes pages of toolsets that no longer exist."""
    (folder / "tools").mkdir(exist_ok=True)
    for old in (folder / "tools").glob("*.md"):
        if f"tools/{old.name}" not in PAGES:
            old.unlink()
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path(__file__).parents[3] / "docs")

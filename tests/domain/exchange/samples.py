"""Files as other tools write them, made here: every field those tools have, in the forms they have had over time.

Not copies of anybody's files. `write_all` puts them into a folder, for tests that import real files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SAMPLES = {
    "tasks.json": "task-master",
    "tasks-old.json": "task-master",
    "issues.jsonl": "beads",
    "gh-issues.json": "github",
    "gh-api.json": "github",
    "review.workflow.json": "workrail",
}
"""File names, and the format each is in."""


def write_all(folder: Path) -> None:
    """Writes every sample into the folder."""
    texts = {
        "tasks.json": task_master(),
        "tasks-old.json": task_master_old(),
        "issues.jsonl": beads(),
        "gh-issues.json": github(),
        "gh-api.json": github_rest(),
        "review.workflow.json": workrail(),
    }
    assert texts.keys() == SAMPLES.keys()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def task_master_tasks() -> list[dict[str, Any]]:
    """Tasks of one tag: every status, every kind of reference, every field."""
    return [
        {
            "id": 1,
            "title": "Lay out the schema",
            "description": "Tables for accounts and sessions.",
            "status": "done",
            "dependencies": [],
            "priority": "high",
            "details": "Start from the drawing.\n\nKeep names short.",
            "testStrategy": "Migrate an empty and a filled database.",
            "subtasks": [],
            "previousStatus": "in-progress",
        },
        {
            "id": 2,
            "title": "Write the API",
            "description": "REST endpoints.",
            "status": "in-progress",
            "dependencies": [1],
            "priority": "critical",
            "details": (
                "Endpoints for both.\n<info added on 2025-05-01T21:59:10.551Z>\nThe sessions need an index.\n"
                "Found while measuring.\n</info added on 2025-05-01T21:59:10.551Z>"
            ),
            "testStrategy": "",
            "complexity": 8,
            "recommendedSubtasks": 3,
            "expansionPrompt": "Split by resource.",
            "relevantFiles": [
                {"path": "src/api.py", "description": "the routes", "action": "modify"},
                {"path": "docs/api.md", "description": "what was promised", "action": "reference"},
            ],
            "acceptanceCriteria": ["Every route answers", "Errors are documented"],
            "skills": ["python"],
            "metadata": {"jira": "API-7"},
            "subtasks": [
                {
                    "id": 1,
                    "title": "Accounts",
                    "description": "Create, read, close.",
                    "status": "done",
                    "dependencies": [],
                    "parentTaskId": 2,
                    "acceptanceCriteria": "- Accounts can be closed\n- Closing is logged",
                },
                {
                    "id": 2,
                    "title": "Sessions",
                    "description": "Log in, log out.",
                    "status": "review",
                    "dependencies": [1, "1"],
                    "parentTaskId": 2,
                },
                {"id": 3, "title": "Limits", "description": "", "status": "pending", "dependencies": ["2.2", "1.9"]},
            ],
        },
        {
            "id": "3",
            "title": "Write the API",
            "description": "The second of that title.",
            "status": "blocked",
            "dependencies": ["2", 2.1],
            "priority": "medium",
            "complexity": "simple",
        },
        {
            "id": 4,
            "title": "Move to the new host",
            "status": "deferred",
            "priority": "low",
            "dependencies": [99],
            "createdAt": "2025-04-02T08:00:00.000Z",
            "updatedAt": "2025-04-03T08:00:00.000Z",
        },
        {"id": 5, "title": "Support the old client", "status": "cancelled", "dependencies": [1]},
        {"id": 6, "title": "Wait for legal", "status": "blocked", "dependencies": [1]},
    ]


def task_master() -> str:
    """The form with tags."""
    data = {
        "master": {
            "tasks": task_master_tasks(),
            "metadata": {
                "created": "2025-04-01T10:00:00.000Z",
                "updated": "2025-05-02T10:00:00.000Z",
                "description": "A service for accounts",
            },
        },
        "spike": {"tasks": [{"id": 1, "title": "Try gRPC", "status": "pending", "dependencies": []}], "metadata": {}},
    }
    return json.dumps(data, indent=2)


def task_master_old() -> str:
    """The form before there were tags."""
    return json.dumps({"tasks": task_master_tasks()[:2], "metadata": {"projectName": "Accounts", "totalTasks": 2}})


def edge(one: str, other: str, kind: str, **more: Any) -> dict[str, Any]:
    """A dependency as beads writes it."""
    made = {"issue_id": one, "depends_on_id": other, "type": kind, "created_at": "2026-01-05T09:00:00Z"}
    return {**made, "created_by": "ada", **more}


def beads_issues() -> list[dict[str, Any]]:
    """Issues of an export: every status, every edge that matters, every field of a task."""
    counts = {"dependency_count": 0, "dependent_count": 0, "comment_count": 0}
    return [
        {
            "_type": "issue",
            "id": "bd-a1b2",
            "title": "Payments",
            "description": "Everything about paying.",
            "status": "open",
            "priority": 1,
            "issue_type": "epic",
            "owner": "ada@example.org",
            "created_at": "2026-01-01T09:00:00Z",
            "created_by": "ada",
            "updated_at": "2026-01-06T09:00:00Z",
            "dependencies": [edge("bd-a1b2", "bd-a1b2.1", "blocks")],
            **counts,
        },
        {
            "_type": "issue",
            "id": "bd-a1b2.1",
            "title": "Take cards",
            "description": "With the usual provider.",
            "design": "A queue between.\n\nRetries outside.",
            "acceptance_criteria": "- A payment is booked once\n- A refund is booked once",
            "notes": "COMPLETED: the form\nNEXT: the callback",
            "spec_id": "specs/pay.md",
            "status": "in_progress",
            "priority": 0,
            "issue_type": "feature",
            "assignee": "ben",
            "estimated_minutes": 90,
            "external_ref": "gh-9",
            "labels": ["pay", "web"],
            "created_at": "2026-01-02T09:00:00.123456789+01:00",
            "started_at": "2026-01-03T09:00:00Z",
            "updated_at": "2026-01-06T09:00:00Z",
            "metadata": {"files": ["pay.py"]},
            "dependencies": [
                edge("bd-a1b2.1", "bd-a1b2", "parent-child"),
                edge("bd-a1b2.1", "bd-c3d4", "blocks", metadata='{"why": "schema"}'),
                edge("bd-a1b2.1", "bd-gone", "blocks"),
                edge("bd-a1b2.1", "bd-dead", "blocks"),
                edge("bd-a1b2.1", "bd-k1", "related"),
            ],
            "comments": [
                {
                    "id": 2,
                    "issue_id": "bd-a1b2.1",
                    "author": "ben",
                    "text": "Works",
                    "created_at": "2026-01-05T09:00:00Z",
                },
                {
                    "id": 1,
                    "issue_id": "bd-a1b2.1",
                    "author": "ada",
                    "created_at": "2026-01-04T09:00:00Z",
                    "text": "Use the sandbox key.\nIt is in the vault.",
                },
            ],
            **counts,
        },
        {
            "id": "bd-c3d4",
            "title": "Schema",
            "description": "",
            "status": "closed",
            "priority": 2,
            "issue_type": "task",
            "created_at": "2026-01-01T08:00:00Z",
            "updated_at": "2026-01-02T08:00:00Z",
            "closed_at": "2026-01-02T08:00:00Z",
            "close_reason": "Merged in 4f2a",
            "compaction_level": 1,
        },
        {
            "id": "bd-d1",
            "title": "Schema",
            "status": "closed",
            "priority": 3,
            "issue_type": "bug",
            "created_at": "2026-01-03T08:00:00Z",
            "closed_at": "2026-01-03T09:00:00Z",
            "close_reason": "duplicate",
            "dependencies": [edge("bd-d1", "bd-c3d4", "duplicates"), edge("bd-d1", "bd-a1b2.1", "discovered-from")],
        },
        {
            "id": "bd-e1",
            "title": "Roll back",
            "status": "blocked",
            "priority": 4,
            "issue_type": "chore",
            "created_at": "2026-01-04T08:00:00Z",
            "dependencies": [edge("bd-e1", "bd-a1b2.1", "conditional-blocks"), edge("bd-e1", "bd-a1b2", "waits-for")],
        },
        {"id": "bd-f1", "title": "Later", "status": "deferred", "priority": 2, "defer_until": "2027-01-01T00:00:00Z"},
        {"id": "bd-h1", "title": "On the hook", "status": "hooked", "priority": 2},
        {"id": "bd-k1", "title": "Waits for nobody here", "status": "blocked", "priority": 2},
        {"id": "bd-p1", "title": "House rules", "status": "pinned", "priority": 2, "pinned": True},
        {"id": "bd-s1", "title": "Custom", "status": "in_review", "priority": 2},
        {"id": "bd-dead", "title": "Gone", "status": "tombstone", "priority": 2, "deleted_at": "2026-01-05T00:00:00Z"},
        {"id": "bd-m1", "title": "Hello", "status": "open", "priority": 2, "issue_type": "message", "sender": "ada"},
        {"id": "bd-t1", "title": "Release {{v}}", "status": "open", "priority": 2, "is_template": True},
        {"_type": "memory", "key": "vault", "value": "ask ada"},
    ]


BEADS_LEFT_OUT = ("bd-dead", "bd-m1", "bd-t1", None)
"""Ids of what is no work to be done; a memory has none."""


def beads() -> str:
    """`bd export`."""
    return "".join(json.dumps(issue) + "\n" for issue in beads_issues())


def gh_issue(number: int, title: str, **more: Any) -> dict[str, Any]:
    """An issue as `gh issue list --json` writes it."""
    person = {"id": "U1", "is_bot": False, "login": "ada", "name": "Ada"}
    return {
        "assignees": [],
        "author": person,
        "body": "",
        "closed": False,
        "closedAt": None,
        "closedByPullRequestsReferences": [],
        "comments": [],
        "createdAt": f"2026-02-{number % 27 + 1:02}T10:00:00Z",
        "id": f"I_{number}",
        "isPinned": False,
        "labels": [],
        "milestone": None,
        "number": number,
        "projectCards": [],
        "projectItems": [],
        "reactionGroups": [],
        "state": "OPEN",
        "stateReason": "",
        "title": title,
        "updatedAt": "2026-03-01T10:00:00Z",
        "url": f"https://github.com/acme/shop/issues/{number}",
        **more,
    }


def gh_issues() -> list[dict[str, Any]]:
    """Newest first, as gh lists them."""
    closed = {"state": "CLOSED", "closed": True, "closedAt": "2026-02-20T10:00:00Z"}
    label = {"id": "L1", "name": "priority: high", "description": "", "color": "ff0000"}
    nodes = {
        "nodes": [{"number": 7, "title": "Schema", "url": "https://github.com/acme/shop/issues/7", "state": "OPEN"}]
    }
    return [
        gh_issue(14, "Checkout", body="No longer blocked by #7.\r\n\r\n```\nblocked by #10\n```\n> depends on #10"),
        gh_issue(13, "Checkout", body="**Blocked by:** #7, acme/shop#12 and #99\n\nDepends on other/repo#3"),
        gh_issue(
            12,
            "Basket",
            body="Adds things.\r\n\r\nBlocked by:\r\n- [ ] #7\r\n- [x] https://github.com/acme/shop/issues/11\r\n",
            labels=[label, {"id": "L2", "name": "web", "description": "", "color": "0"}],
            assignees=[{"id": "U2", "login": "ben", "name": ""}],
            milestone={"number": 2, "title": "v2", "description": "Spring", "dueOn": "2026-04-01T00:00:00Z"},
            issueType={"id": "T", "name": "Feature", "description": "", "color": "BLUE"},
            parent={"number": 10, "title": "Shop", "url": "https://github.com/acme/shop/issues/10", "state": "OPEN"},
            blockedBy={**nodes, "totalCount": 3},
            comments=[
                {
                    "id": "C1",
                    "author": {"login": "ben"},
                    "authorAssociation": "MEMBER",
                    "body": "On it.\r\nSoon.",
                    "createdAt": "2026-02-25T10:00:00Z",
                    "includesCreatedEdit": False,
                    "isMinimized": False,
                    "minimizedReason": "",
                    "reactionGroups": [],
                    "viewerDidAuthor": False,
                    "url": "https://github.com/acme/shop/issues/12#issuecomment-1",
                }
            ],
        ),
        gh_issue(
            11,
            "Prices",
            **closed,
            stateReason="COMPLETED",
            closedByPullRequestsReferences=[{"id": "PR", "number": 20, "url": "https://github.com/acme/shop/pull/20"}],
        ),
        gh_issue(10, "Shop", body="Everything:\n- [ ] #12\n- [ ] #13\n- [x] #8 the rest\n- [ ] write docs (#14)"),
        gh_issue(9, "Coupons", **closed, stateReason="DUPLICATE"),
        gh_issue(8, "Gift cards", **closed, stateReason="NOT_PLANNED"),
        gh_issue(7, "Schema", labels=[{"name": "P0"}], blocking={"nodes": [{"number": 14}], "totalCount": 1}),
    ]


def github() -> str:
    """`gh issue list --state all --json` with every field."""
    return json.dumps(gh_issues())


def github_rest() -> str:
    """`gh api --paginate repos/acme/shop/issues`: an array a page, in a row, pull requests among them."""

    def issue(number: int, title: str, **more: Any) -> dict[str, Any]:
        made = {"number": number, "title": title, "state": "open", "state_reason": None, "body": None, "comments": 2}
        address = f"https://github.com/acme/shop/issues/{number}"
        api = f"https://api.github.com/repos/acme/shop/issues/{number}"
        return {**made, "html_url": address, "url": api, "user": {"login": "ada"}, "locked": False, **more}

    done = {"state": "closed", "state_reason": "completed", "created_at": "2026-02-01T10:00:00Z"}
    first = [
        issue(
            3,
            "Third",
            body="depends on #1",
            labels=["p1"],
            parent_issue_url="https://api.github.com/repos/acme/shop/issues/2",
            issue_dependencies_summary={"blocked_by": 2, "total_blocked_by": 2, "blocking": 0, "total_blocking": 0},
            sub_issues_summary={"total": 0, "completed": 0, "percent_completed": 0},
            type={"id": 7, "name": "Bug"},
        ),
        issue(4, "A pull request", pull_request={"url": "…"}, html_url="https://github.com/acme/shop/pull/4"),
    ]
    second = [
        issue(2, "Second", state="closed", state_reason="not_planned", closed_at="2026-02-02T10:00:00Z"),
        issue(1, "First", **done, closed_at="2026-02-03T10:00:00Z"),
    ]
    return json.dumps(first) + json.dumps(second)


def workrail_workflow() -> dict[str, Any]:
    """A workflow with everything that the format has had in its versions."""
    return {
        "id": "wr.review_changes",
        "name": "Review of changes",
        "description": "Reads a change, judges it, and says so.",
        "version": "2.1.0",
        "about": "## For people\n\nWhat it is for.",
        "examples": ["Review the branch"],
        "recommendedPreferences": {"recommendedAutonomy": "guided"},
        "features": ["wr.features.memory_context"],
        "extensionPoints": [{"slotId": "deep_review", "purpose": "a second look", "default": "routine-review"}],
        "references": [
            {
                "id": "style",
                "title": "House style",
                "source": "docs/style.md",
                "purpose": "what we like",
                "authoritative": True,
                "resolveFrom": "workspace",
            }
        ],
        "assessments": [
            {
                "id": "ready",
                "purpose": "The review can be handed over.",
                "dimensions": [{"id": "evidence", "purpose": "Lines are named.", "levels": ["low", "high"]}],
            }
        ],
        "preconditions": ["There is a change to read"],
        "clarificationPrompts": ["Which branch?"],
        "metaGuidance": ["Read before you judge.", "x" * 200 + " " + "y" * 200],
        "functionDefinitions": [
            {
                "name": "lookUp",
                "definition": "Search the code for who calls it.",
                "scope": "workflow",
                "parameters": [{"name": "symbol", "type": "string", "required": True}],
            },
            {"name": "unused", "definition": "Nobody calls this."},
        ],
        "steps": [*_workrail_first_steps(), *_workrail_loops(), _workrail_last_step()],
    }


def _workrail_first_steps() -> list[dict[str, Any]]:
    return [
        {
            "id": "understand",
            "title": "Understand the change",
            "prompt": "Read the diff. Use lookUp() on what changed.",
            "agentRole": "You are a careful reader of other people's code.",
            "guidance": ["Start with the tests"],
            "askForFiles": True,
            "hasValidation": True,
            "requireConfirmation": {"or": [{"var": "risk", "equals": "high"}, {"var": "files", "gt": 20}]},
            "functionReferences": ["lookUp()"],
            "validationCriteria": [
                {"type": "contains", "value": "Summary", "message": "Say what changes"},
                {"type": "regex", "pattern": "(?=.*why)", "flags": "iv", "message": "Say why"},
                {"type": "length", "min": 20, "max": 4000.0, "message": "A paragraph"},
                {
                    "type": "schema",
                    "schema": {"type": "object"},
                    "message": "An object",
                    "condition": {"var": "asJson", "equals": True},
                },
            ],
        },
        {
            "id": "plan",
            "title": "Plan the review",
            "promptBlocks": {
                "goal": "Decide how deep to look.",
                "constraints": [
                    [{"kind": "ref", "refId": "wr.refs.notes"}, {"kind": "text", "text": " first"}],
                    "Be brief",
                ],
                "procedure": ["List the risks", "Order them"],
                "outputRequired": {"plan": "a list"},
                "verify": ["Each risk has an owner"],
            },
            "runCondition": {"and": [{"var": "files", "gt": 1}, {"not": {"var": "quick", "equals": True}}]},
            "promptFragments": [
                {"id": "f1", "when": {"var": "lang", "equals": "go"}, "text": "Look at the goroutines."}
            ],
            "validationCriteria": {"or": [{"type": "contains", "value": "risk", "message": "Name a risk"}]},
            "notesOptional": True,
        },
        {"id": "probe", "title": "Probe", "templateCall": {"templateId": "wr.templates.probe", "args": {"deep": True}}},
        {
            "id": "odd",
            "title": "Odd condition",
            "prompt": "Do it.",
            "runCondition": {"var": "name", "startsWith": "x"},
            "newThing": {"a": 1},
        },
    ]


def _workrail_loops() -> list[dict[str, Any]]:
    return [
        {
            "id": "each-file",
            "type": "loop",
            "title": "Each file",
            "runCondition": {"var": "files", "gte": 1},
            "loop": {"type": "forEach", "items": "changed", "itemVar": "file", "indexVar": "at", "maxIterations": 50},
            "body": "read-file",
        },
        {"id": "read-file", "title": "Read a file", "prompt": "Read {{file}}."},
        {
            "id": "doubts",
            "type": "loop",
            "title": "Doubts",
            "loop": {"type": "while", "condition": {"var": "doubts", "gt": 0}, "maxIterations": 3, "iterationVar": "n"},
            "requireConfirmation": True,
            "body": [
                {"id": "ask", "title": "Ask", "prompt": "Ask about one doubt."},
                {
                    "id": "settle",
                    "title": "Settle",
                    "prompt": "Settle it.",
                    "outputContract": {"contractRef": "wr.contracts.loop_control"},
                },
            ],
        },
        {
            "id": "polish",
            "type": "loop",
            "title": "Polish",
            "loop": {
                "type": "until",
                "maxIterations": 2,
                "conditionSource": {
                    "kind": "artifact_contract",
                    "contractRef": "wr.contracts.loop_control",
                    "loopId": "p",
                },
            },
            "body": [{"id": "polish-once", "title": "Polish once", "prompt": "Read it aloud."}],
        },
        {
            "id": "twice",
            "type": "loop",
            "title": "Twice",
            "loop": {"type": "for", "count": 2, "maxIterations": 2},
            "body": [{"id": "check-again", "title": "Check again", "prompt": "Run the checks."}],
        },
    ]


def _workrail_last_step() -> dict[str, Any]:
    return {
        "id": "hand-over",
        "title": "Hand over",
        "prompt": "\n\n".join(f"Part {number}. " + "Say it plainly. " * 60 for number in range(12)),
        "assessmentRefs": ["ready"],
        "assessmentConsequences": [
            {"when": {"anyEqualsLevel": "low"}, "effect": {"kind": "require_followup", "guidance": "Look again."}}
        ],
        "requireConfirmation": True,
        "validationCriteria": [{"type": "contains", "value": "Verdict", "message": "Give a verdict"}],
    }


def workrail() -> str:
    """A workflow's file."""
    return json.dumps(workrail_workflow(), indent=2)

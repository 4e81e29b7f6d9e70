"""Reads GitHub issues, as written by `gh issue list --json …` and `gh issue view --json …`, or returned by `gh api`.

Reading only. Every field `gh` offers is interpreted if it says something about the plan, and kept in any case. Pull
requests are not tasks and are left out.

What the body of a GitHub issue says about other issues: those that block it, and those in its task lists.

Based on wording, so a guess: what GitHub itself records (parents, dependencies) takes precedence. Code, quotes and
template comments are ignored.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from handrail.domain.exchange.foreign_json import ForeignJson, kind_in_words, unreadable
from handrail.domain.exchange.foreign_tasks import (
    CUT_DESCRIPTIONS,
    Draft,
    ForeignRecord,
    assemble,
    draft_task,
    fitted,
    note,
    remark_on,
    several,
)
from handrail.domain.exchange.plan_document import PlanDocument, PlanNote

_REFERENCE = (
    r"(?:https://github\.com/([\w.-]{1,100}/[\w.-]{1,100})/issues/([0-9]{1,9})\b"
    r"|([\w.-]{1,100}/[\w.-]{1,100})?#([0-9]{1,9})\b)"
)
_ONE = re.compile(_REFERENCE)
_BLOCKED = re.compile(
    r"\b(?:blocked (?:by|on)|depend(?:s|ent|ing)? (?:on|upon)|wait(?:s|ing) (?:for|on))\b", re.IGNORECASE
)
_DENIED = re.compile(r"(?:\bno longer|\bnot|n't|\bwas|\bwere|\bformerly|\bpreviously)\s+$", re.IGNORECASE)
_BETWEEN = re.compile(r"[ \t:*_]*")
_AND = re.compile(r"(?:[ \t]{0,5}(?:,|;|&|\band\b))+[ \t]{0,5}", re.IGNORECASE)
_LIST_FOLLOWS = re.compile(r"[ \t:*_]*\n(?:[ \t]*\n)?(?=[ \t]{0,9}[-*+] )")
_BULLET = re.compile(rf"[ \t]{{0,9}}[-*+] (?:\[[ xX]\] )?{_REFERENCE}.*(?:\n|$)")
_ITEM = re.compile(rf"[ \t]{{0,20}}(?:[-*+]|[0-9]{{1,3}}[.)])[ \t]+\[[ xX]\][ \t]+{_REFERENCE}")
_FENCE = re.compile(r"[ \t]{0,3}(```+|~~~+)")

Reference = tuple[str | None, int]
"""A repository, None for the issue's own, and a number."""


def blockers(body: str) -> list[Reference]:
    """The issues this one waits for, according to the text."""
    text = _prose(body)
    found: list[Reference] = []
    for words in _BLOCKED.finditer(text):
        if not _DENIED.search(text[max(0, words.start() - 20) : words.start()]):
            found += _list_of_references(text, words.end()) or _row_of_references(text, words.end())
    return list(dict.fromkeys(found))


def parts(body: str) -> list[Reference]:
    """The issues that are items of its task lists."""
    items = (_ITEM.match(line) for line in _prose(body).split("\n"))
    return list(dict.fromkeys(_reference(item) for item in items if item is not None))


def _row_of_references(text: str, at: int) -> list[Reference]:
    """References in a row from here, such as `#7, #8 and #9`."""
    found: list[Reference] = []
    between = _BETWEEN.match(text, at)
    while between is not None and (one := _ONE.match(text, between.end())) is not None:
        found.append(_reference(one))
        between = _AND.match(text, one.end())
    return found


def _list_of_references(text: str, at: int) -> list[Reference]:
    """A list of references below these words, up to the first item without one."""
    found: list[Reference] = []
    start = _LIST_FOLLOWS.match(text, at)
    bullet = None if start is None else _BULLET.match(text, start.end())
    while bullet is not None:
        found.append(_reference(bullet))
        bullet = _BULLET.match(text, bullet.end())
    return found


def _reference(match: re.Match[str]) -> Reference:
    far, far_number, near, near_number = match.groups()
    return far or near, int(far_number or near_number)


def _prose(body: str) -> str:
    """The body without comments, code and quotes; other lines keep their form."""
    kept: list[str] = []
    fence = ""
    for line in _without_comments(body.replace("\r\n", "\n")).split("\n"):
        mark = _FENCE.match(line)
        if mark is not None and (not fence or mark.group(1).startswith(fence)):
            fence = "" if fence else mark.group(1)
        elif not fence and not line.lstrip().startswith(">"):
            kept.append(re.sub(r"`[^`]*`", "", line))
    return "\n".join(kept)


def _without_comments(body: str) -> str:
    found: list[str] = []
    at = 0
    while (start := body.find("<!--", at)) >= 0:
        end = body.find("-->", start)
        if end < 0:
            break
        found.append(body[at:start])
        at = end + 3
    return "".join([*found, body[at:]])


SYSTEM = "github"
NOT_DONE = ("not_planned", "duplicate")
"""Reasons for closing an issue without doing it; it is then skipped here. Any other closed issue is completed."""
PRIORITIES = {
    "p0": 200,
    "p1": 100,
    "p2": 0,
    "p3": -100,
    "p4": -200,
    "critical": 200,
    "urgent": 200,
    "high": 100,
    "medium": 0,
    "normal": 0,
    "low": -100,
}
"""GitHub has no priorities, but labels such as `P1` or `priority: high` are common; they map to the same values as
other tools' priorities. The words count only together with the word priority."""
_PRIORITY_WORDS = {"priority", "prio"}
_ADDRESS = re.compile(r"https://[\w.-]+/(?:repos/)?([\w.-]{1,100}/[\w.-]{1,100})/(issues|pull|pulls)/([0-9]{1,18})")
_FIELDS = "number,title,body,state,stateReason,labels,assignees,milestone,comments,createdAt,closedAt,url"
_HINT = f"gh issue list --state all --limit 1000 --json {_FIELDS}"


class _Issue(msgspec.Struct):
    """An issue being read: its repository, its number, and its record."""

    repository: str
    number: int
    record: ForeignRecord
    body: str = ""


class _Links(msgspec.Struct):
    """What the issues say about each other, by key."""

    needs: dict[str, list[str]] = {}
    parents: dict[str, str] = {}
    guessed: list[str] = []
    shortened: list[str] = []
    outside: list[str] = []
    """Issues that are not in the file, though one in it says that it blocks or contains them."""


def read(text: str, name: str) -> PlanDocument:
    """The plan made of a list of issues, in the order of their numbers."""
    source = ForeignJson(text)
    values = _flat(source.values())
    remarks = source.remarks()
    issues = _issues(values, remarks)
    several_repositories = len({issue.repository for issue in issues}) > 1
    keyed = {_key(issue.repository, issue.number, several_repositories): issue for issue in issues}
    if len(keyed) < len(issues):
        remarks.append(f"{len(issues) - len(keyed)} issues appear more than once; the last entry counts")
    links = _links(keyed, several_repositories)
    cut: list[str] = []
    order = sorted(keyed.items(), key=lambda entry: (entry[1].repository, entry[1].number))
    drafts = [_draft(key, issue, links, cut) for key, issue in order]
    remarks += remark_on("read from the words of an issue's body", links.guessed)
    remarks += remark_on("gh listed only some of the issues linked to these", links.shortened)
    remarks += remark_on("links to issues that are not in this file are only kept", links.outside)
    remarks += remark_on(CUT_DESCRIPTIONS, cut)
    repository = issues[0].repository if issues and not several_repositories else ""
    return PlanDocument(
        name=name,
        source_type="github_issue",
        source_ref=f"https://github.com/{repository}/issues" if repository else None,
        tasks=assemble(drafts, remarks),
        remarks=remarks,
    )


def _flat(values: list[Any]) -> list[Any]:
    """The issues: from one array or several in a row, from pages in an array, or one by one."""
    found: list[Any] = []
    for value in values:
        for page in value if isinstance(value, list) else [value]:
            found += page if isinstance(page, list) else [page]
    return found


def _issues(values: list[Any], remarks: list[str]) -> list[_Issue]:
    found: list[_Issue] = []
    pulls: list[str] = []
    for place, value in enumerate(values, start=1):
        if not isinstance(value, dict):
            raise unreadable(f"entry {place} is {kind_in_words(value)}", hint=_HINT)
        number = value.get("number")
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise unreadable(f"entry {place} has no number", hint=_HINT)
        if not isinstance(value.get("title"), str):
            raise unreadable(f"entry {place} has no title", hint=_HINT)
        address = next(
            (at for key in ("html_url", "url") if (at := _ADDRESS.match(str(value.get(key)))) is not None), None
        )
        if "pull_request" in value or value.get("isPullRequest") is True or (address and address[2] != "issues"):
            pulls.append(f"#{number}")
            continue
        within = value.get("repository")
        named = within.get("nameWithOwner", within.get("full_name")) if isinstance(within, dict) else None
        repository = named if isinstance(named, str) else address[1] if address else ""
        found.append(_Issue(repository, number, ForeignRecord(value)))
    if pulls:
        remarks.append(f"pull requests were left out: {several(pulls)}")
    return found


def _key(repository: str, number: int, several_repositories: bool) -> str:
    return f"{repository}#{number}" if several_repositories else f"#{number}"


def _links(issues: dict[str, _Issue], several_repositories: bool) -> _Links:
    """The links GitHub records, and then those found only in the bodies."""
    links = _Links()
    for key, issue in issues.items():
        body = issue.record.get("body")
        issue.body = body if isinstance(body, str) else ""
        for other in _related(issue, "blockedBy", key, links, several_repositories):
            links.needs.setdefault(key, []).append(other)
        for other in _related(issue, "blocking", key, links, several_repositories):
            links.needs.setdefault(other, []).append(key)
            links.outside += [f"{key} blocks {other}"] if other not in issues else []
        for other in _related(issue, "subIssues", key, links, several_repositories):
            links.parents.setdefault(other, key)
            links.outside += [f"{other} is part of {key}"] if other not in issues else []
        for field in ("parent", "parent_issue_url"):
            for other in _related(issue, field, key, links, several_repositories):
                links.parents[key] = other
        _count_unnamed(issue, key, links)
    for key, issue in issues.items():
        _read_body(key, issue, issues, links, several_repositories)
    return links


def _related(issue: _Issue, field: str, key: str, links: _Links, several_repositories: bool) -> list[str]:
    """The issues a field names: a list, one issue or its address, or nodes with a total count."""
    value = issue.record.get(field)
    if isinstance(value, dict) and "nodes" in value:
        nodes, count = value["nodes"], value.get("totalCount")
        if isinstance(count, int) and isinstance(nodes, list) and count > len(nodes):
            links.shortened.append(f"{key} {field} ({len(nodes)} of {count})")
        value = nodes
    found = []
    for node in value if isinstance(value, list) else [value]:
        is_issue = isinstance(node, dict)
        address = _ADDRESS.match(str(node.get("url") if is_issue else node))
        number = node.get("number") if is_issue else int(address[3]) if address else None
        if isinstance(number, int):
            repository = address[1] if address else issue.repository
            far = bool(issue.repository) and repository != issue.repository
            found.append(_key(repository, number, several_repositories or far))
    return found


def _count_unnamed(issue: _Issue, key: str, links: _Links) -> None:
    """Notes that `gh api` says how many issues block this one, but not which."""
    summary = issue.record.get("issue_dependencies_summary")
    count = summary.get("blocked_by") if isinstance(summary, dict) else None
    if isinstance(count, int) and count > 0 and issue.record.get("blockedBy") is None:
        links.shortened.append(f"{key} blockedBy (0 of {count})")


def _read_body(key: str, issue: _Issue, issues: dict[str, _Issue], links: _Links, several_repositories: bool) -> None:
    def meant(reference: Reference) -> str | None:
        """The key of an issue in this file, or None."""
        repository, number = reference
        if repository is not None and issue.repository and repository.lower() != issue.repository.lower():
            found = _key(repository, number, several_repositories=True)
        else:
            found = _key(issue.repository, number, several_repositories)
        return found if found in issues and found != key else None

    waits = [other for reference in blockers(issue.body) if (other := meant(reference)) is not None]
    for other in waits:
        if other not in links.needs.get(key, ()):
            links.needs.setdefault(key, []).append(other)
            links.guessed.append(f"{key} needs {other}")
    for reference in parts(issue.body):
        part = meant(reference)
        if part is None or part in links.parents or part in waits or _is_above(part, key, links.parents):
            continue
        links.parents[part] = key
        links.guessed.append(f"{part} is part of {key}")


def _is_above(one: str, other: str, parents: dict[str, str]) -> bool:
    """Whether `other` is part of `one`, at any depth. Links guessed from words must never close a cycle."""
    seen: set[str] = set()
    at: str | None = other
    while at is not None and at not in seen:
        if at == one:
            return True
        seen.add(at)
        at = parents.get(at)
    return False


def _draft(key: str, issue: _Issue, links: _Links, cut: list[str]) -> Draft:
    record = issue.record
    record.take("number")
    body = record.text("body").replace("\r\n", "\n")
    status = _status(record)
    return Draft(
        id=key,
        title=record.text("title"),
        system=SYSTEM,
        source=issue.repository,
        needs=links.needs.get(key, []),
        part_of=links.parents.get(key),
        task=draft_task(
            description=fitted(body, record, "body", cut, key),
            status=status,
            priority=_priority(record),
            outcome=_outcome(record) if status == "completed" else None,
            created_at=record.time("createdAt", "created_at"),
            finished_at=record.time("closedAt", "closed_at") if status != "pending" else None,
            notes=_comments(record),
        ),
        fields=record.left,
    )


def _status(record: ForeignRecord) -> str:
    """Reads the source's words but leaves them among what is kept, since they say more than our status."""
    if str(record.get("state")).lower() != "closed" and record.get("closed") is not True:
        return "pending"
    reason = str(record.get("stateReason") or record.get("state_reason")).lower()
    return "skipped" if reason in NOT_DONE else "completed"


def _outcome(record: ForeignRecord) -> str | None:
    numbers = [pull.get("number") for pull in record.records("closedByPullRequestsReferences")]
    pulls = [f"#{number}" for number in numbers if isinstance(number, int)]
    return f"Closed by pull request {', '.join(pulls[:20])}" if pulls else None


def _priority(record: ForeignRecord) -> int:
    """The most urgent priority among the labels."""
    value = record.get("labels")
    names = (
        [label.get("name") if isinstance(label, dict) else label for label in value] if isinstance(value, list) else []
    )
    found: list[int] = []
    for name in names:
        words = {word for word in re.split(r"[\s:/_.-]+", str(name)[:100].lower()) if word}
        said = words - _PRIORITY_WORDS
        if len(said) == 1 and said <= PRIORITIES.keys():
            word = said.pop()
            if words & _PRIORITY_WORDS or word[1:].isdigit():
                found.append(PRIORITIES[word])
    return max(found, default=0)


def _comments(record: ForeignRecord) -> list[PlanNote]:
    """The comments as notes. Comments that GitHub hides are only kept, and so are all of them if one is malformed."""
    found: list[PlanNote] = []
    for comment in record.records("comments"):
        inner = ForeignRecord(comment)
        text, at = inner.text("body").replace("\r\n", "\n"), inner.time("createdAt", "created_at")
        said = note(text, at=at, **{key: value for key, value in inner.left.items() if key not in ("at", "text")})
        if said is not None and comment.get("isMinimized") is not True:
            found.append(said)
    listed = record.get("comments")
    if isinstance(listed, list) and len(found) == len(listed):
        record.take("comments")
    return sorted(found, key=lambda one: one.at or 0)

"""What a run is asked to do: flags, the source of the request, the name. Pure text processing; looks nothing up and
creates nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from handrail.domain.pipeline.budget import LIMITS
from handrail.domain.work.workflow import SourceType
from handrail.kernel.errors import InvalidParams
from handrail.kernel.wording import did_you_mean, on_one_line

SPECS = ".specs"
SHORTEST = 3
SLUG = 60
EFFORTS = ("S", "M", "L")
FLAGS = {"--auto": "auto", "--nopr": "skip_pr", "--debug": "debug", "--discuss": "discuss"}
PHASES = {"--until": "until", "--from": "begin_at"}
AMOUNTS = {f"--{name.replace('_', '-')}": name for name in LIMITS}
LABELS = "labels"
TITLES, TEXTS, POINTS = ("title", "summary"), ("body", "description"), ("story_points", "estimate")
"""The different services' names for the same thing."""
LONGEST = 100_000
"""Characters of a fetched text."""
MAIN_BRANCHES = ("", "main", "master")
_AMOUNT = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")
_FLAG = re.compile(r"(?<!\S)--[a-z]\S*[ \t]*")


class RequestSource(NamedTuple):
    """A kind of place that requests come from."""

    type: str
    pattern: re.Pattern[str]
    near: re.Pattern[str]
    """Addresses that were probably meant as one of these but are not."""
    example: str
    service: str
    fields: tuple[str, ...]
    what: str
    planned_as: SourceType
    """The name plan.md uses for it: the `source_type` of the run's workflow."""


SOURCES = (
    RequestSource(
        "github_issue",
        re.compile(r"https://github\.com/[^/\s]+/[^/\s]+/issues/([0-9]+)(?:[/?#]\S*)?"),
        re.compile(r"https?://(?:www\.)?github\.com\b"),
        "https://github.com/OWNER/REPO/issues/42",
        "github",
        ("labels", "title", "body"),
        "issue",
        "github_issue",
    ),
    RequestSource(
        "jira_issue",
        re.compile(r"https://[A-Za-z0-9.-]+\.atlassian\.net/browse/([A-Z][A-Z0-9_]*-[0-9]+)(?:[/?#]\S*)?"),
        re.compile(r"https?://[^/?#\s]+\.atlassian\.net\b"),
        "https://TEAM.atlassian.net/browse/ABC-42",
        "jira",
        ("issue_type", "story_points", "summary", "description"),
        "issue",
        "jira",
    ),
    RequestSource(
        "linear_issue",
        re.compile(r"https://linear\.app/[^/\s]+/issue/([A-Z][A-Z0-9]*-[0-9]+)(?:[/?#]\S*)?"),
        re.compile(r"https?://linear\.app\b"),
        "https://linear.app/TEAM/issue/ABC-42",
        "linear",
        ("title", "description", "estimate", "labels"),
        "issue",
        "linear",
    ),
    RequestSource(
        "gitlab_issue",
        re.compile(r"https://gitlab\.com/\S+?/-/(?:issues|work_items)/([0-9]+)(?:[/?#]\S*)?"),
        re.compile(r"https?://gitlab\.com\b"),
        "https://gitlab.com/GROUP/PROJECT/-/issues/42",
        "gitlab",
        ("labels", "title", "description"),
        "issue",
        "custom",
    ),
)


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """How to do a run."""

    auto: bool = False
    skip_pr: bool = False
    debug: bool = False
    discuss: bool = False
    effort_override: str | None = None
    current_branch: str | None = None
    until: str | None = None
    """The last phase to do."""
    begin_at: str | None = None
    """The first phase to do; the documents of earlier phases exist already."""
    limits: dict[str, float] = {}
    """Spending limits."""

    def shown(self) -> dict[str, Any]:
        """The flags as a reply lists them: `until`, `begin_at` and `limits` only if they were given."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return {name: value for name, value in plain.items() if value or name not in ("until", "begin_at", "limits")}


class ParsedRequest(NamedTuple):
    """A request, parsed."""

    text: str
    flags: Flags
    source: RequestSource | None
    source_id: str | None
    errors: tuple[str, ...] = ()

    @property
    def source_type(self) -> str:
        return self.source.type if self.source is not None else "text"


def take_apart(arguments: str, current_branch: str | None) -> ParsedRequest:
    """Parses the raw arguments."""
    given: dict[str, Any] = {"current_branch": current_branch}
    errors = [problem for word in _FLAG.findall(arguments) if (problem := _flag(word.strip(), given))]
    text = _FLAG.sub("", arguments).strip()
    if "\n" not in text:  # line breaks in a longer text matter: it may hold a list or code
        text = on_one_line(text)
    if len(text) < SHORTEST:
        errors.append(f"input too short: minimum {SHORTEST} characters required")
    flags = Flags(**given)
    for source in SOURCES:
        if match := source.pattern.fullmatch(text):
            return ParsedRequest(text, flags, source, match[1], tuple(errors))
        if source.near.match(text) and " " not in text:
            errors.append(
                f"this is not the address of a {source.service} {source.what}: it looks like {source.example}"
            )
    return ParsedRequest(text, flags, None, None, tuple(errors))


def _flag(word: str, given: dict[str, Any]) -> str | None:
    """Adds one flag to `given`, or returns what is wrong with it."""
    name, _, value = word.partition("=")
    if name in FLAGS and not value:
        given[FLAGS[name]] = True
    elif name == "--effort":
        if value not in EFFORTS:
            return f"there is no effort {value or 'without a name'}: one of {', '.join(EFFORTS)}"
        given["effort_override"] = value
    elif name in PHASES:
        if not value:
            return f"{name} needs a phase, such as {name}=phase-3"
        given[PHASES[name]] = value
    elif name in AMOUNTS:
        if not _AMOUNT.fullmatch(value):
            return f"{name} needs an amount, such as {name}=500000"
        given["limits"] = {**given.get("limits", {}), AMOUNTS[name]: float(value)}
    elif name != "--resume":
        known = (*FLAGS, "--effort=", *(f"{flag}=" for flag in (*PHASES, *AMOUNTS)))
        return f"there is no flag {word}{did_you_mean(word, known)}: flags are {', '.join(known)}"
    return None


def slug(text: str) -> str:
    """A folder name: lowercase letters, digits and single hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:SLUG].strip("-") or "task"


def fetch_needed(source: RequestSource) -> dict[str, Any]:
    """What the orchestrator has to fetch before it continues."""
    return {
        "type": source.service,
        "fields": list(source.fields),
        "instruction": f"fetch {source.service} {source.what} fields before calling pipeline_init_with_context",
    }


class Fetched(NamedTuple):
    """What was fetched from the source of the request."""

    title: str = ""
    text: str = ""
    labels: tuple[str, ...] = ()
    points: float | None = None

    @property
    def body(self) -> str:
        return "\n\n".join(part for part in (self.title, self.text) if part)


def fetched(given: Mapping[str, Any], source: RequestSource | None) -> Fetched:
    """What was fetched, under the names in `fetch_needed` or prefixed with the service (`github_title`). A name without
    prefix belongs to the request's own source. Raises InvalidParams for a field that would have no effect."""
    own = source.fields if source is not None else ()
    known = {f"{one.service}_{field}": field for one in SOURCES for field in one.fields}
    for name in given:
        if name not in known and name not in own:
            raise _unknown_field(name, source, known)
    whole = {f"{source.service}_{name}": value for name, value in given.items() if source and name in own}
    whole |= {name: value for name, value in given.items() if name in known}
    whole = {name: _plain_value(name, known[name], value) for name, value in whole.items() if value is not None}
    found = Fetched(
        labels=tuple(label for name, value in whole.items() if known[name] == LABELS for label in value),
        points=next((float(whole[name]) for name in known if known[name] in POINTS and name in whole), None),
    )
    for one in SOURCES:
        parts = {field: whole.get(f"{one.service}_{field}", "") for field in one.fields}
        title, text = ("".join(parts.get(field, "") for field in fields) for fields in (TITLES, TEXTS))
        if title or text:
            return found._replace(title=title, text=text)
    return found


def _unknown_field(name: str, source: RequestSource | None, known: Mapping[str, str]) -> InvalidParams:
    names = [*(source.fields if source is not None else ()), *known]
    whose = "; a name without its service needs source_url" if source is None and name in known.values() else ""
    return InvalidParams(
        f"external_context has no {name[:100]}{did_you_mean(name, names)}{whose}", hint=f"known: {', '.join(names)}"
    )


def _plain_value(name: str, field: str, value: Any) -> Any:
    """The value, checked to be of its field's kind."""
    if field == LABELS:
        right, kind = isinstance(value, list) and all(isinstance(one, str) for one in value), "a list of names"
    elif field in POINTS:
        right, kind = isinstance(value, int | float) and not isinstance(value, bool), "a number"
    else:
        right, kind = isinstance(value, str) and len(value) <= LONGEST, f"a text of at most {LONGEST} characters"
    if not right:
        raise InvalidParams(f"external_context.{name} must be {kind}", hint="send what was fetched under its name")
    return value


def planned_as(source_type: str) -> SourceType:
    """What plan.md calls the source of a request. It has fewer names for sources than pipelines have."""
    if source_type == "text":
        return "prompt"
    return next((source.planned_as for source in SOURCES if source.type == source_type), "custom")


def is_main_branch(branch: str | None) -> bool:
    return (branch or "") in MAIN_BRANCHES

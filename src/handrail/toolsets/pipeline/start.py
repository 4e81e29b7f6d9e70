"""Toolset `pipeline`, its beginning: what is requested, its size, what the person confirms. Nothing is written before
the confirmation. Loaded when a pipeline starts; the tools are declared in `tools.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from handrail.domain.pipeline.budget import Budget, check_budget, check_limits, estimate
from handrail.domain.pipeline.flow import Flow, weakens
from handrail.domain.pipeline.lessons import Lessons
from handrail.domain.pipeline.past_index import index_read, lessons_in
from handrail.domain.pipeline.request import (
    SLUG,
    SPECS,
    Fetched,
    Flags,
    ParsedRequest,
    fetch_needed,
    fetched,
    is_main_branch,
    slug,
    take_apart,
)
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.start import (
    RunRequest,
    begin,
    check_until,
    costs_of,
    detect,
    finished_runs,
    lessons_from,
    own_limits,
    state_from,
)
from handrail.domain.pipeline.state import Facts, RunState
from handrail.domain.pipeline.turns import run_at
from handrail.kernel.errors import InvalidParams, NotAllowed
from handrail.operation import Call
from handrail.toolsets.pipeline.tools import Confirmation, Init, InitWithContext

TEMPLATES = {"S": "light", "M": "standard", "L": "full"}
QUESTIONS = (
    "What is the main goal of this change?",
    "Are there any constraints or dependencies?",
    "What is the expected scope of changes?",
)
SOURCE = 500
ERRORS, ERROR = 10, 600
"""How many errors of a request are reported, and the length of each: if there are more, they are all of one kind."""
SAME_DAY = 100
"""How many runs of one name on one day are tried to find a free name."""
LONGEST_PLACE = 250
"""The longest folder name, in bytes. A request in a script without spaces may be longer; it names no folder."""


class Prepared(NamedTuple):
    """What was read before the unit of work."""

    flows: dict[str, Flow]
    taken: bool = False
    """True if the workspace's folder already exists."""
    begun: bool = False
    """True if it contains a run of its own."""
    files: Mapping[str, str] = {}
    """The documents in it."""
    asks_less: Sequence[str] = ()
    """Which questions and reviews of its effort the chosen flow leaves out."""
    past: str | None = None
    """What `.specs/index.json` says about past runs."""


# -- pipeline_init ----------------------------------------------------------------------------------------------------


def pipeline_init(call: Call, request: Init) -> dict[str, Any]:
    asked = take_apart(request.arguments, request.current_branch)
    known = _known_workspace(call, asked.text)
    if known is not None:
        return {"resume_mode": "auto", "workspace": known, "instruction": "call state_resume_info"}
    errors = list(asked.errors)
    if f"{SPECS}/" in asked.text and not errors:
        errors.append(f"no run has the workspace {asked.text}; name one that is there, or say what is to be done")
    if errors:
        return {"errors": [error[:ERROR] for error in dict.fromkeys(errors)][:ERRORS]}
    day = datetime.fromtimestamp(call.work.now_ms() / 1000, UTC).strftime("%Y%m%d")
    name = _free_name(call, day, slug(asked.text), asked.flags)
    answer: dict[str, Any] = {
        "workspace": f"{SPECS}/{day}-{name}",
        "spec_name": name,
        "source_type": asked.source_type,
        "source_url": asked.text if asked.source is not None else "",
        "source_id": asked.source_id or "",
        "core_text": asked.text,
        "flags": asked.flags.shown(),
    }
    if asked.source is not None:
        answer["fetch_needed"] = fetch_needed(asked.source)
    return answer


def _free_name(call: Call, day: str, name: str, flags: Flags) -> str:
    """The name, with a number if a run of this day has it or its folder exists. If a run starts at a later phase, its
    folder already exists, with its documents, and is not taken by that."""
    specs = call.world.specs(call.here.repository)
    for number in range(1, SAME_DAY):
        end = f"-{number}" if number > 1 else ""
        proposed = f"{name[: SLUG - len(end)].rstrip('-')}{end}"
        workspace = f"{SPECS}/{day}-{proposed}"
        there = specs.exists(workspace) and (flags.begin_at is None or specs.state(workspace) is not None)
        if not there and run_at(call.work, call.here.repository, workspace) is None:
            return proposed
    return name


def looked_for_state(call: Call, request: Init) -> str | None:
    """The workspace that is named and has a run of its own on disk, whether the store knows it or not."""
    workspace = _named_workspace(take_apart(request.arguments, None).text)
    if workspace is None or call.world.specs(call.here.repository).state(workspace) is None:
        return None
    return workspace


def _named_workspace(text: str) -> str | None:
    """The workspace that the text names, with or without `.specs/` in front."""
    if not text or " " in text or not text.isprintable():
        return None
    inner = text.rstrip("/").rpartition(f"{SPECS}/")[2]
    plain = "/" not in inner and inner not in ("", ".", "..") and len(inner.encode()) <= LONGEST_PLACE
    return f"{SPECS}/{inner}" if plain else None


def _known_workspace(call: Call, text: str) -> str | None:
    workspace = _named_workspace(text)
    if workspace is None or run_at(call.work, call.here.repository, workspace) is not None:
        return workspace
    copied: str | None = call.prepared
    return copied


# -- pipeline_init_with_context ---------------------------------------------------------------------------------------


def looked_at_flows(call: Call, request: InitWithContext) -> Prepared:
    flows = call.world.flows()
    names = [*TEMPLATES.values()]
    confirmed = request.user_confirmation
    if confirmed is not None and confirmed.flow is not None:
        names.append(confirmed.flow)
    found = {name: flows.find(name) for name in names}
    if confirmed is None:
        return Prepared(found)
    specs, workspace = call.world.specs(call.here.repository), _workspace(request, confirmed)
    template = TEMPLATES[confirmed.effort]
    measure = flows.bundled(template)
    return Prepared(
        found,
        specs.exists(workspace),
        specs.state(workspace) is not None,
        specs.texts(workspace),
        weakens(found[confirmed.flow or template], measure) if measure is not None else (),
        specs.index(),
    )


def pipeline_init_with_context(call: Call, request: InitWithContext) -> dict[str, Any]:
    flags = _flags(request.flags)
    asked = _source(request)
    found = fetched(request.external_context, asked.source if asked is not None else None)
    body = found.body or (request.task_text or "").strip()
    if request.user_confirmation is not None and request.discussion_answers is not None:
        raise InvalidParams(
            "discussion_answers and user_confirmation cannot be sent together: the call is ambiguous",
            hint="first discussion_answers; then user_confirmation with the enriched_request_body that came of them, "
            "or with its own discussion_answers",
        )
    if request.user_confirmation is not None:
        return _start_run(call, request, request.user_confirmation, flags, asked, body)
    from_text = asked is None or asked.source is None
    if flags.discuss and from_text and not flags.auto and request.discussion_answers is None:
        message = "Please answer the following questions; the answers go into the request."
        return {"needs_discussion": {"questions": list(QUESTIONS), "message": message}}
    answers = request.discussion_answers
    holds = ", which holds the answers" if answers else ""
    notes = [f"Send back enriched_request_body{holds}, in user_confirmation."]
    if flags.discuss and not from_text:
        notes.append("--discuss asks about requests in words only, not about issues.")
    return {"needs_user_confirmation": _to_confirm(call, found, flags, _with_discussion(body, answers), notes)}


def _with_discussion(body: str, answers: str | None) -> str:
    """The request with the answers to the questions about it."""
    said = (answers or "").strip()
    return f"{body}\n\n## Discussion\n\n{said}".strip() if said else body


def _source(request: InitWithContext) -> ParsedRequest | None:
    """Where the request comes from. It later appears in commands and front matter, so it must be one plain word."""
    for name in ("source_url", "source_id"):
        given = getattr(request, name)
        if given and (not given.isprintable() or " " in given or given.startswith("-") or len(given) > SOURCE):
            raise InvalidParams(f"{name} is one word without blanks", hint="send back what pipeline_init gave")
    if not request.source_url:
        return None
    asked = take_apart(request.source_url, None)
    if asked.errors or asked.source is None:
        raise InvalidParams(
            f"{request.source_url} is not an issue's address", hint="send back what pipeline_init gave, or leave it out"
        )
    return asked


def _to_confirm(call: Call, fetch: Fetched, flags: Flags, body: str, notes: Sequence[str]) -> dict[str, Any]:
    found = detect(flags.effort_override, fetch.points, fetch.labels, body)
    message = f'Detected effort="{found.effort}": {found.evidence}. Confirm it or choose another.'
    prepared: Prepared = call.prepared
    runs = finished_runs(call.work, call.here.repository)
    expected = estimate(costs_of(runs, found.effort, call.budget.prices))
    return {
        "detected_effort": found.effort,
        "effort_options": {
            effort: {
                "skipped_phases": _skipped(prepared.flows[template]),
                "recommended": effort == found.effort,
            }
            for effort, template in TEMPLATES.items()
        },
        "current_branch": flags.current_branch or "",
        "is_main_branch": is_main_branch(flags.current_branch),
        "enriched_request_body": body,
        "message": " ".join((message, *notes)),
        **({"cost_estimate": expected} if expected is not None else {}),
    }


def _skipped(flow: Flow) -> list[dict[str, str]]:
    return [{"phase_id": phase.id, "label": phase.label} for phase in flow.phases if phase.id in flow.skip]


def _start_run(
    call: Call, request: InitWithContext, confirmed: Confirmation, flags: Flags, asked: ParsedRequest | None, body: str
) -> dict[str, Any]:
    prepared: Prepared = call.prepared
    workspace = _workspace(request, confirmed)
    there = prepared.taken and (flags.begin_at is None or prepared.begun)
    if there or run_at(call.work, call.here.repository, workspace) is not None:
        raise InvalidParams(
            f"{workspace} is there already", hint="choose another workspace_slug, or go on with state_resume_info"
        )
    flow = prepared.flows[confirmed.flow or TEMPLATES[confirmed.effort]]
    if call.humans_decide and prepared.asks_less and flow.name not in call.own_flows:
        raise NotAllowed(
            f"only people open gates here, and the flow {flow.name} asks them less: {prepared.asks_less[0]}",
            hint=f"choose another flow; or a person names {flow.name} in own_flows of .handrail/config.toml and runs "
            "`handrail trust`; a running server follows that when it is started again",
        )
    source_type = asked.source_type if asked is not None else "text"
    facts = Facts(source_type=source_type, skip_pr=flags.skip_pr, humans_decide=call.humans_decide)
    check_until(flow, facts, flags.until, RunState(), flags.begin_at)
    body = (confirmed.enriched_request_body or _with_discussion(body, confirmed.discussion_answers)).strip()
    name = workspace.removeprefix(f"{SPECS}/").partition("-")[2]
    branch = flags.current_branch if confirmed.use_current_branch else f"feature/{name}"
    if confirmed.use_current_branch and (not branch or branch.startswith("-") or not branch.isprintable()):
        raise InvalidParams("the current branch is not known", hint="pass flags.current_branch")
    if not body:
        raise InvalidParams("there is nothing to do: the request is empty", hint="send task_text or external_context")
    begun = RunRequest(
        repository=call.here.repository,
        workspace=workspace,
        name=name,
        body=body,
        effort=confirmed.effort,
        flow=flow,
        flags=flags,
        branch=branch,
        source_type=source_type,
        source_url=request.source_url,
        source_id=request.source_id,
        humans_decide=call.humans_decide,
        limits=_limits(call.budget, flags.limits),
    )
    state = state_from(flow, facts, prepared.files, flags.begin_at)
    run = begin(call.work, begun, state, _lessons(call, body, prepared.past))
    return {
        "ready": True,
        "workspace": workspace,
        "effort": confirmed.effort,
        "flow_template": flow.name,
        "skipped_phases": flow.skip,
        # If the run starts from existing documents, an existing request stays as it is.
        "request_md_content": prepared.files.get("request.md") or request_md(run, body),
        "branch": branch,
        "create_branch": not confirmed.use_current_branch,
        "workflow_id": run.id,
        **({"given_phases": state.given} if state.given else {}),
    }


def _limits(budget: Budget, asked: Mapping[str, float]) -> dict[str, float]:
    check_budget(budget)
    check_limits(asked)
    return own_limits(budget.limits, asked)


def _lessons(call: Call, body: str, index: str | None) -> Lessons:
    """What past runs teach. If the store has none, as in a fresh clone, they are read from `.specs/index.json`."""
    runs = finished_runs(call.work, call.here.repository)
    return lessons_from(runs, body) if runs or index is None else lessons_in(body, index_read(index))


def _workspace(request: InitWithContext, confirmed: Confirmation) -> str:
    """The run's folder: the proposed date, the source's number if there is one, and the chosen name."""
    proposed = request.workspace.rstrip("/").removeprefix(f"{SPECS}/")
    day, _, rest = proposed.partition("-")
    if not (day.isascii() and day.isdigit() and len(day) == 8):
        raise InvalidParams(
            f"{request.workspace} is no workspace that pipeline_init proposed",
            hint=f"such as {SPECS}/20260401-fix-auth",
        )
    name = slug(confirmed.workspace_slug) if confirmed.workspace_slug else slug(rest)
    number = slug(request.source_id) if request.source_id and confirmed.workspace_slug else ""
    return f"{SPECS}/{day}-{number}-{name}" if number else f"{SPECS}/{day}-{name}"


def _flags(given: dict[str, Any]) -> Flags:
    try:
        return msgspec.convert(given, Flags)
    except msgspec.ValidationError as problem:
        raise InvalidParams(f"flags cannot be read: {problem}", hint="send back what pipeline_init gave") from None


def request_md(run: PipelineRun, body: str) -> str:
    """The request as every agent of the run reads it."""
    lines = ["---", f"source_type: {run.source_type}"]
    if run.source_url:
        lines.append(f"source_url: {run.source_url}")
    if run.source_id:
        lines.append(f"source_id: {run.source_id}")
    return "\n".join([*lines, "---", "", body, ""])


def wrote_request(call: Call, _: InitWithContext, answer: dict[str, Any]) -> None:
    """Writes `request.md`, once the run exists."""
    if answer.get("ready"):
        specs = call.world.specs(call.here.repository)
        specs.write(answer["workspace"], "request.md", answer["request_md_content"])

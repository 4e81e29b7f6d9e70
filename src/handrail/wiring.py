"""The composition root: from settings to a server or a call. The only module that knows every ring."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from handrail import __version__
from handrail.domain.crew.presence import CrewRules
from handrail.domain.journal.checking import Checks
from handrail.domain.journal.tracking import Snapshot, Tracker
from handrail.domain.pipeline.budget import Budget
from handrail.domain.workspaces.worktrees import Worktrees
from handrail.kernel import limits
from handrail.kernel.ledger import Actor
from handrail.kernel.records import UnitOfWork
from handrail.known_types import make_known
from handrail.operation import Bounds, Call, Here, HttpAddress, ResultT, ServerFacts
from handrail.outside.guide_files import GuideFiles, standard_sources
from handrail.outside.matching import LinearMatcher
from handrail.outside.processes import is_alive, new_session
from handrail.outside.project import repository_root
from handrail.outside.template_files import TemplateFiles, standard_templates
from handrail.protocol.exchange import Exchange
from handrail.protocol.offer import Changing, NoResources, Offer
from handrail.protocol.revisions import NEWEST
from handrail.protocol.server import Server
from handrail.protocol.stdio import StdioLimits
from handrail.selection import Selection, select
from handrail.settings import Settings, load_settings
from handrail.surfaces.mcp.prompts import CatalogPrompts
from handrail.surfaces.mcp.tools import CatalogMethods, CatalogTools
from handrail.surfaces.mcp.watching import NAMED_BY, Follower
from handrail.surfaces.toolset_switch import ToolsetSwitch

if TYPE_CHECKING:
    from handrail.domain.pipeline.flow_shelf import FlowShelf
    from handrail.domain.pipeline.specs import Specs
    from handrail.domain.prompts.text import PromptText
    from handrail.outside.repository_profile import RepositoryProfiles
    from handrail.store.store import Store
    from handrail.surfaces.mcp.resources import AllResources

HANDRAIL_DESCRIPTION = "Steps to hold on to, for coding agents"
LOOKUP_PROFILE = "workflowlookup"
LOOKUP_DESCRIPTION = "Workflow Orchestration System MCP Server"
LOOKUP_VERSION = "1.0.0"
LOOK_AGAIN_S = 0.2
"""How often who waits for a store that is not there yet looks whether somebody has made it."""
INSTRUCTION_CHARACTERS = 520
"""About 110 tokens: every turn of every client's model pays for them."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where Handrail runs. `folder` is the working copy it was started in, where that is not the project's own."""

    project: Path
    folder: Path | None = None
    home: Path
    environ: Mapping[str, str]


class LazyLedger:
    """The store, opened by the first operation that uses it: a guide needs none, and a start pays for none."""

    def __init__(self, opening: Callable[[], Store]) -> None:
        self._opening = opening
        self._store: Store | None = None
        self._lock = threading.Lock()

    def open(self) -> Store:
        with self._lock:
            if self._store is None:
                self._store = self._opening()
            return self._store

    def run(self, actor: Actor, work: Callable[[UnitOfWork], ResultT], *, writing: bool = False) -> ResultT:
        return self.open().run(actor, work, writing=writing)

    def renew(self, holder: str, ttl_ms: int) -> None:
        self.open().renew(holder, ttl_ms)

    def position(self) -> int:
        return self.open().position()

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        return self.open().wait(position, timeout_s, cancelled)


class LookingLedger(LazyLedger):
    """A store that looking does not make: nothing is in it until somebody's first write has made it. Not for who
    writes."""

    def __init__(self, ledger: LazyLedger, is_there: Callable[[], bool]) -> None:
        super().__init__(_nothing_stored)
        self._ledger = ledger
        self._is_there = is_there
        self._made = False

    def open(self) -> Store:
        return self._ledger.open() if self._there() else super().open()

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        left = timeout_s
        while not self._there():
            if left <= 0 or cancelled():
                return False
            threading.Event().wait(min(LOOK_AGAIN_S, left))
            left -= LOOK_AGAIN_S
        return self._ledger.wait(position, max(0.0, left), cancelled)

    def look(self, actor: Actor, work: Callable[[UnitOfWork], ResultT]) -> ResultT:
        """What `work` makes of a look that may take long: writers of this process do not wait for it."""
        return self.open().look(actor, work)

    def _there(self) -> bool:
        self._made = self._made or self._is_there()
        return self._made


def looking_ledger(place: Place, settings: Settings, ledger: LazyLedger | None = None) -> LookingLedger:
    """The store that these settings mean, for who only looks."""
    return LookingLedger(ledger or ledger_at(place, settings), lambda: has_store(place, settings))


def has_store(place: Place, settings: Settings) -> bool:
    """Whether the store is there already. A database server is taken to be: nothing is made by asking it."""
    from handrail.store.opening import database_path  # noqa: PLC0415 - the store, only once something runs

    address = store_address(place, settings)
    return "://" in address or database_path(address, place.project).exists()


def _nothing_stored() -> Store:
    from handrail.outside.world import RandomIds, SystemClock  # noqa: PLC0415 - only where there is no store
    from handrail.store.memory import MemoryEngine  # noqa: PLC0415 - as above
    from handrail.store.store import Store  # noqa: PLC0415 - as above

    clock = SystemClock()
    return Store(MemoryEngine(), clock=clock, ids=RandomIds(clock))


def _tracker(place: Place, settings: Settings, ledger: LazyLedger) -> Tracker:
    """The tracker of working copies. Once a day it gives up the snapshots that are too old or too many."""
    from handrail.domain.journal.keeping import LOOKING  # noqa: PLC0415 - only once work is journalled
    from handrail.domain.journal.pruning import DAY_MS, Keeping, prune, worth_keeping  # noqa: PLC0415 - as above
    from handrail.outside.tracking import tracker_at  # noqa: PLC0415 - as above

    make_known(Snapshot)
    tracker = tracker_at(place.project)
    if tracker.is_due(DAY_MS):
        rule = Keeping(settings.snapshot_days, settings.snapshot_count)
        prune(tracker, ledger.run(LOOKING, lambda unit: worth_keeping(unit, rule)))
    return tracker


def _checks(settings: Settings) -> Checks:
    from handrail.outside.check_runner import CheckRunner  # noqa: PLC0415 - only for tasks that verify

    return CheckRunner(settings.checks, timeout_s=settings.check_timeout_s)


def _worktrees(repository: str) -> Worktrees:
    from handrail.outside.worktrees import worktrees_at  # noqa: PLC0415 - only where worktrees are used

    return worktrees_at(Path(repository))


def _specs(repository: str) -> Specs:
    from handrail.domain.pipeline.engine import Action  # noqa: PLC0415 - only where a pipeline runs
    from handrail.domain.pipeline.flow import Flow  # noqa: PLC0415 - as above
    from handrail.domain.pipeline.importing import Copied  # noqa: PLC0415 - as above
    from handrail.domain.pipeline.learning import Lessons  # noqa: PLC0415 - as above
    from handrail.domain.pipeline.state import RunState  # noqa: PLC0415 - as above
    from handrail.outside.spec_files import SpecFiles  # noqa: PLC0415 - as above

    make_known(Action, Copied, Flow, Lessons, RunState)  # what a run is read back into
    return SpecFiles(Path(repository))


def _flows(place: Place) -> FlowShelf:
    from handrail.domain.pipeline.asking import Flags  # noqa: PLC0415 - as above
    from handrail.domain.pipeline.flow import Flow  # noqa: PLC0415 - as above
    from handrail.outside.flow_files import FlowFiles, standard_flows  # noqa: PLC0415 - as above

    make_known(Flags, Flow)
    return FlowFiles(standard_flows(home=place.home, project=place.project))


@functools.cache
def _profiles() -> RepositoryProfiles:
    from handrail.outside.repository_profile import RepositoryProfiles  # noqa: PLC0415 - as above

    return RepositoryProfiles()


def _profile(repository: str) -> list[str]:
    from handrail.domain.pipeline.profile import lines  # noqa: PLC0415 - as above

    return lines(_profiles().of(repository))


def _role(place: Place, name: str) -> str:
    from handrail.outside.role_files import RoleFiles  # noqa: PLC0415 - as above

    return RoleFiles(place.project).role(name).text


def _prompts() -> Mapping[str, PromptText]:
    from handrail.outside.prompt_files import bundled_prompts  # noqa: PLC0415 - only when a client asks for prompts

    return bundled_prompts()


def _new_secret() -> str:
    import secrets  # noqa: PLC0415 - only when an agent registers

    return secrets.token_urlsafe(24)


def ledger_at(place: Place, settings: Settings) -> LazyLedger:
    """The store that these settings mean, not opened yet."""
    return LazyLedger(lambda: _open_store(place, settings))


def store_address(place: Place, settings: Settings) -> str:
    """The store's address as `open_engine` takes it: empty for the project's own."""
    from handrail.store.opening import user_database  # noqa: PLC0415 - only once something is stored

    return str(user_database(place.home)) if settings.global_store else settings.db


def _open_store(place: Place, settings: Settings) -> Store:
    from handrail.domain.board.entry import BoardEntry  # noqa: PLC0415 - only once something is stored
    from handrail.domain.registry.running import RunningCall  # noqa: PLC0415 - as above
    from handrail.outside.world import RandomIds, SystemClock  # noqa: PLC0415 - as above
    from handrail.store.opening import make_user_folder, open_engine  # noqa: PLC0415 - as above
    from handrail.store.store import Store  # noqa: PLC0415 - as above

    make_known(BoardEntry, RunningCall)  # what history is read back into
    clock = SystemClock()
    if settings.global_store:
        make_user_folder(place.home)
    address = store_address(place, settings)
    engine = open_engine(address, project=place.project, version=__version__, durable=settings.durable)
    return Store(engine, clock=clock, ids=RandomIds(clock))


class Handrail(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one process needs, put together."""

    settings: Settings
    selection: Selection
    switch: ToolsetSwitch
    guides: GuideFiles
    call: Call
    ledger: LazyLedger


def assemble(
    place: Place,
    settings: Settings,
    *,
    http: HttpAddress | None = None,
    read_only: bool = False,
    ledger: LazyLedger | None = None,
) -> Handrail:
    """The parts every surface shares. Opens nothing and reads no guide until one is asked for."""
    ledger = ledger or ledger_at(place, settings)
    selection = select(
        profile=settings.profile,
        toolsets=settings.toolsets,
        enable=settings.enable,
        dynamic=settings.dynamic,
    )
    switch = ToolsetSwitch(selection, read_only=read_only)
    sources = standard_sources(
        home=place.home, project=place.project, storage_path=place.environ.get("WORKFLOW_STORAGE_PATH")
    )
    guides = GuideFiles(sources, matcher=LinearMatcher(), server_version=__version__)
    lookup = _is_lookup(settings)
    facts = ServerFacts(
        name=LOOKUP_PROFILE if lookup else "handrail",
        version=LOOKUP_VERSION if lookup else __version__,
        protocol_revision=NEWEST,
        http=http,
        max_message_bytes=settings.max_message_bytes,
    )
    here = Here(
        repository=str(place.project),
        folder=str(place.folder or place.project),
        shared=_is_shared(place, settings),
        root_of=repository_root,
    )
    templates = TemplateFiles(standard_templates(home=place.home, project=place.project))
    call = Call(
        here=here,
        guides=guides,
        templates=templates,
        server=facts,
        toolsets=switch,
        ledger=ledger,
        tracker=lambda: _tracker(place, settings, ledger),
        checks=lambda: _checks(settings),
        worktrees=_worktrees,
        specs=_specs,
        flows=lambda: _flows(place),
        profile=_profile,
        roles=lambda name: _role(place, name),
        humans_decide=settings.approvals == "human",
        own_flows=settings.own_flows,
        bounds=Bounds(wait_ms=settings.max_wait_ms, events=settings.event_history, children=settings.max_children),
        budget=Budget(settings.budget, settings.prices),
        new_session=functools.partial(new_session, guest=http is not None),
        is_alive=is_alive,
        crew=CrewRules(heartbeat_ms=settings.heartbeat_ms, strict=settings.identity == "strict"),
        new_secret=_new_secret,
    )
    return Handrail(settings=settings, selection=selection, switch=switch, guides=guides, call=call, ledger=ledger)


def _is_shared(place: Place, settings: Settings) -> bool:
    """Whether the store may serve other repositories too: unless it lies inside this one, it may."""
    if settings.global_store or "://" in settings.db:
        return True
    if not settings.db:
        return place.project == place.home  # whose own store is the global one
    return not Path(os.path.normpath(place.project / settings.db)).is_relative_to(place.project)


def settings_at(place: Place, given: Mapping[str, object]) -> Settings:
    return load_settings(given=given, environ=place.environ, project=place.project)


class _CompletedLater:
    """Behind the protocol's `Completions` port; what completes is loaded when something is to be completed."""

    def __init__(self, call: Call, prompts: CatalogPrompts) -> None:
        self._call = call
        self._prompts = prompts

    def complete(self, exchange: Exchange, reference: Mapping[str, Any], argument: Mapping[str, Any]) -> Sequence[str]:
        from handrail.surfaces.mcp.completions import Completed  # noqa: PLC0415 - few clients ever ask

        return Completed(self._call, self._prompts).complete(exchange, reference, argument)


def _resources(handrail: Handrail) -> tuple[AllResources, Follower]:
    """Everything that has an address, and who tells of its changes."""
    from handrail.surfaces.mcp.resources import AllResources, touched  # noqa: PLC0415 - where a toolset has some

    follower = Follower(handrail.ledger, lambda after: handrail.ledger.open().feed(after=after), touched)
    return AllResources(handrail.call, follower), follower


def build_server(handrail: Handrail) -> Server:
    """The MCP server over the selected toolsets."""
    settings, selection = handrail.settings, handrail.selection
    lookup = _is_lookup(settings)
    tools = CatalogTools(handrail.switch, handrail.call, whole=settings.output_schemas or selection.names == ("guide",))
    addressed = settings.dynamic or any(name in selection.names for name in NAMED_BY)
    resources, follower = _resources(handrail) if addressed else (None, None)
    prompts = CatalogPrompts(handrail.call, _prompts)
    server = Server(
        Offer(
            name=handrail.call.server.name,
            version=handrail.call.server.version,
            description=LOOKUP_DESCRIPTION if lookup else HANDRAIL_DESCRIPTION,
            instructions=None if lookup else instructions(selection) or None,
            tools=tools,
            changing=Changing(tools=settings.dynamic, prompts=settings.dynamic, resource_updates=resources is not None),
            is_quick=tools.is_quick,
            methods=CatalogMethods(handrail.switch, handrail.call),
            resources=resources or NoResources(),
            watching=resources,
            prompts=None if lookup else prompts,
            completions=None if lookup else _CompletedLater(handrail.call, prompts),
            extra_capabilities={"tools": {"notifyProgress": False}},
            page_size=limits.TOOLS_PER_PAGE,
        )
    )
    if follower is not None:
        follower.tells(server.subscribers)

    def changed() -> None:
        server.subscribers.list_changed("toolsListChanged")
        if not lookup and prompts.is_outdated():
            server.subscribers.list_changed("promptsListChanged")

    handrail.switch.when_changed = changed
    return server


def instructions(selection: Selection) -> str:
    """What an agent is told at connection time: what each toolset has to say, and where that would be too much for
    what every client's model reads again and again, the first sentence of each."""
    told = [toolset.instructions for toolset in selection.toolsets if toolset.instructions]
    if len(whole := "\n".join(told)) <= INSTRUCTION_CHARACTERS:
        return whole
    return "\n".join(f"{text.partition('. ')[0].removesuffix('.')}." for text in told)


def stdio_limits(settings: Settings) -> StdioLimits:
    return StdioLimits(
        message_bytes=settings.max_message_bytes,
        message_depth=limits.MESSAGE_DEPTH,
        queued_bytes=max(limits.QUEUED_BYTES, settings.max_message_bytes),
        waiting_calls=limits.WAITING_CALLS,
        grace_s=limits.SHUTDOWN_GRACE_S,
    )


def _is_lookup(settings: Settings) -> bool:
    return settings.profile == LOOKUP_PROFILE and not settings.toolsets

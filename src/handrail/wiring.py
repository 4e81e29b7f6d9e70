"""The composition root: from settings to a server or a call. Only this, `http_wiring` and `page_wiring` know every
ring."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from handrail import __version__
from handrail.kernel import limits
from handrail.kernel.errors import StoreUnusable
from handrail.kernel.late import late_module
from handrail.kernel.ledger import Actor
from handrail.kernel.records import UnitOfWork
from handrail.known_types import make_known
from handrail.operation import Call, Here, HttpAddress, ResultT, ServerFacts
from handrail.outside.project import repository_root
from handrail.outside.trusted_settings import agreed_for
from handrail.protocol.exchange import Exchange
from handrail.protocol.offer import Changing, NoResources, Offer
from handrail.protocol.revisions import NEWEST
from handrail.protocol.server import Server
from handrail.protocol.stdio import StdioLimits
from handrail.selection import Selection, select
from handrail.settings import Settings, load_settings, said_by_project
from handrail.settings_in_force import LiveSettings, house_rules, live_settings
from handrail.store_wiring import WorkPlace as WorkPlace  # noqa: PLC0414 - callers import it from here
from handrail.store_wiring import check_place_of_store
from handrail.store_wiring import check_trusted as check_trusted  # noqa: PLC0414 - as above
from handrail.store_wiring import key_for as key_for  # noqa: PLC0414 - as above
from handrail.store_wiring import store_address as store_address  # noqa: PLC0414 - as above
from handrail.surfaces.mcp.prompts import CatalogPrompts
from handrail.surfaces.mcp.resource_updates import NAMED_BY, Follower
from handrail.surfaces.mcp.tools import CatalogMethods, CatalogTools
from handrail.surfaces.toolset_switch import ToolsetSwitch
from handrail.world_wiring import RealWorld, guides_at

if TYPE_CHECKING:
    from handrail.domain.board import entry as board_entry
    from handrail.domain.prompts.text import PromptText
    from handrail.domain.registry import cancellation as registry_operation
    from handrail.outside import prompt_files, world
    from handrail.outside.guide_files import GuideFiles
    from handrail.store import memory, open_engine, store, store_move
    from handrail.store.store import Store
    from handrail.surfaces.mcp import completions as mcp_completions
    from handrail.surfaces.mcp import resources as mcp_resources
else:
    board_entry = late_module("handrail.domain.board.entry")
    registry_operation = late_module("handrail.domain.registry.cancellation")
    prompt_files = late_module("handrail.outside.prompt_files")
    world = late_module("handrail.outside.world")
    memory = late_module("handrail.store.memory")
    open_engine = late_module("handrail.store.open_engine")
    store = late_module("handrail.store.store")
    store_move = late_module("handrail.store.store_move")
    mcp_completions = late_module("handrail.surfaces.mcp.completions")
    mcp_resources = late_module("handrail.surfaces.mcp.resources")

HANDRAIL_DESCRIPTION = "Steps to hold on to, for coding agents"
LOOKUP_PROFILE = "workflowlookup"
LOOKUP_DESCRIPTION = "Workflow Orchestration System MCP Server"
LOOKUP_VERSION = "1.0.0"
LOOK_AGAIN_S = 0.2
"""How often a reader waiting for a store that does not exist yet checks whether it has been created."""
INSTRUCTION_CHARACTERS = 520
"""About 110 tokens, which every client's model pays for on every turn."""


class LazyLedger:
    """The store, opened by the first operation that uses it: guides need none, and start-up should not pay for it."""

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

    def clock_remark(self) -> str | None:
        """What is wrong with this machine's clock, as far as a store that is open could tell."""
        return self._store.clock_remark() if self._store is not None else None

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        return self.open().wait(position, timeout_s, cancelled)


class LookingLedger(LazyLedger):
    """A store that reading does not create: it appears empty until a first write creates it. For readers only."""

    def __init__(self, ledger: LazyLedger, is_there: Callable[[], bool]) -> None:
        super().__init__(_nothing_stored)
        self._ledger = ledger
        self._look_for = is_there
        self._made = False

    def open(self) -> Store:
        return self._ledger.open() if self.is_there() else super().open()

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        left = timeout_s
        while not self.is_there():
            if left <= 0 or cancelled():
                return False
            threading.Event().wait(min(LOOK_AGAIN_S, left))
            left -= LOOK_AGAIN_S
        return self._ledger.wait(position, max(0.0, left), cancelled)

    def clock_remark(self) -> str | None:
        return self._ledger.clock_remark()

    def look(self, actor: Actor, work: Callable[[UnitOfWork], ResultT]) -> ResultT:
        """Runs a read that may take long without making writers of this process wait."""
        return self.open().look(actor, work)

    def is_there(self) -> bool:
        """Whether the store has been created."""
        self._made = self._made or self._look_for()
        return self._made


def looking_ledger(place: WorkPlace, settings: Settings, ledger: LazyLedger | None = None) -> LookingLedger:
    """The store that these settings mean, for readers. Unless a ledger is passed, raises StoreUnusable if the settings
    name a file that does not exist: a mistyped name would look like a project without any work."""
    if ledger is None:
        _check_named(place, settings)
    return LookingLedger(ledger or ledger_at(place, settings), lambda: is_made(place, settings))


def _check_named(place: WorkPlace, settings: Settings) -> None:
    if not settings.db or settings.global_store or has_store(place, settings):
        return
    if said_by_project(place.project, "db") != settings.db:
        file = place.project / settings.db
        raise StoreUnusable(f"there is no store at {file} yet", hint="check its name; the first write makes it")


def is_made(place: WorkPlace, settings: Settings) -> bool:
    """Whether the store exists. Asks a database server too: an empty database gets its tables from the first writer."""
    address = store_address(place, settings)
    if not address.startswith(open_engine.POSTGRES):
        if has_store(place, settings):
            return True
        check_place_of_store(place, settings)  # an untrusted place is told, not shown as an empty one
        return False
    check_trusted(place, settings)
    return store_move.found_at(address, place.project).schema > 0


def has_store(place: WorkPlace, settings: Settings) -> bool:
    """Whether the store exists. A database server counts as existing: asking it creates nothing."""
    address = store_address(place, settings)
    return "://" in address or open_engine.database_path(address, place.project).exists()


def _nothing_stored() -> Store:
    return store.Store(memory.MemoryEngine(), ids=world.RandomIds(world.SystemClock()))


def _prompts() -> Mapping[str, PromptText]:
    return prompt_files.bundled_prompts()


def ledger_at(place: WorkPlace, settings: Settings) -> LazyLedger:
    """The store that these settings mean, not opened yet."""
    return LazyLedger(lambda: _open_store(place, settings))


def _open_store(place: WorkPlace, settings: Settings) -> Store:
    make_known(board_entry.BoardEntry, registry_operation.RunningCall)  # the types history is read back into
    check_trusted(place, settings)
    if settings.global_store:
        open_engine.make_user_folder(place.home)
    address = store_address(place, settings)
    key = key_for(place, address)
    engine = open_engine.open_engine(
        address, project=place.project, version=__version__, durable=settings.durable, key=key
    )
    return store.Store(engine, ids=world.RandomIds(world.SystemClock()), key=key)


class Handrail(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one process needs, put together."""

    settings: Settings
    """As it was started."""
    live: LiveSettings
    selection: Selection
    switch: ToolsetSwitch
    shelf: Callable[[], GuideFiles]
    call: Call
    ledger: LazyLedger

    @property
    def guides(self) -> GuideFiles:
        return self.shelf()


def assemble(
    place: WorkPlace,
    settings: Settings,
    *,
    http: HttpAddress | None = None,
    read_only: bool = False,
    ledger: LazyLedger | None = None,
    live: LiveSettings | None = None,
) -> Handrail:
    """The parts every surface shares. Opens nothing, and reads no guides until they are needed. `live` is shared by all
    that is served in one process."""
    ledger = ledger or ledger_at(place, settings)
    live = live or live_settings(place.project, place.home, settings)
    selection = select(
        profile=settings.profile,
        toolsets=settings.toolsets,
        enable=settings.enable,
        dynamic=settings.dynamic,
    )
    switch = ToolsetSwitch(selection, read_only=read_only)
    shelf = functools.cache(lambda: guides_at(place))  # shared: it caches what it has read
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
    call = Call(
        here=here,
        world=RealWorld(place, settings, ledger, live=live, guides=shelf, guest=http is not None),
        server=facts,
        toolsets=switch,
        ledger=ledger,
        rules=lambda: house_rules(live.now()),
    )
    return Handrail(
        settings=settings, live=live, selection=selection, switch=switch, shelf=shelf, call=call, ledger=ledger
    )


def _is_shared(place: WorkPlace, settings: Settings) -> bool:
    """Whether the store may serve other repositories too, which is the case unless it is inside this one."""
    if settings.global_store or "://" in settings.db:
        return True
    if not settings.db:
        return place.project == place.home  # whose own store is the global one
    return not Path(os.path.normpath(place.project / settings.db)).is_relative_to(place.project)


def settings_at(place: WorkPlace, given: Mapping[str, object]) -> Settings:
    """The settings in force here: what came with the project counts as far as this person has trusted it."""
    return load_settings(
        given=given, environ=place.environ, project=place.project, agreed=agreed_for(place.project, place.home)
    )


class _CompletedLater:
    """Behind the protocol's `Completions` port; loads the completion code only when something is to be completed."""

    def __init__(self, call: Call, prompts: CatalogPrompts) -> None:
        self._call = call
        self._prompts = prompts

    def complete(self, exchange: Exchange, reference: Mapping[str, Any], argument: Mapping[str, Any]) -> Sequence[str]:
        return mcp_completions.ArgumentCompletions(self._call, self._prompts).complete(exchange, reference, argument)


def _resources(handrail: Handrail) -> tuple[mcp_resources.AllResources, Follower]:
    """Everything that has an address, and the follower that announces changes to it."""
    follower = Follower(handrail.ledger, lambda after: handrail.ledger.open().feed(after=after), mcp_resources.touched)
    return mcp_resources.AllResources(handrail.call, follower), follower


def build_server(handrail: Handrail) -> Server:
    """The MCP server over the selected toolsets."""
    settings, selection = handrail.settings, handrail.selection
    lookup = _is_lookup(settings)
    only_guides = selection.names == ("guide",)  # then they are listed exactly as their document shows them
    tools = CatalogTools(
        handrail.switch, handrail.call, whole=settings.output_schemas or only_guides, as_documented=only_guides
    )
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
            resources=resources or (NoResources() if lookup else None),  # its document declares them
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
    """What an agent is told on connecting: the instructions of each toolset or, if that is more than every turn of
    every client's model should pay for, the first sentence of each."""
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

"""One declaration per operation. The MCP tool, the command, the schema, the docs row and the tests all come from it.

An `Operation` is inert data: nothing here registers itself, scans modules or rewrites functions. `catalog.py` lists the
operations; surfaces are functions of that list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from handrail.domain.crew.agent import CrewRules, Writer
from handrail.domain.pipeline.budget import Budget
from handrail.kernel import limits
from handrail.kernel.errors import Refusal
from handrail.kernel.ledger import Actor
from handrail.kernel.records import UnitOfWork

if TYPE_CHECKING:  # ports that a call carries; the code that builds a call imports what is behind them
    from handrail.domain.guides.shelf import GuideShelf
    from handrail.domain.journal.ports import Checks, Tracker
    from handrail.domain.pipeline.flow_shelf import FlowShelf
    from handrail.domain.pipeline.workspace_texts import Specs
    from handrail.domain.work.templates import TemplateShelf
    from handrail.domain.workspaces.worktrees import Worktrees

RequestT = TypeVar("RequestT", bound=msgspec.Struct)
ResponseT = TypeVar("ResponseT")
ResultT = TypeVar("ResultT")


class Effect(Enum):
    """What a call does to the state."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"


class Toolset(msgspec.Struct, frozen=True, kw_only=True):
    """A vocabulary: the tools of one source document, or of one of its categories."""

    name: str
    family: str
    """The document it comes from: guide, journal, plan, pipeline or registry."""
    purpose: str
    instructions: str = ""
    """What an agent is told at connection time when this toolset is on."""
    flag: str | None = None
    """Its own `--enable-…` switch, if registry.md gives it one."""


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A call that works the same on every surface. In `response`, a mapping lists the members that matter, a list its
    items in order, and `...` inside a text stands for any text: what is listed must be there, more may be."""

    title: str
    given: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Calls made before this one, by tool and arguments. Ids are numbered: the first workflow is wf_1."""
    files: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Files of the project at the time of the call, by path."""
    request: Mapping[str, Any]
    response: Mapping[str, Any] | None = None
    refused: type[Refusal] | None = None


class HttpAddress(msgspec.Struct, frozen=True):
    """Where a server answers over HTTP."""

    host: str
    port: int
    path: str


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the server a call runs in."""

    name: str
    version: str
    protocol_revision: str
    http: HttpAddress | None
    """None on standard input and output."""
    max_message_bytes: int


class PublishedOperation(msgspec.Struct, frozen=True):
    """An operation and its name on this server."""

    name: str
    operation: Operation[Any, Any]


class Switchboard(Protocol):
    """Which toolsets this server has on."""

    @property
    def read_only(self) -> bool:
        """True if only operations that change nothing are available."""
        ...

    def active(self) -> Sequence[Toolset]: ...

    def available(self) -> Sequence[Toolset]: ...

    def published(self) -> Sequence[PublishedOperation]: ...

    def enable(self, names: Sequence[str]) -> None: ...


class Ledger(Protocol):
    """Runs operations that use the store: one unit of work each, all or nothing."""

    def run(self, actor: Actor, work: Callable[[UnitOfWork], ResultT], *, writing: bool = False) -> ResultT:
        """`writing` announces a write: under contention the unit then waits for its turn before it reads."""
        ...

    def renew(self, holder: str, ttl_ms: int) -> None:
        """Extends everything `holder` still holds."""
        ...

    def position(self) -> int:
        """The position of the newest event."""
        ...

    def clock_remark(self) -> str | None:
        """What is wrong with this machine's clock, as far as the store could tell. Opens nothing."""
        ...

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        """True as soon as there is an event after `position`; False when time is up or the wait was cancelled."""
        ...


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """This server's limits; 0 means no limit."""

    wait_ms: int = limits.WAIT_MS
    """The longest a call waits for news."""
    events: int = 0
    """How many events of one run, board or child are shown, counting from the newest."""
    children: int = 0
    """How many agents may be present at once."""


class HouseRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings allow at this moment."""

    humans_decide: bool = False
    """True if only a person may answer a gate."""
    own_flows: tuple[str, ...] = ()
    """Flows accepted here although they ask people less than those bundled with Handrail."""
    bounds: Bounds = Bounds()
    budget: Budget = Budget()
    """What a run may spend here, and what models cost."""
    crew: CrewRules = CrewRules()


class Here(msgspec.Struct, frozen=True, kw_only=True):
    """Where a call is made."""

    repository: str
    """The root of the project the call is made in, used when no repository is named."""
    folder: str
    """The root of the working copy the call is made in: the project's own, or a linked worktree."""
    shared: bool
    """True if the store serves several repositories; otherwise everything in it belongs to this one."""
    root_of: Callable[[str], str]
    """The root of the repository that contains an absolute path; for a linked worktree, that of the main one. A path
    that is not on this machine is only normalised."""

    @property
    def only(self) -> str | None:
        """The repository to restrict queries to; None if every record in the store belongs to this one."""
        return self.repository if self.shared else None


class World(Protocol):
    """What a call may touch of the outside world. Everything behind it is made when it is first asked for."""

    def guides(self) -> GuideShelf: ...

    def templates(self) -> TemplateShelf: ...

    def flows(self) -> FlowShelf: ...

    def role(self, name: str) -> str:
        """The instructions for an agent in this role."""
        ...

    def tracker(self) -> Tracker: ...

    def checks(self) -> Checks: ...

    def worktrees(self, repository: str) -> Worktrees:
        """The worktrees of the repository with this root."""
        ...

    def specs(self, repository: str) -> Specs:
        """The documents of the runs in the repository with this root."""
        ...

    def profile(self, repository: str) -> Sequence[str]:
        """A description, in lines, of what the repository with this root is made of."""
        ...

    def new_secret(self) -> str:
        """A secret nobody can guess."""
        ...

    def new_session(self) -> str | None:
        """A name for a connection, by which others can tell whether it still exists."""
        ...

    def is_alive(self, session: str) -> bool | None:
        """Whether the process behind a session is still running; None if that cannot be told."""
        ...


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a handler may touch."""

    here: Here
    world: World
    server: ServerFacts
    toolsets: Switchboard
    ledger: Ledger
    rules: Callable[[], HouseRules] = HouseRules
    """The rules that hold now: they may become stricter while a server runs, even during a call."""
    session: str | None = None
    """The connection a call comes through; None if every call stands alone."""
    writer: Writer = Writer()
    """The caller, if known."""
    prepared: Any = None
    """The result of the operation's `prepare`."""
    kept: Any = None
    """What the operation's `wait` keeps while this call is under way."""
    unit: UnitOfWork | None = None
    """Set for operations that use the store."""

    @property
    def humans_decide(self) -> bool:
        return self.rules().humans_decide

    @property
    def own_flows(self) -> tuple[str, ...]:
        return self.rules().own_flows

    @property
    def bounds(self) -> Bounds:
        return self.rules().bounds

    @property
    def budget(self) -> Budget:
        return self.rules().budget

    @property
    def crew(self) -> CrewRules:
        return self.rules().crew

    @property
    def work(self) -> UnitOfWork:
        assert self.unit is not None, "an operation that uses the store says so in its declaration"
        return self.unit


class Wait(msgspec.Struct, Generic[RequestT, ResponseT], frozen=True):
    """How a call waits for news: it runs again whenever something has happened, until its answer is worth a reply."""

    for_ms: Callable[[RequestT], int]
    """The longest wait; 0 answers at once."""
    is_over: Callable[[ResponseT], bool]
    keeps: Callable[[], Any] | None = None
    """Makes what a call keeps between two looks, such as how far it has read. The handler finds it in `call.kept`."""


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a form: a choice if it has options, otherwise a text."""

    name: str
    title: str
    options: tuple[str, ...] = ()
    most: int = 0
    """The longest text accepted, in characters."""
    required: bool = False


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Something a person is asked to decide: a text to read and a form to fill in."""

    id: str
    """Identifies the subject. Someone who declined to answer is not asked about the same subject again."""
    message: str
    form: tuple[Field, ...]


class Asks(msgspec.Struct, Generic[RequestT, ResponseT], frozen=True, kw_only=True):
    """How to ask the person at the client what a result asks of them, if they may decide and can be reached. A surface
    without such a person leaves the result as it is."""

    question: Callable[[RequestT, ResponseT], Question | None]
    """None if the result asks nothing."""
    answered: Callable[[RequestT, Question, Mapping[str, str]], RequestT]
    """The request that carries what they filled in."""
    again: Callable[[RequestT], RequestT]
    """The request without anything already acted on, so that it only reads."""
    told_once: tuple[str, ...] = ()
    """Members of a result that the next result would not repeat. They are carried over when another takes its place."""


class Operation(msgspec.Struct, Generic[RequestT, ResponseT], frozen=True, kw_only=True):
    """One thing an agent or a person can ask for."""

    name: str
    toolset: Toolset
    effect: Effect
    summary: str
    request: type[RequestT]
    response: type[ResponseT]
    handler: Callable[[Call, RequestT], ResponseT | None]
    """None is a valid answer: nothing matches what was asked for."""
    refusals: tuple[type[Refusal], ...] = ()
    """The ways it can decline, besides INVALID_PARAMS, which every operation shares."""
    examples: tuple[Example, ...]
    prepare: Callable[[Call, RequestT], Any] | None = None
    """Anything slow, or that reads the outside world: done once, before the unit of work, however often that is
    retried. The handler finds the result in `call.prepared`."""
    follow: Callable[[Call, RequestT, ResponseT], Callable[[Call], ResponseT] | None] | None = None
    """What must happen in the outside world once the result is stored: done after the unit of work. If it returns a
    function, that runs in a unit of its own, and its answer replaces the first."""
    idempotent: bool = False
    """True if the same call again, right after, changes nothing more, whether it is answered or refused. An operation
    that only reads is so without saying it."""
    stored: bool = False
    """True if it reads or writes the store: its handler then runs in one unit of work."""
    wait: Wait[RequestT, ResponseT] | None = None
    """Set if a call may wait for news; it then runs beside the ordered lane."""
    asks: Asks[RequestT, ResponseT] | None = None
    """Set if its result may ask a person something; only for operations that use the store."""
    acts_as: str | None = None
    """The argument that names the acting agent, if it is not the `agent_id` that every stored operation accepts."""
    tells_unread: bool = True
    """False if its answer is about messages anyway; otherwise an agent is told beside it how many wait for it."""
    introduces: bool = False
    """True if from then on the caller is the agent whose id the result names."""
    response_schema: Callable[[], dict[str, Any]] | None = None
    """Only if the response's shape is a document of its own rather than `response`."""

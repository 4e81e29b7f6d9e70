"""One declaration per operation. From it come the MCP tool, the command, the schema, the docs row and the tests.

An `Operation` is inert data: nothing here registers itself, scans modules or rewrites functions. `catalog.py` lists the
operations; surfaces are functions of that list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from handrail.domain.crew.claiming import Writer
from handrail.domain.crew.presence import CrewRules
from handrail.domain.guides.shelf import GuideShelf
from handrail.domain.journal.checking import Checks
from handrail.domain.journal.tracking import Tracker
from handrail.domain.pipeline.budget import Budget
from handrail.domain.work.template_shelf import TemplateShelf
from handrail.domain.workspaces.worktrees import Worktrees
from handrail.kernel import limits
from handrail.kernel.errors import Refusal
from handrail.kernel.ledger import Actor
from handrail.kernel.records import UnitOfWork

if TYPE_CHECKING:
    from handrail.domain.pipeline.flow_shelf import FlowShelf
    from handrail.domain.pipeline.specs import Specs

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
    """Its own `--enable-…` switch, where registry.md gives it one."""


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A call that holds on every surface. In `response`, a mapping shows the members that matter, a list shows items in
    order, and `...` inside a text stands for any text: what is shown must be there, more may be."""

    title: str
    given: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Calls that were made before, by tool and arguments. Ids count: the first workflow is wf_1."""
    files: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Files of the project, by path, as they are when the call is made."""
    request: Mapping[str, Any]
    response: Mapping[str, Any] | None = None
    refused: type[Refusal] | None = None


class HttpAddress(msgspec.Struct, frozen=True):
    """Where a server answers over HTTP."""

    host: str
    port: int
    path: str


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is true of the server a call runs in."""

    name: str
    version: str
    protocol_revision: str
    http: HttpAddress | None
    """None on standard input and output."""
    max_message_bytes: int


class PublishedOperation(msgspec.Struct, frozen=True):
    """An operation under the name it answers to on this server."""

    name: str
    operation: Operation[Any, Any]


class Switchboard(Protocol):
    """Which toolsets this server has on."""

    @property
    def read_only(self) -> bool:
        """True where nothing that changes anything is on offer."""
        ...

    def active(self) -> Sequence[Toolset]: ...

    def available(self) -> Sequence[Toolset]: ...

    def published(self) -> Sequence[PublishedOperation]: ...

    def enable(self, names: Sequence[str]) -> None: ...


class Ledger(Protocol):
    """Where operations that use the store run: one unit of work each, all or nothing."""

    def run(self, actor: Actor, work: Callable[[UnitOfWork], ResultT], *, writing: bool = False) -> ResultT:
        """`writing` says that it will write: where many do, it then waits for its turn before it reads."""
        ...

    def renew(self, holder: str, ttl_ms: int) -> None:
        """Puts off the expiry of what `holder` still holds."""
        ...

    def position(self) -> int:
        """The place of the newest event."""
        ...

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        """True as soon as there is an event after `position`."""
        ...


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What this server keeps within; 0 is no bound."""

    wait_ms: int = limits.WAIT_MS
    """The longest a call waits for news."""
    events: int = 0
    """Events of one run, board or child that are shown: the newest."""
    children: int = 0
    """Agents that may be present at once."""


class Here(msgspec.Struct, frozen=True, kw_only=True):
    """Where a call is made."""

    repository: str
    """The root of the project it is made in: what is meant where no repository is named."""
    folder: str
    """The root of the working copy it is made in: the project's own, or a linked worktree."""
    shared: bool
    """True when the store serves several repositories; else all that is in it belongs to this one."""
    root_of: Callable[[str], str]
    """The root of the repository that an absolute path lies in. Of a linked worktree that is the main one; a path that
    is not on this machine is only tidied."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a handler may touch."""

    here: Here
    guides: GuideShelf
    templates: TemplateShelf
    server: ServerFacts
    toolsets: Switchboard
    ledger: Ledger
    tracker: Callable[[], Tracker]
    checks: Callable[[], Checks]
    worktrees: Callable[[str], Worktrees]
    """The worktrees of the repository with this root."""
    specs: Callable[[str], Specs]
    """The documents of the runs in the repository with this root."""
    flows: Callable[[], FlowShelf]
    profile: Callable[[str], Sequence[str]]
    """What the repository with this root is made of, in lines."""
    roles: Callable[[str], str]
    """What an agent with this name is told."""
    humans_decide: bool = False
    """True where only a person opens a gate."""
    own_flows: tuple[str, ...] = ()
    """Flows that people here accept though they ask less than those that come with Handrail."""
    bounds: Bounds = Bounds()
    budget: Budget = Budget()
    """What a run may spend here, and what models cost."""
    session: str | None = None
    """The connection a call comes through; None where every call is one of its own."""
    new_session: Callable[[], str | None] = lambda: None
    """A name for a connection, by which others can tell whether it is still there."""
    is_alive: Callable[[str], bool | None] = lambda _: None
    """Whether the process behind a session still runs; None where that cannot be told."""
    crew: CrewRules = CrewRules()
    writer: Writer = Writer()
    """Who calls, where that is known."""
    new_secret: Callable[[], str]
    """A secret nobody can guess."""
    prepared: Any = None
    """What the operation's `prepare` has found."""
    unit: UnitOfWork | None = None
    """Set for operations that use the store."""

    @property
    def work(self) -> UnitOfWork:
        assert self.unit is not None, "an operation that uses the store says so in its declaration"
        return self.unit


class Wait(msgspec.Struct, Generic[RequestT, ResponseT], frozen=True):
    """How a call waits for news: it is asked again whenever something happened, until its answer is worth a reply."""

    for_ms: Callable[[RequestT], int]
    """How long at most; 0 answers at once."""
    is_over: Callable[[ResponseT], bool]


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a form: a choice where it has options, else a text."""

    name: str
    title: str
    options: tuple[str, ...] = ()
    most: int = 0
    """The longest text it takes, in characters."""
    required: bool = False


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Something a person is asked to decide: a text to read and a form to fill in."""

    id: str
    """What it is about. Whoever has declined to answer it is not asked the same again."""
    message: str
    form: tuple[Field, ...]


class Asks(msgspec.Struct, Generic[RequestT, ResponseT], frozen=True, kw_only=True):
    """How the person at the client is asked what a result asks of them, where they may decide and can be asked. A
    surface without such a person leaves the result as it is."""

    question: Callable[[RequestT, ResponseT], Question | None]
    """None where the result asks nothing."""
    answered: Callable[[RequestT, Question, Mapping[str, str]], RequestT]
    """The request that brings what they filled in."""
    again: Callable[[RequestT], RequestT]
    """The request without what has been taken from it: it only looks."""
    told_once: tuple[str, ...] = ()
    """Members of a result that the next one would not repeat. They are kept where another result takes its place."""


class Operation(msgspec.Struct, Generic[RequestT, ResponseT], frozen=True, kw_only=True):
    """One thing an agent or a person can ask for."""

    name: str
    toolset: Toolset
    effect: Effect
    summary: str
    request: type[RequestT]
    response: type[ResponseT]
    handler: Callable[[Call, RequestT], ResponseT | None]
    """None is an answer too: nothing has what was asked for."""
    refusals: tuple[type[Refusal], ...] = ()
    """The ways it can decline, besides INVALID_PARAMS, which every operation shares."""
    examples: tuple[Example, ...]
    prepare: Callable[[Call, RequestT], Any] | None = None
    """What takes long or looks at the world: done once, before the unit of work, however often that is run. Its result
    is the handler's `call.prepared`."""
    follow: Callable[[Call, RequestT, ResponseT], Callable[[Call], ResponseT] | None] | None = None
    """What the world must do once the result stands: done after the unit of work. What it returns, if anything, is run
    in a unit of its own and gives the answer in place of the first."""
    stored: bool = False
    """True when it reads or writes the store: its handler then runs in one unit of work."""
    wait: Wait[RequestT, ResponseT] | None = None
    """Set when a call may wait for news; it then runs beside the ordered lane."""
    asks: Asks[RequestT, ResponseT] | None = None
    """Set when its result may ask a person something; only for operations that use the store."""
    acts_as: str | None = None
    """The argument that names the acting agent, where it is not the `agent_id` every stored operation understands."""
    introduces: bool = False
    """True when the caller is the agent whose id the result names, from then on."""
    response_schema: Callable[[], dict[str, Any]] | None = None
    """Only where the response's shape is a document of its own rather than `response`."""

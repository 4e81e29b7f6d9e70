"""Settings: one frozen record, every field explained. The only module that knows where a setting may come from.

Each can be given as a command-line option, `--set name=value`, the environment variable `HANDRAIL_NAME`, or a line in
the project's `.handrail/config.toml`; the first of these that names it wins. All but the last are the person's own;
`strictness.py` says how far the file is followed before somebody here has trusted it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from handrail.kernel import limits
from handrail.kernel.errors import SettingInvalid
from handrail.kernel.late import late_module
from handrail.kernel.wording import did_you_mean
from handrail.regular_files import read_regular, reason_of
from handrail.strictness import CAUTIONS, STORES, Agreed, Caution, Obeyed, Waiting
from handrail.validator_words import explained, path_of

if TYPE_CHECKING:
    from handrail.kernel import toml_values
else:
    toml_values = late_module("handrail.kernel.toml_values")

CONFIG_FILE = Path(".handrail") / "config.toml"
STRICT = {"approvals": "human", "identity": "strict"}
"""Settings that a project may make strict, with their strict values."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How this Handrail runs."""

    db: Annotated[str, Meta(description="The store: a file, or a postgresql:// address. Empty: the project's own.")] = (
        ""
    )
    global_store: Annotated[
        bool, Meta(description="One store for all your repositories, ~/.handrail/handrail.db; --global turns it on.")
    ] = False
    durable: Annotated[
        bool, Meta(description="Survive a power cut too, not only a killed process; every write waits for the disk.")
    ] = False
    profile: Annotated[str, Meta(description="A named bundle of toolsets.")] = "solo"
    toolsets: Annotated[
        tuple[str, ...], Meta(description="Toolsets or families by name, in listing order, in place of the profile's.")
    ] = ()
    enable: Annotated[tuple[str, ...], Meta(description="Modules to add, as the --enable-… flags do.")] = ()
    dynamic: Annotated[bool, Meta(description="Two more tools that turn toolsets on while connected.")] = False
    output_schemas: Annotated[bool, Meta(description="List output schemas and examples with every tool.")] = False
    max_message_bytes: Annotated[
        int, Meta(ge=1024, le=256 * 1024 * 1024, description="The largest message that is read.")
    ] = limits.MESSAGE_BYTES
    checks: Annotated[
        dict[str, Annotated[tuple[str, ...], Meta(min_length=1)]],
        Meta(description="Commands by name that complete_task runs with verify: each a list of words."),
    ] = {}
    snapshot_days: Annotated[
        int, Meta(ge=0, le=3650, description="Days after a task's end in which its patch can be had.")
    ] = 30
    snapshot_count: Annotated[
        int, Meta(ge=0, le=100_000, description="Finished tasks, the newest, whose patches can be had.")
    ] = 200
    check_timeout_s: Annotated[float, Meta(gt=0, le=3600, description="How long one check may take.")] = 300.0
    heartbeat_ms: Annotated[
        int,
        Meta(ge=10, le=86_400_000, description="How often agents are asked for a sign; after three, claims are lost."),
    ] = 30_000
    identity: Annotated[
        Literal["open", "strict"],
        Meta(description="What a call in an agent's name needs: open notes a missing secret, strict refuses."),
    ] = "open"
    approvals: Annotated[
        Literal["agent", "human"],
        Meta(description="Who may answer a gate: an agent for its person, or only a person at the page or a terminal."),
    ] = "agent"
    own_flows: Annotated[
        tuple[str, ...],
        Meta(description="Own flows that may ask people less than the bundled ones, though approvals = human."),
    ] = ()
    reservations: Annotated[
        Literal["warn", "ask", "deny"],
        Meta(description="What a client's hook does before an edit of a file that another agent has reserved."),
    ] = "warn"
    event_history: Annotated[
        int,
        Meta(ge=0, le=10**9, description="Events of a run, board or child that are shown; 0: all. All are kept."),
    ] = 0
    max_wait_ms: Annotated[
        int, Meta(ge=0, le=limits.WAIT_MS, description="The longest a call waits for news, whatever it asks for.")
    ] = limits.WAIT_MS
    max_children: Annotated[
        int, Meta(ge=0, le=100_000, description="Agents that may be present at once; 0: any number.")
    ] = 0
    budget: Annotated[
        dict[str, float],
        Meta(description="What a pipeline run may spend: soft_ (warns) or hard_ (stops) tokens, minutes, money."),
    ] = {}
    prices: Annotated[
        dict[str, float],
        Meta(description="Money for a million tokens by model, as the agents report it; * is any other model."),
    ] = {}
    http: Annotated[str, Meta(description="HOST:PORT where `up` serves; port 0 takes a free one.")] = "127.0.0.1:8765"
    allow_hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="Host names clients may use beside the loopback ones: NAME, or NAME:PORT for that port alone."
        ),
    ] = ()


class SettingsWithUntrustedStore(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings whose store only the project's file chooses, and nobody here has trusted: it must not be opened."""


class SettingField(msgspec.Struct, frozen=True):
    """One setting as the docs show it."""

    name: str
    variable: str
    default: Any
    description: str
    caution: Caution
    values: tuple[str, ...] = ()
    """The only values it can have; empty if there are more than can be listed."""


def setting_fields() -> tuple[SettingField, ...]:
    """Every setting, for the docs and for did-you-mean."""
    described = msgspec.json.schema(Settings)["$defs"]["Settings"]["properties"]
    return tuple(
        SettingField(
            field.name,
            f"HANDRAIL_{field.name.upper()}",
            getattr(Settings(), field.name),
            described[field.name].get("description", ""),
            CAUTIONS[field.name],
            tuple(described[field.name].get("enum", ())),
        )
        for field in msgspec.structs.fields(Settings)
    )


def said_by_project(project: Path, name: str) -> object:
    """What the project's own file says about a setting, even if it is overridden; None if nothing."""
    return _from_file(project / CONFIG_FILE).get(name)


class FileLayer(NamedTuple):
    """What the project's own file contributes."""

    values: dict[str, Any]
    """What is followed of it."""
    waiting: tuple[Waiting, ...] = ()
    """What is not, until somebody here trusts it. Those that name a store are among both: opening it is refused."""
    said: Mapping[str, Any] = {}
    """What it says about settings that need caution, followed or not."""


NO_FILE = FileLayer({})


def file_layer(project: Path, agreed: Agreed) -> FileLayer:
    """The project's file, as far as it is followed here. Raises SettingInvalid if it cannot be read."""
    said = _from_file(project / CONFIG_FILE)
    values, waiting, cautious = dict(said), [], {}
    for name, caution in CAUTIONS.items():
        default = setting_default(name)
        if caution.obeyed is Obeyed.TRUSTED:
            asked = value_of(name, said[name]) if name in said else default
            if name == "db" or asked in (default, None):
                continue  # a wrong value is refused later; which stores are trusted, outside/trusted_stores.py knows
            cautious[name] = asked
            if not agreed.trusts(name, asked):
                waiting.append(Waiting(name, asked, default))
                if name not in STORES:
                    del values[name]
        elif caution.obeyed is Obeyed.STRICTER and (name in said or name in agreed.limits):
            asked = value_of(name, said.get(name, default))
            if asked is None:  # as above
                continue
            if name in said:
                cautious[name] = asked
            floor = value_of(name, agreed.limits.get(name, default))
            held = caution.stricter(default if floor is None else floor, asked)
            if held != asked:
                waiting.append(Waiting(name, asked if name in said else None, held))
            values[name] = held
            if held == default:
                del values[name]
    return FileLayer(values, tuple(waiting), cautious)


def value_of(name: str, raw: object) -> Any:
    """A value as its setting has it; None if it does not fit."""
    if name in _LISTS and isinstance(raw, str):
        raw = _listed(raw)
    try:
        return getattr(msgspec.convert({name: raw}, Settings, strict=False), name)
    except msgspec.ValidationError:
        return None


def setting_default(name: str) -> Any:
    return getattr(_DEFAULTS, name)


_DEFAULTS = Settings()
_LISTS = ("toolsets", "allow_hosts", "own_flows")
"""Settings whose value may be a comma-separated text."""


def load_settings(
    *, given: Mapping[str, Any], environ: Mapping[str, str], project: Path, agreed: Agreed | None = None
) -> Settings:
    """`given` holds command-line values, which win over the environment, which wins over the project's file as far as
    that is followed: without `agreed`, nothing in it is trusted."""
    names = Settings.__struct_fields__
    file, waiting, _ = file_layer(project, agreed or Agreed())
    from_environ = {name: environ[key] for name in names if (key := f"HANDRAIL_{name.upper()}") in environ}
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for layer, source in (
        (file, str(project / CONFIG_FILE)),
        (from_environ, "the environment"),
        (given, "the command line"),
    ):
        sources.update(dict.fromkeys(layer, source))
        if "profile" in layer and "toolsets" not in layer:
            values.pop("toolsets", None)  # a profile named with higher precedence replaces toolsets named with lower
        _choose_store(values, layer)
        added = [*_listed(values.get("enable")), *_listed(layer.get("enable"))]
        values.update(layer)
        if added:
            values["enable"] = list(dict.fromkeys(added))
    for name in values:
        if name not in names:
            raise SettingInvalid(
                f"there is no setting {name} ({sources[name]}){did_you_mean(name, names)}",
                hint=f"settings: {', '.join(names)}",
            )
    _check_not_weakened(file, values)
    if "reservations" in file:  # hooks take the strictest, too
        values["reservations"] = CAUTIONS["reservations"].stricter(values["reservations"], file["reservations"])
    for name in _LISTS:
        if isinstance(values.get(name), str):
            values[name] = _listed(values[name])
    shared = values.get("global_store") is not None and sources["global_store"] == str(project / CONFIG_FILE)
    is_strange = shared and any(one.name == "global_store" for one in waiting)
    try:
        return msgspec.convert(values, SettingsWithUntrustedStore if is_strange else Settings, strict=False)
    except msgspec.ValidationError as problem:
        raise _invalid_value(str(problem), values, sources) from None


def _check_not_weakened(file: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Refuses to let anyone who starts a process weaken what the project's file demands, or what a person agreed to."""
    for name, strict in STRICT.items():
        if file.get(name) == strict and values.get(name) != strict:
            raise SettingInvalid(
                f"{CONFIG_FILE} says {name} = {strict}, and nothing else may weaken it",
                hint="only a person changes that: in the file, then with `handrail trust`",
            )
    if file.get("approvals") == STRICT["approvals"] and values.get("own_flows") != file.get("own_flows"):
        raise SettingInvalid(
            f"{CONFIG_FILE} says approvals = human, so own_flows stand in it too and nowhere else",
            hint="only a person changes that file",
        )


def _invalid_value(problem: str, values: Mapping[str, Any], sources: Mapping[str, str]) -> SettingInvalid:
    """A value that its setting does not accept: what it must be, and where the value came from."""
    path = path_of(problem)
    name = path.partition("[")[0]
    shown = str(values[name]) if path == name else None
    message = explained(problem, kind="setting", names=Settings.__struct_fields__, whole="the settings", shown=shown)
    field = next(field for field in setting_fields() if field.name == name)
    if field.values and path == name:
        message = f"{name} must be {' or '.join(field.values)}, not {shown}"
    return SettingInvalid(f"{message} ({sources[name]})", hint=field.description)


def _choose_store(values: dict[str, Any], layer: Mapping[str, Any]) -> None:
    """Of `db` and `global_store`, the one given with higher precedence wins; naming both in one place is refused."""
    is_global = str(layer.get("global_store", "")).lower() in ("true", "1")
    if is_global and layer.get("db"):
        raise SettingInvalid(
            "the store cannot be both db and the global one, ~/.handrail/handrail.db",
            hint="leave out db (--db), or leave out global_store (--global)",
        )
    if is_global:
        values.pop("db", None)
    elif "db" in layer:
        values.pop("global_store", None)


def _listed(value: Any) -> Any:
    """A comma-separated text as a list; any other single value as a list of one."""
    if value is None:
        return []
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value if isinstance(value, list | tuple) else [value]


def _from_file(path: Path) -> dict[str, Any]:
    try:
        written = read_regular(path, limits.CONFIG_FILE_BYTES, within=path.parents[len(CONFIG_FILE.parts) - 1])
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as problem:
        raise SettingInvalid(
            f"{path} cannot be read: {reason_of(problem)}", hint="make it readable or remove it"
        ) from None
    try:
        return toml_values.parse_toml(written)
    except ValueError as problem:
        raise SettingInvalid(f"{path} cannot be used: {problem}", hint="fix the file") from None

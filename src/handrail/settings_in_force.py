"""What the settings mean for a process and its calls: the rules of the house, the checks that may be run, and what of
the project's file is not followed because nobody here has trusted it.

The settings of a running process: as it was started, and from the next call on as strict as the project's file has been
since.

A call costs two looks at files' times; a file is read again only after a change. Nothing here loosens: what the file
demanded once holds until the process ends, even if the file is gone or broken. Only the project's checks may become
others, once a person has trusted those.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.domain.crew.agent import CrewRules
from handrail.domain.pipeline.budget import Budget
from handrail.kernel.errors import SettingInvalid, SettingNotTrusted, StoreNotTrusted
from handrail.kernel.late import late_module
from handrail.operation import Bounds, HouseRules
from handrail.outside.trusted_settings import FILE, agreed_for
from handrail.settings import (
    CONFIG_FILE,
    NO_FILE,
    STRICT,
    FileLayer,
    Settings,
    SettingsWithUntrustedStore,
    file_layer,
    setting_default,
    value_of,
)
from handrail.strictness import CAUTIONS, Agreed, Heard, Waiting, ascii_json

if TYPE_CHECKING:
    from handrail.domain.journal.ports import Checks
    from handrail.outside import check_runner, trusted_stores
else:
    check_runner = late_module("handrail.outside.check_runner")
    trusted_stores = late_module("handrail.outside.trusted_stores")

QUIET_NS = 3_000_000_000
"""Longer than a tick of any file system's clock: two changes within one leave the same times behind."""
FOLLOWED = tuple(name for name, caution in CAUTIONS.items() if caution.heard is Heard.WHEN_STRICTER)

_Stamp = tuple[int, ...] | None


def _log(line: str) -> None:
    print(f"handrail: {line}", file=sys.stderr, flush=True)  # noqa: T201 - the log of every server


class LiveSettings:
    """One per process, shared by everything that serves there. Safe on several threads."""

    def __init__(
        self,
        project: Path,
        settings: Settings,
        *,
        agreed: Callable[[], Agreed],
        agreement: Path,
        log: Callable[[str], None] = _log,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """`agreed` reads what this person agreed to for the project, which is kept in the file `agreement`."""
        self._project = project
        self._agreed = agreed
        self._files = (str(project / CONFIG_FILE), str(agreement))
        self._log = log
        self._now_ns = now_ns
        self._lock = threading.Lock()
        self._believed: tuple[_Stamp, ...] | None = None
        self._told: tuple[_Stamp, ...] | None = None
        self._settings = settings
        stamps = self._stamps()
        try:
            self._layer = file_layer(project, agreed())
        except SettingInvalid:
            self._layer = NO_FILE
        self._has_own_checks = settings.checks != (self._said("checks") or {})
        for name, strict in STRICT.items():  # the file may have changed since the settings were read from it
            if self._layer.values.get(name) == strict:
                self._settings = msgspec.structs.replace(self._settings, **{name: strict})
        self._believe(stamps)

    def now(self) -> Settings:
        """The settings that hold for what is done now."""
        stamps = self._stamps()
        if stamps != self._believed:
            with self._lock:
                self._look(stamps)
        return self._settings

    def waiting(self) -> tuple[Waiting, ...]:
        """What the project's file says and nobody here has trusted."""
        self.now()
        return tuple(one for one in self._layer.waiting if not (one.name == "checks" and self._has_own_checks))

    def _look(self, stamps: tuple[_Stamp, ...]) -> None:
        try:
            layer = file_layer(self._project, self._agreed())
        except SettingInvalid as problem:
            if stamps != self._told:
                self._log(f"{problem.message}; settings stay as they are")
            self._told = stamps
            return
        stricter = {}
        for name in FOLLOWED:
            before, asked, held = self._held(name, layer)
            if held != before:
                stricter[name] = held
                self._log(f"{CONFIG_FILE} was changed: {name} is {_shown(held)} from now on")
            elif held != asked:
                self._log(f"{CONFIG_FILE} was changed: {name} stays {_shown(held)} until this process is started again")
        previous, self._layer = self._layer, layer
        if not self._has_own_checks and layer.values.get("checks") != previous.values.get("checks"):
            checks = self._said("checks")
            if checks is not None:  # those that are only taken out stay in force here
                stricter["checks"] = checks
        if stricter:
            self._settings = msgspec.structs.replace(self._settings, **stricter)
        self._believe(stamps)

    def _held(self, name: str, layer: FileLayer) -> tuple[Any, Any, Any]:
        """What a setting was, what the changed file asks for, and what holds: all the same if it was not changed."""
        before = getattr(self._settings, name)
        if layer.values.get(name) == self._layer.values.get(name):
            return before, before, before
        asked = value_of(name, layer.values.get(name, setting_default(name)))
        return (before, before, before) if asked is None else (before, asked, CAUTIONS[name].stricter(before, asked))

    def _said(self, name: str) -> Any:
        """What the file says about a setting, as far as it is followed; None if nothing."""
        return value_of(name, self._layer.values[name]) if name in self._layer.values else None

    def _believe(self, stamps: tuple[_Stamp, ...]) -> None:
        """Remembers that this is what was read, once it has been left alone for a while."""
        newest = max((moment for stamp in stamps if stamp is not None for moment in stamp[:2]), default=0)
        self._believed = stamps if newest < self._now_ns() - QUIET_NS else None

    def _stamps(self) -> tuple[_Stamp, ...]:
        return tuple(_stamp(file) for file in self._files)


def _shown(value: Any) -> str:
    return ascii_json(value)[:200]


def _stamp(file: str) -> _Stamp:
    """What shows that a file is another one or was changed: its times come first. None if it cannot be looked at."""
    try:
        found = os.stat(file)  # noqa: PTH116 - for every call
    except (OSError, ValueError):
        return None
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev, found.st_mode)


SHOWN_CHECKS = 400
"""Characters of untrusted checks that a refusal repeats; `handrail trust` shows all of them."""


def house_rules(settings: Settings) -> HouseRules:
    return HouseRules(
        humans_decide=settings.approvals == "human",
        own_flows=settings.own_flows,
        bounds=Bounds(wait_ms=settings.max_wait_ms, events=settings.event_history, children=settings.max_children),
        budget=Budget(settings.budget, settings.prices),
        crew=CrewRules(heartbeat_ms=settings.heartbeat_ms, strict=settings.identity == "strict"),
    )


def live_settings(project: Path, home: Path, settings: Settings) -> LiveSettings:
    """The settings of a process that was started with these."""
    return LiveSettings(project, settings, agreed=lambda: agreed_for(project, home), agreement=home / FILE)


def file_at(project: Path, home: Path) -> FileLayer:
    """What the project's file says, and what of it this person has not trusted, a store elsewhere included. Raises
    SettingInvalid if the file cannot be read."""
    layer = file_layer(project, agreed_for(project, home))
    db = layer.values.get("db")
    if (
        not isinstance(db, str)
        or not trusted_stores.lies_outside(db, project)
        or trusted_stores.is_trusted(db, project=project, home=home)
    ):
        return layer
    return layer._replace(waiting=(Waiting("db", db, ""), *layer.waiting))


def checks_of(live: LiveSettings) -> Checks:
    """The project's checks. Raises SettingNotTrusted if its file names some that nobody here has trusted: work must
    not count as checked, nor be merged, because they were left out."""
    for one in live.waiting():
        if one.name == "checks":
            raise SettingNotTrusted(
                f"{CONFIG_FILE} names checks that nobody trusted on this machine, so none is run: "
                f"{ascii_json(one.said)[:SHOWN_CHECKS]}",
                hint="ask your person to run `handrail trust`, which shows them; until then nothing here is verified, "
                "nor merged by Handrail",
            )
    settings = live.now()
    return check_runner.CheckRunner(settings.checks, timeout_s=settings.check_timeout_s)


def check_shared(settings: Settings) -> None:
    """Raises StoreNotTrusted if only the project's file chooses the store of all this person's repositories: whoever
    works in this one could then read what is recorded of the others."""
    if isinstance(settings, SettingsWithUntrustedStore):
        raise StoreNotTrusted(
            f"{CONFIG_FILE} of this project chooses the store of all your repositories, ~/.handrail/handrail.db",
            hint="if you trust that file's author, run `handrail trust` once; else name a store with HANDRAIL_DB",
        )

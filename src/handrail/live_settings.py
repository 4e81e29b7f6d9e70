"""The settings of a running process: as it was started, and from the next call on as strict as the project's file has
been since.

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
from typing import Any

import msgspec

from handrail.kernel.errors import SettingInvalid
from handrail.settings import CONFIG_FILE, NO_FILE, STRICT, FileLayer, Settings, file_layer, setting_default, value_of
from handrail.strictness import CAUTIONS, Agreed, Heard, Waiting, ascii_json

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

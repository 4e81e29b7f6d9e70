"""What the settings mean for a process and its calls: the rules of the house, the checks that may be run, and what of
the project's file is not followed because nobody here has trusted it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from handrail.domain.crew.identity import CrewRules
from handrail.domain.pipeline.budget import Budget
from handrail.kernel.errors import SettingNotTrusted, StoreNotTrusted
from handrail.kernel.late import late_module
from handrail.live_settings import LiveSettings
from handrail.operation import Bounds, HouseRules
from handrail.outside.trusted_settings import FILE, agreed_for
from handrail.settings import CONFIG_FILE, FileLayer, Settings, SettingsWithUntrustedStore, file_layer
from handrail.strictness import Waiting, ascii_json

if TYPE_CHECKING:
    from handrail.domain.journal.ports import Checks
    from handrail.outside import check_runner, trusted_stores
else:
    check_runner = late_module("handrail.outside.check_runner")
    trusted_stores = late_module("handrail.outside.trusted_stores")

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

"""The composition root for the world: what is behind the `World` port that every call carries, and where it comes from.
A part of `wiring.py`. Everything is loaded when it is first asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from handrail import __version__
from handrail.kernel.clock import DAY_MS
from handrail.known_types import make_known
from handrail.live_settings import LiveSettings
from handrail.operation import Ledger
from handrail.outside.process_names import is_alive, new_session
from handrail.settings import Settings
from handrail.settings_in_force import checks_of
from handrail.store_wiring import WorkPlace

if TYPE_CHECKING:
    from handrail.domain.journal.ports import Checks, Tracker
    from handrail.domain.pipeline.flow_shelf import FlowShelf
    from handrail.domain.pipeline.specs import Specs
    from handrail.domain.work.template_shelf import TemplateShelf
    from handrail.domain.workspaces.worktrees import Worktrees
    from handrail.outside.guide_files import GuideFiles
    from handrail.outside.repository_profile import RepositoryProfiles


class RealWorld:
    """Behind the `World` port: this machine, as the settings allow it to be touched."""

    def __init__(
        self,
        place: WorkPlace,
        settings: Settings,
        ledger: Ledger,
        *,
        live: LiveSettings,
        guides: Callable[[], GuideFiles],
        guest: bool,
    ) -> None:
        self._place = place
        self._live = live
        self._settings = settings
        self._ledger = ledger
        self._guest = guest
        """Whether whoever calls is not this process's own client."""
        self.guides = guides

    def templates(self) -> TemplateShelf:
        return _templates(self._place)

    def flows(self) -> FlowShelf:
        return _flows(self._place)

    def role(self, name: str) -> str:
        return _role(self._place, name)

    def tracker(self) -> Tracker:
        return _tracker(self._place, self._settings, self._ledger)

    def checks(self) -> Checks:
        return checks_of(self._live)

    def worktrees(self, repository: str) -> Worktrees:
        return _worktrees(repository)

    def specs(self, repository: str) -> Specs:
        return _specs(repository)

    def profile(self, repository: str) -> Sequence[str]:
        return _profile(repository)

    def new_secret(self) -> str:
        return _new_secret()

    def new_session(self) -> str | None:
        return new_session(guest=self._guest)

    def is_alive(self, session: str) -> bool | None:
        return is_alive(session)


def guides_at(place: WorkPlace) -> GuideFiles:
    from handrail.outside.guide_files import GuideFiles, standard_sources  # noqa: PLC0415 - only once guides are read
    from handrail.outside.linear_matcher import LinearMatcher  # noqa: PLC0415 - as above

    own = place.environ.get("WORKFLOW_STORAGE_PATH")
    sources = standard_sources(home=place.home, project=place.project, storage_path=own)
    return GuideFiles(sources, matcher=LinearMatcher(), server_version=__version__)


def _templates(place: WorkPlace) -> TemplateShelf:
    from handrail.outside.template_files import TemplateFiles, standard_templates  # noqa: PLC0415 - only for templates

    return TemplateFiles(standard_templates(home=place.home, project=place.project))


def _tracker(place: WorkPlace, settings: Settings, ledger: Ledger) -> Tracker:
    """The tracker of working copies. Once a day it drops snapshots that are too old or too many."""
    from handrail.domain.journal.journal import LOOKING  # noqa: PLC0415 - only once work is journalled
    from handrail.domain.journal.ports import Snapshot  # noqa: PLC0415 - as above
    from handrail.domain.journal.retention import Keeping, prune, worth_keeping  # noqa: PLC0415 - as above
    from handrail.outside.machine_key import machine_key  # noqa: PLC0415 - as above
    from handrail.outside.snapshot_origin import check_snapshots, snapshot_folder  # noqa: PLC0415 - as above
    from handrail.outside.tracking import tracker_at  # noqa: PLC0415 - as above

    make_known(Snapshot)
    tracker = tracker_at(place.project)
    check_snapshots(snapshot_folder(place.project), machine_key(place.home))
    if tracker.is_due(DAY_MS):
        rule = Keeping(settings.snapshot_days, settings.snapshot_count)
        prune(tracker, ledger.run(LOOKING, lambda unit: worth_keeping(unit, rule)))
    return tracker


def _worktrees(repository: str) -> Worktrees:
    from handrail.outside.worktrees import worktrees_at  # noqa: PLC0415 - only where worktrees are used

    return worktrees_at(Path(repository))


def _specs(repository: str) -> Specs:
    from handrail.outside.spec_files import SpecFiles  # noqa: PLC0415 - only where a pipeline runs
    from handrail.surfaces.run_types import know_runs  # noqa: PLC0415 - as above

    know_runs()
    return SpecFiles(Path(repository))


def _flows(place: WorkPlace) -> FlowShelf:
    from handrail.domain.pipeline.flow import Flow  # noqa: PLC0415 - as above
    from handrail.domain.pipeline.request import Flags  # noqa: PLC0415 - as above
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


def _role(place: WorkPlace, name: str) -> str:
    from handrail.outside.role_files import RoleFiles  # noqa: PLC0415 - as above

    return RoleFiles(place.project).role(name).text


def _new_secret() -> str:
    import secrets  # noqa: PLC0415 - only when an agent registers

    return secrets.token_urlsafe(24)

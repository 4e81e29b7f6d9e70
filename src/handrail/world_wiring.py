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
from handrail.kernel.late import late_module
from handrail.known_types import make_known
from handrail.operation import Ledger
from handrail.outside.process_names import is_alive, new_session
from handrail.settings import Settings
from handrail.settings_in_force import LiveSettings, checks_of
from handrail.store_wiring import WorkPlace

if TYPE_CHECKING:
    import secrets

    from handrail.domain.journal import journal, ports, retention
    from handrail.domain.journal.ports import Checks, Tracker
    from handrail.domain.pipeline import flow, profile, request
    from handrail.domain.pipeline.flow_shelf import FlowShelf
    from handrail.domain.pipeline.workspace_texts import Specs
    from handrail.domain.work.templates import TemplateShelf
    from handrail.domain.workspaces.worktrees import Worktrees
    from handrail.outside import (
        flow_files,
        guide_files,
        linear_matcher,
        machine_key,
        repository_profile,
        role_files,
        snapshot_origin,
        spec_files,
        template_files,
        tracking,
        worktrees,
    )
    from handrail.outside.guide_files import GuideFiles
    from handrail.surfaces import runs
else:
    journal = late_module("handrail.domain.journal.journal")
    ports = late_module("handrail.domain.journal.ports")
    retention = late_module("handrail.domain.journal.retention")
    flow = late_module("handrail.domain.pipeline.flow")
    profile = late_module("handrail.domain.pipeline.profile")
    request = late_module("handrail.domain.pipeline.request")
    flow_files = late_module("handrail.outside.flow_files")
    guide_files = late_module("handrail.outside.guide_files")
    linear_matcher = late_module("handrail.outside.linear_matcher")
    machine_key = late_module("handrail.outside.machine_key")
    repository_profile = late_module("handrail.outside.repository_profile")
    role_files = late_module("handrail.outside.role_files")
    snapshot_origin = late_module("handrail.outside.snapshot_origin")
    spec_files = late_module("handrail.outside.spec_files")
    template_files = late_module("handrail.outside.template_files")
    tracking = late_module("handrail.outside.tracking")
    worktrees = late_module("handrail.outside.worktrees")
    runs = late_module("handrail.surfaces.runs")
    secrets = late_module("secrets")


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
    own = place.environ.get("WORKFLOW_STORAGE_PATH")
    sources = guide_files.standard_sources(home=place.home, project=place.project, storage_path=own)
    return guide_files.GuideFiles(sources, matcher=linear_matcher.LinearMatcher(), server_version=__version__)


def _templates(place: WorkPlace) -> TemplateShelf:
    return template_files.TemplateFiles(template_files.standard_templates(home=place.home, project=place.project))


def _tracker(place: WorkPlace, settings: Settings, ledger: Ledger) -> Tracker:
    """The tracker of working copies. Once a day it drops snapshots that are too old or too many."""
    make_known(ports.Snapshot)
    tracker = tracking.tracker_at(place.project)
    snapshot_origin.check_snapshots(snapshot_origin.snapshot_folder(place.project), machine_key.machine_key(place.home))
    if tracker.is_due(DAY_MS):
        rule = retention.Keeping(settings.snapshot_days, settings.snapshot_count)
        retention.prune(tracker, ledger.run(journal.LOOKING, lambda unit: retention.worth_keeping(unit, rule)))
    return tracker


def _worktrees(repository: str) -> Worktrees:
    return worktrees.worktrees_at(Path(repository))


def _specs(repository: str) -> Specs:
    runs.know_runs()
    return spec_files.SpecFiles(Path(repository))


def _flows(place: WorkPlace) -> FlowShelf:
    make_known(request.Flags, flow.Flow)
    return flow_files.FlowFiles(flow_files.standard_flows(home=place.home, project=place.project))


@functools.cache
def _profiles() -> repository_profile.RepositoryProfiles:
    return repository_profile.RepositoryProfiles()


def _profile(repository: str) -> list[str]:
    return profile.lines(_profiles().of(repository))


def _role(place: WorkPlace, name: str) -> str:
    return role_files.RoleFiles(place.project).role(name).text


def _new_secret() -> str:
    return secrets.token_urlsafe(24)

"""Random histories over random settings: nothing told wrongly, nothing left out silently. A failure has a number."""

from __future__ import annotations

import pytest

from handrail.domain.journal.entry import Changes
from handrail.outside.tracking.git_tracker import GitTracker
from tests.outside.tracking.histories import Wrong, play
from tests.outside.tracking.history_template import Template

QUICK = range(12)
LONG = range(10_000, 15_200)
AT_ONCE = 200


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return Template(tmp_path_factory.mktemp("histories"))


@pytest.mark.parametrize("seed", QUICK)
def test_a_random_history_is_told_as_it_was(template: Template, seed: int) -> None:
    play(seed, template)


@pytest.mark.torture
@pytest.mark.parametrize("first", LONG[::AT_ONCE])
def test_thousands_of_histories_are_told_as_they_were(template: Template, first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        play(seed, template)


def test_a_history_that_is_told_wrongly_is_found(template: Template, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge is not blind itself: an engine that says nothing is caught."""
    monkeypatch.setattr(GitTracker, "changes", lambda *_args, **_more: Changes(own=[]))
    with pytest.raises(Wrong, match="silently empty"):
        for seed in QUICK:
            play(seed, template)

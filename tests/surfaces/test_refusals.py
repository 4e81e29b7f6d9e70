"""A refusal teaches and stays short, whatever somebody sent."""

from __future__ import annotations

import msgspec

from handrail.kernel.errors import InvalidParams, RunNotFound, WorkflowNotFound
from handrail.surfaces.refusals import TEXT, WORD, bare_error, cut, error_object, numbered_error, refused_result

LONG = "x" * 100_000


def test_what_was_sent_is_not_repeated_in_full() -> None:
    refusal = RunNotFound(f"there is no run {LONG}", hint=f"not {LONG} but wf_1", run_id=LONG, near=["wf_1"])
    error = error_object(refusal)
    assert error["message"].startswith("there is no run xxx")
    assert error["hint"].endswith("… but wf_1"), "what is said after it still is"
    assert len(error["details"]["run_id"]) == WORD
    assert error["details"]["near"] == ["wf_1"]
    assert len(msgspec.json.encode(refused_result(refusal))) < 8192


def test_every_form_of_a_refusal_is_short() -> None:
    numbered = numbered_error(WorkflowNotFound(f"no {LONG}", hint=LONG, workflow_id=LONG))
    bare = [bare_error(kind(f"no {LONG}", hint=LONG), stateless=False) for kind in (InvalidParams, RunNotFound)]
    for error in (numbered, *bare):
        assert len(msgspec.json.encode(error.as_dict())) < 2000


def test_words_end_somewhere_too_and_what_is_short_stays() -> None:
    assert len(cut("word " * 10_000)) == TEXT
    assert cut("a  b\n" * 50) == "a  b\n" * 50

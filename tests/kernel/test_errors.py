"""Refusals: each has a code, speaks by itself, and carries its details."""

from __future__ import annotations

import re

import pytest

from handrail.kernel import errors
from handrail.kernel.errors import Refusal, WorkflowNotFound, refusal_types


@pytest.mark.parametrize("refusal", refusal_types(), ids=lambda refusal: refusal.code)
def test_a_bare_refusal_already_reads_well(refusal: type[Refusal]) -> None:
    assert refusal().message.endswith(".")
    assert refusal.code == refusal.code.upper()
    assert (refusal.number is None) == (refusal.headline is None)


def test_a_refusal_shows_code_message_hint_and_details() -> None:
    refusal = WorkflowNotFound("no guide x", hint="list them", workflowId="x")
    assert refusal.as_dict() == {
        "code": "WORKFLOW_NOT_FOUND",
        "message": "no guide x",
        "hint": "list them",
        "details": {"workflowId": "x"},
    }


def test_the_tree_is_drawn_as_it_is() -> None:
    drawn = re.findall(r"^ *[*+-] (\w+)", errors.__doc__ or "", flags=re.MULTILINE)
    assert drawn == [refusal.__name__ for refusal in refusal_types()]

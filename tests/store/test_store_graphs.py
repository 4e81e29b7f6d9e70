"""Graphs and plans against their reference on PostgreSQL, as `tests/toolsets/registry/test_tx_machine.py` has it
on the other stores."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from handrail.store.ports import Engine
from handrail.store.postgres import PostgresEngine
from tests.store.ground import VERSION
from tests.store.server import empty
from tests.toolsets.registry.test_tx_machine import FreeGraphs, GraphMachine, Plans

THOROUGH = os.environ.get("HANDRAIL_HYPOTHESIS") == "torture"


@pytest.mark.hypothesis
@pytest.mark.parametrize("machine", [FreeGraphs, Plans])
def test_graphs_on_postgres(machine: type[GraphMachine], used_schema: str) -> None:
    def engine(self: GraphMachine) -> Engine:
        opened = PostgresEngine(used_schema, version=VERSION)
        empty(used_schema)
        return opened

    here = type(f"{machine.__name__}OnPostgres", (machine,), {"engine": engine})
    run_state_machine_as_test(here, settings=settings(max_examples=100 if THOROUGH else 4, stateful_step_count=20))
    empty(used_schema)

"""DBOS on PostgreSQL: `python -m bench.store.peers.dbos_step ADDRESS`. A step is one workflow of one DBOS step that
returns its argument, called directly; DBOS records the workflow, the step and the result."""

from __future__ import annotations

import logging
import os
import sys

os.environ["DBOS__VMID"] = "bench"

from dbos import DBOS

from bench.store.slices import Step, serve

DBOS(config={"name": "bench", "system_database_url": sys.argv[1], "run_admin_server": False, "log_level": "ERROR"})


@DBOS.step()
def only(text: str) -> str:
    return text


@DBOS.workflow()
def whole(text: str) -> str:
    return only(text)


def prepare(lane: int, count: int) -> Step:
    text = "x" * 200
    return lambda: whole(text)


logging.disable(logging.WARNING)
DBOS.launch()
serve(prepare)
DBOS.destroy()

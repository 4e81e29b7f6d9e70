"""Many threads may meet a type for the first time at once: msgspec alone would let the process die of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import handrail

PROCESSES = 6
"""Fresh ones, because a type is met for the first time only once in each."""

AT_ONCE = """
import sys, threading
sys.setswitchinterval(1e-4)
{imports}
THREADS = 32
at_once = threading.Barrier(THREADS)
def first(number):
    at_once.wait()
    {first}
threads = [threading.Thread(target=first, args=(number,)) for number in range(THREADS)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""

ARGUMENTS = (
    """
from handrail.surfaces.arguments import parse_arguments
from handrail.toolsets.plan.workflow import OPERATIONS
plan = OPERATIONS[-1]
""",
    "parse_arguments(plan, plan.examples[0].request)",
)
ARGUMENTS_BESIDE_SCHEMAS = (
    ARGUMENTS[0] + "from handrail.surfaces.schemas import request_schema",
    "parse_arguments(plan, plan.examples[0].request) if number % 2 else request_schema(plan)",
)
GUIDE = {
    "id": "first",
    "name": "First",
    "description": "A guide with every kind of rule.",
    "version": "1.0.0",
    "steps": [
        {
            "id": "only",
            "title": "Only",
            "prompt": "Say something.",
            "validationCriteria": {"and": [{"type": "length", "min": 1, "message": "more"}]},
        }
    ],
}
GUIDES = (
    """
from pathlib import Path
import handrail.outside.documents
from handrail.outside.guide_files import GuideFiles
from handrail.outside.user_files import UserFolder
from handrail.outside.linear_matcher import LinearMatcher
here = [UserFolder("here", Path("guides"))]
shelves = [GuideFiles(here, matcher=LinearMatcher(), server_version="99.0.0") for _ in range(32)]
""",
    "assert [item.guide.id for item in shelves[number].guides()] == ['first']",
)


@pytest.mark.parametrize(
    ("imports", "first"),
    [ARGUMENTS, ARGUMENTS_BESIDE_SCHEMAS, GUIDES],
    ids=["arguments", "arguments beside schemas", "guides"],
)
def test_a_type_may_be_met_by_many_threads_at_once(imports: str, first: str, tmp_path: Path) -> None:
    (tmp_path / "guides").mkdir()
    (tmp_path / "guides" / "first.json").write_bytes(msgspec.json.encode(GUIDE))
    code = AT_ONCE.format(imports=imports, first=first)
    for _ in range(PROCESSES):
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", code],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


ELSEWHERE = {
    "settings.py": "at the start, before there is a second thread",
    "domain/exchange/checklist.py": "to import or export plans, which are commands of their own process",
    "domain/exchange/normalize.py": "as domain/exchange/checklist.py",
    "domain/exchange/plan_document.py": "as domain/exchange/checklist.py",
    "domain/exchange/jsonl.py": "as domain/exchange/checklist.py",
    "domain/exchange/workrail_steps.py": "as domain/exchange/checklist.py",
    "outside/search_index.py": "to search, which is a command of its own process",
    "domain/board/queries.py": "made known where the store is opened, in wiring.py",
    "domain/graphs/graph.py": "made known while the module is loaded",
    "domain/graphs/mutations.py": "as domain/graphs/graph.py",
    "domain/values/value_sets.py": "made known while the module is loaded",
    "domain/registry/cancellation.py": "as domain/board/queries.py",
    "outside/trusted_settings.py": "made known while the module is loaded",
    "domain/guides/definition.py": "made known by outside/guide_files.py, which reads every guide",
    "domain/journal/journal.py": "made known where the tracker is made, before anything is compared",
    "domain/pipeline/flow.py": "made known where the shelf of flows is made, in wiring.py",
    "domain/pipeline/state_import.py": "as domain/pipeline/run.py",
    "domain/pipeline/run.py": "made known where the documents of runs are reached, in wiring.py",
    "protocol/client_requests.py": "a tuple and a dict, which have nothing to learn",
    "toolsets/pipeline/start.py": "as domain/pipeline/flow.py",
    "toolsets/pipeline/turns.py": "as domain/pipeline/run.py",
    "store/writes.py": "one decoder, made while the module is loaded; nothing else meets its types",
    "store/tables.py": "to undo, which is a command of its own process",
}
"""Modules that convert and need not ask first."""


def test_whoever_converts_asks_first() -> None:
    sources = Path(handrail.__file__).parent
    meets_types = re.compile(r"msgspec\.convert\(|Decoder\(\w|decode\(.*type=|json\.schema")
    texts = {file.relative_to(sources).as_posix(): file.read_text(encoding="utf-8") for file in sources.rglob("*.py")}
    converting = {name for name, text in texts.items() if meets_types.search(text)} - {"known_types.py"}
    asking = {name for name in converting if "make_known(" in texts[name]}
    assert sorted(converting - asking) == sorted(ELSEWHERE), "call make_known first, or say why not in ELSEWHERE"

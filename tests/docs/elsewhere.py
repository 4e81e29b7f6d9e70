"""Commands in the documents that are not typed again on their page: why not, and which test runs the like.

Each is still held against the command line's own tree (test_commands.py). An entry that no page uses any more is an
error, and so is one that names a test that is not there.
"""

from __future__ import annotations

from typing import NamedTuple


class Elsewhere(NamedTuple):
    """Why a command is not run on its page, and the test that runs the like of it."""

    why: str
    test: str


ELSEWHERE: dict[str, Elsewhere] = {
    "./run": Elsewhere("sets up an environment from a network", "tests/process/test_http.py"),
    "./run test": Elsewhere("runs these tests", "tests/__main__.py"),
    "claude mcp add": Elsewhere(
        "another maker's client; what stands after `--` is run",
        "tests/docs/test_commands.py::test_the_command_given_to_a_client_serves",
    ),
    "claude plugin": Elsewhere(
        "another maker's client",
        "tests/domain/setup/test_plugins.py::test_marketplaces_lead_to_folders_with_a_manifest",
    ),
    "codex plugin": Elsewhere(
        "another maker's client",
        "tests/domain/setup/test_plugins.py::test_marketplaces_lead_to_folders_with_a_manifest",
    ),
    ".venv/bin/python -m bench": Elsewhere(
        "takes minutes", "tests/docs/test_commands.py::test_every_bench_in_the_documents_can_be_asked"
    ),
    "handrail init": Elsewhere(
        "asks at a terminal",
        "tests/surfaces/cli/begin/test_init.py::test_whatever_was_there_comes_back_to_the_byte",
    ),
    "handrail doctor": Elsewhere("starts every client's server", "tests/surfaces/cli/begin/test_doctor.py"),
    "handrail diff task_01ke…": Elsewhere("an id that stands for any", "tests/process/test_journal_terminal.py"),
    "handrail review": Elsewhere("an id that stands for any", "tests/surfaces/cli/decide/test_review.py"),
    "handrail up --db postgresql://": Elsewhere("serves until it is ended", "tests/process/test_http_tokens.py"),
    "handrail scope test": Elsewhere("ends with 1 where a file is out", "tests/surfaces/cli/plans/test_scope.py"),
    ".venv/bin/python -m pip install": Elsewhere(
        "needs a network", "tests/docs/test_commands.py::test_what_is_installed_is_there"
    ),
    "createdb": Elsewhere(
        "needs a server of one's own", "tests/docs/test_sessions.py::test_a_page_prints_what_it_shows"
    ),
    "handrail db move postgresql://": Elsewhere(
        "needs a server of one's own; docs/recipes/postgresql.md moves to the tests'",
        "tests/docs/test_sessions.py::test_a_page_prints_what_it_shows",
    ),
    "handrail token": Elsewhere("names of people who are not there", "tests/process/test_http_tokens.py"),
}

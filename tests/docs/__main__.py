"""`python -m tests.docs PAGE…`: types the commands of a page again and shows them with all that they print now, to be
put on the page where a test says that it shows something else. Nothing is compared, and nothing is written."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.docs.pages import Typed
from tests.docs.shell import Printed, Typist, bash, type_again
from tests.docs.test_sessions import DATABASE, PORT, commands_of
from tests.store.server import running, schema_of_its_own


class Aloud:
    """Types, and shows what came of it."""

    def __init__(self, typist: Typist) -> None:
        self._typist = typist

    def type(self, command: str) -> Printed:
        printed = self._typist.type(command)
        continued = command.replace("\n", "\n> ")
        sys.stdout.write(f"$ {continued}\n{printed.text}")
        return Printed(printed.text, 0)


def show(page: Path) -> None:
    unseen = [one if one.file else Typed(one.where, one.command, None) for one in commands_of(page.resolve())]
    stands_for = {PORT: PORT}
    with tempfile.TemporaryDirectory() as folder, running() as server, schema_of_its_own(server, "docs") as address:
        project, home = Path(folder) / "project", Path(folder) / "home"
        project.mkdir()
        home.mkdir()
        with bash(project, home, {**stands_for, DATABASE: address}) as shell:
            type_again(Aloud(shell), unseen, project)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        show(Path(name))

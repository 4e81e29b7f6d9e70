"""A project and a home for tests of `handrail init`, and the command in them."""

from __future__ import annotations

from pathlib import Path

import click.testing

from handrail.outside.machine_key import machine_key
from handrail.surfaces.cli.main import cli


class Desk:
    """A project and a home, and init in them."""

    def __init__(self, folder: Path) -> None:
        self.project = (folder / "project").resolve()
        self.home = (folder / "home").resolve()
        for made in (self.project / ".git", self.home):
            made.mkdir(parents=True)
        machine_key(self.home)  # made once by whatever comes first, and never taken back

    def init(self, *options: str, answer: str | None = None) -> click.testing.Result:
        runner = click.testing.CliRunner(env={"HOME": str(self.home), "PATH": ""})
        return runner.invoke(cli, ["init", "--root", str(self.project), *options], input=answer, prog_name="handrail")

    def well(self, *options: str) -> str:
        done = self.init(*options)
        assert done.exit_code == 0, done.output
        return done.output

    def write(self, name: str, text: str) -> Path:
        path = self.home / name[2:] if name.startswith("~/") else self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def text(self, name: str) -> str:
        return (self.project / name).read_text(encoding="utf-8")

    def everything(self) -> dict[str, bytes | None]:
        """Every file's bytes, and every folder."""
        both = [*self.project.rglob("*"), *self.home.rglob("*")]
        return {str(path): path.read_bytes() if path.is_file() else None for path in both}

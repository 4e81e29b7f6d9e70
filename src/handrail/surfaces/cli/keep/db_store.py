"""What the commands of `handrail db` share: the store they mean, and the progress of long work. Contains no command."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail.kernel.errors import StoreUnusable
from handrail.kernel.late import late_module
from handrail.store_wiring import check_store
from handrail.surfaces.cli.columns import one_line
from handrail.surfaces.cli.options import place_of, settings_of
from handrail.surfaces.cli.progress import progress
from handrail.surfaces.cli.render import echo_wrapped
from handrail.wiring import WorkPlace, assemble, is_made, store_address

MOST_SHOWN = 50
"""How many problems are printed."""

if TYPE_CHECKING:
    from handrail.outside import git_ignore
    from handrail.store import open_engine, ports
    from handrail.store import problems as store_problems
    from handrail.store.ports import LastingEngine
    from handrail.store.store import Store
    from handrail.store.store_copy import Tell
else:
    git_ignore = late_module("handrail.outside.git_ignore")
    open_engine = late_module("handrail.store.open_engine")
    ports = late_module("handrail.store.ports")
    store_problems = late_module("handrail.store.problems")


def store_of(root: Path | None, options: dict[str, Any]) -> Store:
    """The store that a command means, kept open until the command ends."""
    place = place_of(root)
    store = assemble(place, settings_of(place, options)).ledger.open()
    click.get_current_context().call_on_close(store.engine.close)
    return store


def store_there(root: Path | None, options: dict[str, Any]) -> Store:
    """The same, for commands that have nothing to do without a store and must not create one."""
    check_there(place_of(root), options)
    return store_of(root, options)


def check_there(place: WorkPlace, options: dict[str, Any]) -> None:
    if not is_made(place, settings_of(place, options)):
        shown = open_engine.shown_address(address_of(place, options), place.project)
        raise StoreUnusable(f"there is no store at {shown}", hint="check its name; the first write creates a store")


def engine_of(store: Store) -> LastingEngine:
    return ports.lasting(store.engine)


def address_of(place: WorkPlace, options: dict[str, Any]) -> str:
    return store_address(place, settings_of(place, options))


def trusted_address(place: WorkPlace, options: dict[str, Any]) -> str:
    """The same, for commands that open the store themselves. Raises StoreNotTrusted."""
    check_store(place, settings_of(place, options))
    return address_of(place, options)


@contextmanager
def telling(*, quiet: bool) -> Iterator[Tell]:
    """A function that long work calls with its name, how much is done, and the total."""
    with ExitStack() as stack:
        drawing: dict[str, Callable[[int], None]] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in drawing:
                stack.pop_all().close()
                drawing.clear()
                drawing[what] = stack.enter_context(progress(what, total or None, quiet=quiet))
            drawing[what](done)

        yield tell


def free_name(path: Path) -> Path:
    """The name itself, or the next free one: an older copy is never overwritten by a newer one."""
    number, free = 2, path
    while free.exists():
        free = path.with_name(f"{path.name}-{number}")
        number += 1
    return free


def told_to_git(place: WorkPlace, file: Path) -> str:
    """What to say about a store in a file that git would commit; empty if there is nothing to say."""
    if not git_ignore.git_would_commit(file, place.project):
        return ""
    name = Path(os.path.realpath(file)).relative_to(place.project.resolve()).as_posix()
    return f"git does not ignore {name}, which holds everything that was recorded: add /{name}* to .gitignore"


def echo_problems(problems: list[str], sound: str, *, whole: bool) -> None:
    """Prints what is wrong, one line each, what is lost and how to get it back; or that nothing is wrong."""
    for problem in problems[:MOST_SHOWN]:
        click.echo(click.style(one_line(problem), fg="red"))
    if len(problems) > MOST_SHOWN:
        click.echo(f"… and {len(problems) - MOST_SHOWN} more; --json lists them all")
    for line in store_problems.advice(problems, whole=whole):
        echo_wrapped(line)
    if not problems:
        click.echo(sound)


def shown_problems(problems: list[str], *, whole: bool = False) -> dict[str, Any]:
    """The same as JSON; without problems there is nothing to advise."""
    listed: dict[str, Any] = {"problems": [str(problem) for problem in problems]}
    return {**listed, "advice": store_problems.advice(problems, whole=whole)} if problems else listed

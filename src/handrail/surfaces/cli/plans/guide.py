"""`handrail guide …`: list, show, check and write guides."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from handrail import __version__
from handrail.domain.guides.conditions import describe
from handrail.domain.guides.definition import Guide, guide_to_wire, valid_id
from handrail.domain.guides.schema import guide_json_schema
from handrail.domain.guides.shelf import BrokenGuide, LoadedGuide
from handrail.kernel.errors import InvalidParams, InvalidWorkflow, NotFound, PlaceUnusable, WorkflowNotFound
from handrail.kernel.wording import did_you_mean
from handrail.outside.guide_files import GuideFiles
from handrail.outside.linear_matcher import LinearMatcher
from handrail.outside.user_files import UserFolder, foreign_tree, make_folder, tree_around
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.columns import bold, columns, counted, hanging, kept_in_shape, wrapped
from handrail.surfaces.cli.options import ListFirst, common_options, place_of, settings_of
from handrail.surfaces.cli.render import echo_json, echo_lines, echo_table, echo_wrapped
from handrail.surfaces.cli.terminal import styled
from handrail.surfaces.refusals import EXIT_REFUSED
from handrail.wiring import assemble

_TEMPLATE = """\
# A guide for agents. The format: docs/guides.md, or `handrail guide schema`. Check it: handrail guide validate {file}
id: {id}
name: {name}
description: What this guide leads to, in one sentence.
version: "1.0.0"
category: general
steps:
  - id: understand
    title: Understand the task
    prompt: |
      Read what is asked and the code it touches. Write down what has to be true when this is done.
      Say whether the change is small or large; pass it on as context: {{"size": "small"}} or {{"size": "large"}}.
    validationCriteria:
      - type: length
        min: 40
        message: Say in a sentence or two what has to be true when this is done.
  - id: plan
    title: Plan it
    runCondition: {{var: size, equals: large}}
    prompt: |
      List the changes in the order you will make them, each small enough to check by itself.
  - id: finish
    title: Make the change and check it
    prompt: |
      Make the change, run the tests, and say what you ran and what it printed.
    requireConfirmation: true
"""


_INNER = "   "


@click.group(cls=ListFirst)
def guide() -> None:
    """List, show, check and write guides. Without a command, list them."""


@guide.command("list")
@common_options
def list_guides(root: Path | None, as_json: bool, **options: Any) -> None:
    """List every guide, and any file that cannot be used."""
    guides = guides_of(root, options)
    loaded, broken = guides.guides(), guides.problems()
    if as_json:
        echo_json({"guides": [_entry(item) for item in loaded], "problems": [_problem(item) for item in broken]})
        return
    rows = [(item.guide.id, item.guide.version, item.guide.category, item.source, item.guide.name) for item in loaded]
    echo_table(("guide", "version", "category", "from", "name"), rows)
    if broken:
        click.echo(f"\n{counted(len(broken), 'file')} cannot be followed:")
        _echo_problems(broken)


@guide.command()
@click.argument("guide_id", metavar="ID", shell_complete=completions.guides)
@common_options
def show(guide_id: str, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show one guide in full."""
    found = guides_of(root, options).find(guide_id)
    if found is None:
        known = [item.guide.id for item in guides_of(root, options).guides()]
        raise WorkflowNotFound(
            f"there is no guide {guide_id}{did_you_mean(guide_id, known)}", hint="`handrail guide list` shows them"
        )
    if isinstance(found, BrokenGuide):
        raise InvalidWorkflow(f"{found.where}: {found.reason}", hint="fix the file and try again")
    if as_json:
        echo_json(guide_to_wire(found.guide))
    else:
        _echo_guide(found.guide, found)


@guide.command()
@click.argument("targets", nargs=-1, metavar="[FILE|ID]...", shell_complete=completions.guides)
@common_options
def validate(targets: tuple[str, ...], root: Path | None, as_json: bool, **options: Any) -> None:
    """Check guides, by file or by id. Without arguments, check all.

    Exits with 1 if one has a problem.
    """
    guides = guides_of(root, options)
    checked: list[LoadedGuide | BrokenGuide] = []
    if targets:
        for target in targets:
            checked.append(_check_target(guides, target))
    else:
        checked = [*guides.guides(), *guides.problems()]
    broken = [item for item in checked if isinstance(item, BrokenGuide)]
    if as_json:
        echo_json({"checked": len(checked), "problems": [_problem(item) for item in broken]})
    else:
        _echo_problems(broken)
        click.echo(f"{len(checked)} checked, {len(broken)} with problems")
    sys.exit(EXIT_REFUSED if broken else 0)


@guide.command()
@click.argument("guide_id", metavar="ID")
@click.option("--name", help="Its name.  [default: from the id]")
@common_options
def new(guide_id: str, name: str | None, root: Path | None, as_json: bool, **options: Any) -> None:
    """Create a guide in .handrail/guides, ready to edit."""
    if not valid_id(guide_id):
        raise InvalidParams(
            f"{guide_id} cannot be a guide's id", hint="3 to 64 characters: small letters, digits and hyphens"
        )
    existing = guides_of(root, options).find(guide_id)
    place = place_of(root)
    file = place.project / ".handrail" / "guides" / f"{guide_id}.yaml"
    if file.exists():
        raise InvalidParams(f"{file} is there already", hint="edit it, or choose another id")
    text = _TEMPLATE.format(id=guide_id, name=name or guide_id.replace("-", " ").capitalize(), file=file.name)
    make_folder(file.parent, foreign_tree(place.project, place.home))
    try:
        with file.open("x", encoding="utf-8") as written:
            written.write(text)
    except OSError as problem:
        raise PlaceUnusable(
            f"{file} cannot be written: {problem.strerror}", hint="make its folder writable, or choose another --root"
        ) from None
    if as_json:
        echo_json({"file": str(file)})
        return
    click.echo(f"wrote {file}")
    if existing is not None:
        click.echo(f"it replaces the guide of the same id from {existing.source}")
    click.echo(f"check it: handrail guide validate {guide_id}")


@guide.command()
@common_options
def schema(root: Path | None, as_json: bool, **options: Any) -> None:  # noqa: ARG001 - every command takes these
    """Print the JSON Schema of guides, for editors and checks."""
    echo_json(guide_json_schema(), pretty=not as_json)


def guides_of(root: Path | None, options: dict[str, Any]) -> GuideFiles:
    """A project's guides, including the bundled ones and the user's."""
    place = place_of(root)
    return assemble(place, settings_of(place, options)).guides


def _check_target(guides: GuideFiles, target: str) -> LoadedGuide | BrokenGuide:
    file = Path(os.path.abspath(target))  # noqa: PTH100 - without `..`, so that its tree is found
    if file.is_file():
        tree = tree_around(file, (source.tree for source in guides.sources))
        folder = GuideFiles(
            [UserFolder("file", file.parent, tree)], matcher=LinearMatcher(), server_version=__version__
        )
        everything: list[LoadedGuide | BrokenGuide] = [*folder.guides(), *folder.problems()]
        for item in everything:
            if item.file == file:
                return item
        raise InvalidParams(f"{target} is not a guide file", hint="guides are .json, .yaml or .yml files")
    found = guides.find(target)
    if found is None:
        known = [item.guide.id for item in guides.guides()]
        raise NotFound(
            f"{target} is neither a file nor a guide{did_you_mean(target, known)}", hint="handrail guide list"
        )
    return found


def _entry(item: LoadedGuide) -> dict[str, Any]:
    guide = item.guide
    return {
        "id": guide.id,
        "name": guide.name,
        "description": guide.description,
        "category": guide.category,
        "version": guide.version,
        "source": item.source,
        "file": str(item.file),
        "shadows": [str(file) for file in item.shadows],
    }


def _problem(item: BrokenGuide) -> dict[str, Any]:
    return {
        "id": item.id,
        "file": str(item.file),
        "line": item.position.line if item.position else None,
        "column": item.position.column if item.position else None,
        "path": item.path,
        "reason": item.reason,
    }


def _echo_problems(broken: Sequence[BrokenGuide]) -> None:
    for item in broken:
        where = f"{item.where}: {item.path}: " if item.path else f"{item.where}: "
        echo_wrapped(f"{where}{item.reason}", "  ")


def _echo_guide(guide: Guide, item: LoadedGuide) -> None:
    echo_lines(_guide_lines(guide, item, columns()))


def _guide_lines(guide: Guide, item: LoadedGuide, room: int) -> Iterator[str]:
    """A whole guide. What it says to agents keeps its own lines, wrapped if too long."""
    title = f"{guide.name} ({guide.id} {guide.version}, {guide.category}, {item.source})"
    yield from (bold(line) for line in wrapped(title, room))
    yield from wrapped(guide.description, room)
    for heading, texts in (
        ("Before you start", guide.preconditions),
        ("Ask first", guide.clarification_prompts),
        ("Throughout", guide.meta_guidance),
    ):
        if texts:
            yield from ("", f"{heading}:")
        for text in texts:
            yield from hanging("- ", text, room, "  ")
    for number, step in enumerate(guide.steps, 1):
        yield ""
        yield from (bold(line) for line in wrapped(f"{number}. {step.title} [{step.id}]", room))
        if step.run_condition is not None:
            yield from _note_lines(f"when {describe(step.run_condition)}", room)
        yield from kept_in_shape("\n".join((*step.guidance, step.prompt.rstrip())), room, _INNER)
        if step.validation_criteria is not None:
            yield from _note_lines("its output is checked by workflow_validate", room)


def _note_lines(text: str, room: int) -> Iterator[str]:
    return (styled(line, fg="cyan") for line in wrapped(text, room, _INNER))

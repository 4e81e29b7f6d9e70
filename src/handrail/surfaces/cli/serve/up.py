"""`handrail up`: Handrail for every client on this machine over HTTP, the line to paste into each, and the page.

The page's sign-in link is shown on a terminal and nowhere else: anyone who has it decides in the name of the person who
started this, and agents also read files, logs and JSON.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail import __version__
from handrail.domain.setup.clients import CLIENTS
from handrail.domain.setup.http_entries import http_lines
from handrail.kernel.late import late_module
from handrail.settings import Settings
from handrail.surfaces.cli.begin.untrusted import check_address_trusted
from handrail.surfaces.cli.options import (
    common_options,
    person,
    place_of,
    settings_of,
    sits_at_terminal,
    toolset_options,
)
from handrail.surfaces.cli.render import echo_json
from handrail.wiring import Handrail, assemble

if TYPE_CHECKING:
    import webbrowser

    from handrail.outside import token_files
    from handrail.surfaces.cli.begin import approvals
    from handrail.surfaces.cli.serve import http
    from handrail.surfaces.web import sign_in
else:  # only to serve, not to show help
    webbrowser = late_module("webbrowser")
    token_files = late_module("handrail.outside.token_files")
    approvals = late_module("handrail.surfaces.cli.begin.approvals")
    http = late_module("handrail.surfaces.cli.serve.http")
    sign_in = late_module("handrail.surfaces.web.sign_in")


def client_url(bound: str, settings: Settings) -> str:
    """The address clients use: one that means every interface of this machine is not a usable name."""
    for everywhere in ("//0.0.0.0:", "//[::]:"):
        if everywhere in bound and settings.allow_hosts:
            name = settings.allow_hosts[0]
            if name.rpartition(":")[2].isdigit():  # with the port that leads here
                return f"http://{name}/{bound.rpartition('/')[2]}"
            return bound.replace(everywhere, f"//{name}:", 1)
    return bound


def sign_in_link(url: str, code: str) -> str:
    """The page's address, next to the tools' `url`, with a code that signs in once."""
    return f"{url.rpartition('/')[0]}/?token={code}"


def team_line(settings: Settings) -> str:
    """How others get a token of their own. The store's address is not repeated: it may contain a password."""
    store = " --global" if settings.global_store else " --db …, as here," if settings.db else ""
    return f"The token is yours alone; handrail token create NAME{store} makes one for somebody else."


@click.command()
@click.option("--http", "address", metavar="HOST:PORT", help="Where to serve.  [default: 127.0.0.1:8765]")
@click.option("--token", envvar="HANDRAIL_TOKEN", help="The bearer token of HTTP calls.  [default: ~/.handrail/token]")
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser; it asks for the code in the link.")
@toolset_options
@common_options
def up(address: str | None, token: str | None, opens: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Serve MCP over HTTP and the page, and print the line to paste into each client. Press Ctrl-C to stop.

    The page shows what agents do and asks for people's decisions. Its sign-in link is printed only on a terminal.
    """
    place = place_of(root)
    if not as_json:
        approvals.settle_approvals(place, options)
    settings = settings_of(place, options)
    handrail = assemble(place, settings)  # refuses a wrong selection before the port is taken
    check_address_trusted(handrail.live.waiting(), address, options, place.environ)
    secret = token or token_files.agent_token(place.home)

    def tell(bound: str, new_code: http.NewCode) -> None:
        url = client_url(bound, settings)
        if as_json:
            selection = {"toolsets": handrail.selection.names, "missing": handrail.selection.missing}
            echo_json({"url": url, "token": secret, "version": __version__, **selection})
        else:
            shown = sits_at_terminal() and sys.stdout.isatty()
            link = sign_in_link(url, new_code(sign_in.START_CODE_S)) if shown else None
            told = (_about_page(url, link), _what_is_on(handrail), team_line(settings))
            click.echo(welcome(url, secret, place.project, *told))
        if opens:  # without the code: every program of this user can read a browser's arguments
            _open_browser(f"{url.rpartition('/')[0]}/")

    http.run_page(place, settings, address=address or settings.http, token=secret, owner=person().name, when_ready=tell)


def _about_page(url: str, link: str | None) -> str:
    """How to sign in: by a link that works once or, if that must not be shown, by a token."""
    if link is not None:
        return f"The page, signed in (this link works once):\n  {click.style(link, bold=True)}"
    page = f"{url.rpartition('/')[0]}/"
    return (
        f"The page is at {page} Its sign-in link is shown on a terminal only; "
        "without one: handrail token create NAME --rights decide"
    )


def _open_browser(link: str) -> None:
    """Opens a browser, and carries on if there is none."""
    try:
        opened = webbrowser.open(link)
    except webbrowser.Error:
        opened = False
    if not opened:
        click.echo("handrail: no browser could be opened; use the address above", err=True)


def _what_is_on(handrail: Handrail) -> str:
    """The tools that clients will see."""
    selection = handrail.selection
    text = f"On: {', '.join(selection.names)} ({len(handrail.switch.published())} tools)."
    return f"{text} Others: --profile or --toolsets; `handrail tools` lists them."


def welcome(url: str, token: str, project: Path, page: str, on: str, team: str) -> str:
    """What is printed once it serves. The page comes last: people look there, and 24 rows have scrolled by then."""
    lines = [
        f"Handrail {__version__} gives coding agents steps to hold on to. It serves {project}",
        f"at {click.style(url, bold=True)} until you press Ctrl-C.",
        on,
        "\nPaste one of these:",
    ]
    titles = {client.name: client.title for client in CLIENTS}
    for name, (where, text) in http_lines(url, token).items():
        lines.append(f"{click.style(titles[name], bold=True)} ({where})\n  {text}")
    lines += [
        team,
        "Clients that start Handrail themselves need no server: `handrail init` sets them up.",
        f"\n{page}",
    ]
    return "\n".join(lines)

"""The composition root for the page: one store behind it and the tools served beside it. Only for `handrail up`."""

from __future__ import annotations

import time

from handrail import __version__
from handrail.domain.crew.token import Token, is_vouched
from handrail.domain.overview.news import news
from handrail.http_wiring import MCP_PATH, NOT_MADE_HERE, NOT_MADE_HERE_HINT, StoredTokens, build_endpoint
from handrail.kernel.errors import NotAllowed, Refusal, StoreBusy
from handrail.kernel.records import UnitOfWork
from handrail.operation import HttpAddress
from handrail.outside.world import SystemClock
from handrail.protocol.http.guard import Guard
from handrail.settings import Settings
from handrail.settings_in_force import live_settings
from handrail.store.open_engine import POSTGRES
from handrail.surfaces.runs import know_runs
from handrail.surfaces.web.app import OWN_PATHS, PageApp, PageFacts, PageParts
from handrail.surfaces.web.feed import PageFeed
from handrail.surfaces.web.request_guard import Door
from handrail.surfaces.web.route import CHANNEL
from handrail.surfaces.web.routes import ROUTES, RouteTable
from handrail.surfaces.web.sign_in import SignedInPerson, SignIn
from handrail.surfaces.web.static_files import StaticFiles
from handrail.wiring import WorkPlace, assemble, ledger_at, looking_ledger, store_address


class Deciders(StoredTokens):
    """Behind the page's `People` port: people whose tokens in the store may decide."""

    def find(self, text: str) -> tuple[SignedInPerson, bool] | None:
        try:
            found = self.token(text)
        except Refusal as refusal:
            raise StoreBusy(f"tokens cannot be looked up now ({refusal.code})", hint="try again soon") from refusal
        if found is None:
            return None
        if not found.is_ours:
            raise NotAllowed(NOT_MADE_HERE, hint=NOT_MADE_HERE_HINT)
        return SignedInPerson(found.token.name, found.token.id), _decides(found.token)

    def still_decides(self, token_id: str) -> bool:
        def decides(unit: UnitOfWork) -> bool:
            token = unit.get(Token, token_id)
            return token is not None and token.revoked_at is None and _decides(token) and is_vouched(unit, token)

        return self._ledger.run(self._actor, decides)


def _decides(token: Token) -> bool:
    return "decide" in token.rights and token.agent_id is None


def build_page(place: WorkPlace, settings: Settings, address: HttpAddress, guard: Guard, *, owner: str) -> PageApp:
    """The page with the tools beside it. `owner` is the person who signs in with the link printed at the start."""
    ledger = ledger_at(place, settings)
    looking = looking_ledger(place, settings, ledger)
    live = live_settings(place.project, place.home, settings)
    reading = assemble(place, settings, http=address, ledger=looking, live=live).call
    know_runs()
    page = PageParts(
        door=Door(hosts=guard.hosts, port=address.port),
        sign_in=SignIn(Deciders(place, looking, CHANNEL), owner=owner, now_s=time.monotonic),
        feed=PageFeed(looking, news),
        table=RouteTable(ROUTES, OWN_PATHS),
        reading=reading,
        look=looking.look,
        writing=assemble(place, settings, http=address, ledger=ledger, live=live).call,
        facts=PageFacts(
            version=__version__,
            project=str(place.project),
            project_name=place.project.name,
            store="postgresql" if store_address(place, settings).startswith(POSTGRES) else "sqlite",
        ),
        now_ms=SystemClock().now_ms,
        files=StaticFiles(),
    )
    return PageApp(page, build_endpoint(place, settings, address, guard, ledger=ledger, live=live), MCP_PATH)

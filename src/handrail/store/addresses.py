"""Addresses of database servers, as text: how they are read, and how much of them may be shown. Everything that shows
an address goes through `shown_server`. Nothing here connects, so the driver is not needed.

Addresses are parsed as libpq does it, since libpq decides what the password is. If libpq would read an address
differently than its author meant it (a password that is not percent-encoded), it counts as unreadable: it is not used,
and nothing of it is shown.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from handrail.kernel.errors import StoreUnusable

POSTGRES = ("postgresql://", "postgres://")
ENCODE_HINT = (
    "postgresql://USER@HOST:PORT/DATABASE; leave the password to PGPASSWORD or ~/.pgpass, "
    "or percent-encode it: @ is %40, / is %2F, : is %3A, ? is %3F"
)
_SECRET = {"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"}
_KNOWN = _SECRET | {
    *(
        "application_name",
        "channel_binding",
        "client_encoding",
        "connect_timeout",
        "dbname",
        "fallback_application_name",
    ),
    *("gssdelegation", "gssencmode", "gsslib", "host", "hostaddr", "keepalives", "keepalives_count", "keepalives_idle"),
    *("keepalives_interval", "krbsrvname", "load_balance_hosts", "max_protocol_version", "min_protocol_version"),
    *("oauth_client_id", "oauth_issuer", "oauth_scope", "options", "passfile", "port", "replication", "require_auth"),
    *("requirepeer", "requiressl", "service", "servicefile", "ssl", "ssl_max_protocol_version"),
    *("ssl_min_protocol_version", "sslcert", "sslcertmode", "sslcompression", "sslcrl", "sslcrldir", "sslkey"),
    *("sslkeylogfile", "sslmode", "sslnegotiation", "sslrootcert", "sslsni", "target_session_attrs"),
    *("tcp_user_timeout", "user"),
}
"""The parameters libpq knows after the question mark. Anything else may be a piece of a password."""
_ODD = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^:@\[\]]*)(:[0-9]*)?")


class Read(NamedTuple):
    """A parsed address."""

    shown: str
    """Without its secrets."""
    secrets: tuple[str, ...]
    """As they were written, and decoded."""


def read(address: str) -> Read | None:
    """An address as libpq reads it; None if that cannot be what was meant."""
    scheme, _, rest = address.partition("://")
    if _ODD.search(address):
        return None
    userinfo, at = "", ""
    if "@" in rest.partition("/")[0]:
        userinfo, at, rest = rest.partition("@")
    place, mark, query = rest.partition("?")
    hosts, _, database = place.partition("/")
    plain = all(_HOST.fullmatch(host) for host in hosts.split(","))
    if not plain or "?" in userinfo or "@" in database:
        return None
    user, _, password = userinfo.partition(":")
    secrets, kept = [password], []
    for option in query.split("&") if query else ():
        name, equals, value = option.partition("=")
        if not equals or "=" in value or unquote(name) not in _KNOWN:
            return None
        if unquote(name) in _SECRET:
            secrets.append(value)
        else:
            kept.append(option)
    shown = f"{scheme}://{user}{at}{place}{mark if kept else ''}{'&'.join(kept)}"
    return Read(shown, tuple({*secrets, *map(unquote, secrets)} - {""}))


def shown_server(address: str) -> str:
    """What may be shown of a server's address: everything but its secrets. Only its scheme if it cannot be read, or if
    a secret also appears in the rest."""
    scheme = address.partition("://")[0]
    found = read(address) if address.startswith(POSTGRES) else None
    if found is None or holds_secret(found.shown.partition("://")[2], found.secrets):
        return f"{scheme}://…"
    return found.shown


def secrets_of(address: str) -> tuple[str, ...]:
    found = read(address)
    return () if found is None else found.secrets


def holds_secret(text: str, secrets: tuple[str, ...]) -> bool:
    """Whether a text contains a secret, as it is or percent-decoded."""
    return any(secret in text or secret in unquote(text) for secret in secrets)


def check_readable(address: str) -> None:
    """Raises StoreUnusable if libpq would read an address differently than it was meant: it would ask the wrong server,
    and repeat pieces of a password in its messages."""
    if read(address) is None:
        raise StoreUnusable("the PostgreSQL address cannot be read", hint=ENCODE_HINT)

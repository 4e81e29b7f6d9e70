"""The page's own files: read once at the start, served under their exact names only. Nothing is looked up on disk while
serving, so no path from a request ever reaches the file system."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

FOLDER = Path(__file__).parent / "static"
INDEX = "index.html"
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
SAFEGUARDS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
"""Sent with every answer of the page. Agents' text is hostile: no script but ours may run, wherever it ends up."""


class StaticFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of the page."""

    kind: str
    etag: str
    data: bytes


class StaticFiles:
    """All of them, by the path they are served at: `/` and `/NAME`, or `/static/NAME`."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._by_path: dict[str, StaticFile] = {}
        for file in sorted(folder.iterdir()):
            kind = _KINDS.get(file.suffix)
            if kind is None or not file.is_file():
                continue
            data = file.read_bytes()
            etag = f'"{hashlib.sha256(data).hexdigest()[:24]}"'
            known = StaticFile(kind=kind, etag=etag, data=data)
            self._by_path[f"/{file.name}"] = self._by_path[f"/static/{file.name}"] = known
        if (index := self._by_path.get(f"/{INDEX}")) is not None:
            self._by_path["/"] = index

    def find(self, path: str) -> StaticFile | None:
        return self._by_path.get(path)


def is_unchanged(file: StaticFile, if_none_match: str) -> bool:
    """Whether the browser already has this version of the file."""
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return file.etag in tags or "*" in tags

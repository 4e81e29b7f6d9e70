"""The resources the runner reads: a text, a picture, one to watch, and a template. Fixed, so nothing is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.samples import RED_PIXEL_PNG
from conformance.toolbox import as_json
from handrail.protocol.exchange import Exchange

WATCHED = "test://watched-resource"

_FIXED: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "test://static-text": (
        "A text that never changes",
        {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    ),
    "test://static-binary": ("A picture that never changes", {"mimeType": "image/png", "blob": RED_PIXEL_PNG}),
    WATCHED: ("A text to subscribe to", {"mimeType": "text/plain", "text": "Watched resource content."}),
}

TEMPLATE = "test://template/{id}/data"
_BEFORE_ID, _, _AFTER_ID = TEMPLATE.partition("{id}")


class FixtureResources:
    """Behind `resources/list`, `resources/templates/list` and `resources/read`."""

    def published(self) -> Sequence[Mapping[str, Any]]:
        return [
            {"uri": uri, "name": uri.removeprefix("test://"), "description": what, "mimeType": contents["mimeType"]}
            for uri, (what, contents) in _FIXED.items()
        ]

    def templates(self) -> Sequence[Mapping[str, Any]]:
        what = "Data of one id"
        return [{"uriTemplate": TEMPLATE, "name": "template", "description": what, "mimeType": "application/json"}]

    def read(self, exchange: Exchange, uri: str) -> Sequence[Mapping[str, Any]] | None:  # noqa: ARG002 - the port
        if uri in _FIXED:
            return [{"uri": uri, **_FIXED[uri][1]}]
        if (data_id := _id_in(uri)) is not None:
            data = {"id": data_id, "templateTest": True, "data": f"Data for ID: {data_id}"}
            return [{"uri": uri, "mimeType": "application/json", "text": as_json(data)}]
        return None


def _id_in(uri: str) -> str | None:
    """What stands for `{id}` in an address that fits the template."""
    if not (uri.startswith(_BEFORE_ID) and uri.endswith(_AFTER_ID)):
        return None
    data_id = uri[len(_BEFORE_ID) : -len(_AFTER_ID)]
    return data_id if data_id and "/" not in data_id else None

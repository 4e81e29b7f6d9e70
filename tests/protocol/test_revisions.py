"""Which revision a handshake settles on, and the envelope of the stateless era."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.protocol.revisions import (
    HANDSHAKE_REVISIONS,
    META_CAPABILITIES,
    META_VERSION,
    UNSUPPORTED_VERSION,
    negotiate,
    stateless_meta,
)
from handrail.protocol.wire import INVALID_PARAMS, RpcError


@pytest.mark.parametrize("version", HANDSHAKE_REVISIONS)
def test_every_published_handshake_revision_is_itself(version: str) -> None:
    assert negotiate(version) == version


@pytest.mark.parametrize("version", ["2026-07-28", "2026-12-01", "2031-01-31"])
def test_the_stateless_revision_and_newer_ones_get_our_newest_handshake(version: str) -> None:
    assert negotiate(version) == "2025-11-25"


@pytest.mark.parametrize(
    "version", ["2024-10-01", "2025-01-01", "2026-07-27", "", "latest", "2026-13-01", "٢٠٣١-٠١-٠١", "9999"]
)
def test_a_version_that_was_never_published_is_refused(version: str) -> None:
    with pytest.raises(RpcError) as refused:
        negotiate(version)
    assert refused.value.code == -32000
    assert refused.value.data == {"supportedVersions": list(HANDSHAKE_REVISIONS), "requestedVersion": version}


def test_a_request_without_the_envelope_is_of_the_handshake_era() -> None:
    assert stateless_meta({}) is None
    assert stateless_meta({"_meta": {"progressToken": 1}}) is None
    assert stateless_meta({"_meta": "text"}) is None


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({META_VERSION: "2026-07-28"}, INVALID_PARAMS),
        ({META_VERSION: "2026-07-28", META_CAPABILITIES: []}, INVALID_PARAMS),
        ({META_VERSION: 7, META_CAPABILITIES: {}}, INVALID_PARAMS),
        ({META_VERSION: "2025-11-25", META_CAPABILITIES: {}}, UNSUPPORTED_VERSION),
        ({META_VERSION: "2027-01-01", META_CAPABILITIES: {}}, UNSUPPORTED_VERSION),
    ],
)
def test_a_wrong_envelope_is_refused(meta: dict[str, Any], code: int) -> None:
    with pytest.raises(RpcError) as refused:
        stateless_meta({"_meta": meta})
    assert refused.value.code == code


def test_an_unknown_stateless_version_names_what_is_supported() -> None:
    with pytest.raises(RpcError) as refused:
        stateless_meta({"_meta": {META_VERSION: "2027-01-01", META_CAPABILITIES: {}}})
    assert refused.value.data == {"supported": ["2026-07-28"], "requested": "2027-01-01"}

"""A kept answer carries its own hash: one that was changed is not given as the answer to a call."""

from __future__ import annotations

import pytest

from handrail.kernel.errors import StoreUnusable
from handrail.kernel.records import KeyWrite
from handrail.store.seals import is_right, opened, sealed
from handrail.store.unit import Unit
from tests.store.ground import Ground
from tests.store.records import ANNA

KEY = KeyWrite("tool", "key", "hash", b'{"ok":1}', 2_000_000_000_000, 1)


def test_what_is_sealed_opens_to_what_it_was() -> None:
    kept = sealed(KEY)
    assert kept[:3] + kept[4:] == KEY[:3] + KEY[4:]
    assert opened(kept.response, *KEY[:3]) == KEY.response
    assert is_right(*kept[:5])


def test_any_flipped_bit_of_it_shows() -> None:
    kept = sealed(KEY).response
    for at in range(len(kept)):
        for bit in range(8):
            flipped = bytearray(kept)
            flipped[at] ^= 1 << bit
            assert not is_right(*KEY[:3], bytes(flipped), KEY.expires_ms), (at, bit)


def test_whatever_it_is_kept_under_is_part_of_it() -> None:
    kept = sealed(KEY).response
    assert not is_right("other", "key", "hash", kept, KEY.expires_ms)
    assert not is_right("tool", "other", "hash", kept, KEY.expires_ms)
    assert not is_right("tool", "key", "other", kept, KEY.expires_ms)
    assert not is_right("tool", "key", "hash", kept, KEY.expires_ms + 1)


def test_an_answer_of_an_older_version_is_plain_json() -> None:
    assert opened(b'{"ok":1}', "tool", "key", "hash") == b'{"ok":1}'
    assert is_right("tool", "key", "hash", b'{"ok":1}', 5)
    assert not is_right("tool", "key", "hash", b'{"ok"', 5)


def test_a_changed_answer_is_refused_not_given(lasting: Ground) -> None:
    lasting.store.run(ANNA, lambda unit: unit.keep_answer(KEY))

    def asked(unit: Unit) -> tuple[str, bytes] | None:
        return unit.key_answer("tool", "key")

    assert lasting.store.run(ANNA, asked) == ("hash", KEY.response)
    lasting.tamper("UPDATE idempotency SET response = ?", sealed(KEY).response[:-2] + b"2}")
    with pytest.raises(StoreUnusable, match="the answer kept for the key key of tool is damaged; nothing was"):
        lasting.store.run(ANNA, asked)
    assert lasting.store.verify() == ["tool key: the answer kept for this key was changed"]

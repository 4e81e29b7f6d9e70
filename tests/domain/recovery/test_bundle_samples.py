"""What a bundle of 1,500 tokens must hold of each recorded workflow for its agent to go on; and the page that shows
them."""

from __future__ import annotations

import msgspec
import pytest

from tests.domain.recovery.samples.page import MAX_TOKENS, PAGE, blocks, shown_on_page
from tests.domain.recovery.samples.shelf import SAMPLES

NEEDED = {
    "a bug fix": (
        "Step 4 of 6: Use key_for in charge.py for the first attempt and every retry",
        "the retry wrapper still calls post without the stored key, next: charge.py:41",
        "key_for runs in a transaction of its own, committed before the request leaves",
        "Key becomes a parameter of PaymentClient.post with no default",
        "do not raise the timeout",
        "pytest tests/payments -k 'slow_provider or restart'",
        "killing the process between attempt and retry leads to the same key",
        "shop/payments/attempts.py",
    ),
    "a feature in parallel parts": (
        "Property test finds a repeated row",
        "row 17 amount 10 already written, updated to 99",
        "No snapshot: an export is exact for rows that did not change",
        "The worker must call beat() at least every 30 s",
        "never more than 2,000 rows in memory",
        "Call export.beat() between chunks",
        "pytest tests/exports -m 'not slow'",
        "CSV writer done",
    ),
    "a migration with failures": (
        "Step 4 of 7: Merge the four progress rows into one ordered range list",
        "[80,97) and [96,98) become [80,97)",
        "Big batches evict the buffer pool",
        "mysqldump with one million keys a range raised replication lag to 44 s",
        "Batches of 1,000 rows, one reader, 12,000 rows/s",
        "The newer updated_at wins in every upsert",
        "use it for the backfill too",
        "Run 21:30-15:30 UTC",
        "must not run in peak hours",
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_small_bundle_holds_what_its_agent_needs(name: str) -> None:
    text = msgspec.json.encode(SAMPLES[name]().load(max_tokens=MAX_TOKENS)).decode()
    assert [needed for needed in NEEDED[name] if needed not in text] == []


@pytest.mark.parametrize("name", SAMPLES)
def test_what_was_replaced_or_solved_does_not_stand_as_if_it_held(name: str) -> None:
    bundle = SAMPLES[name]().load(max_tokens=MAX_TOKENS)
    standing = msgspec.json.encode([bundle.get("decisions"), bundle.get("open_issues")]).decode()
    for gone in ("inside the checkout's transaction", "xmin horizon", "Batches of 20,000", "buffer pool", "Deadlock"):
        assert gone not in standing


def test_the_page_shows_the_bundles_as_they_are() -> None:
    assert shown_on_page(PAGE.read_text(encoding="utf-8")) == blocks()


def test_the_page_is_short() -> None:
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) < 150

"""A bug fix: an issue about double charges; the cause is found, the fix half done."""

# ruff: noqa: E501 - texts stand as they were written

from __future__ import annotations

from tests.domain.recovery.samples.telling import Telling

CURRENT = None
"""The one task in progress."""

ISSUE = """\
Customers are charged twice when the payment provider answers slowly

Since the deploy of 2.14 we see double charges for about 0.3 % of card payments. All of them have in common that the
provider took longer than 10 s to answer the first request. Support has refunded 41 customers by hand so far.

What we know
- The client times out after 10 s and retries. The second request gets a new idempotency key, so the provider treats it
  as a new payment.
- It does not happen with SEPA: that path uses the order id as the key.
- In 2.13 the key was made once per checkout session. 2.14 moved key creation into `PaymentClient.post`, see the commit
  "make PaymentClient stateless".
- Logs of one case (times in UTC):
    12:04:11.201 checkout 8841 POST /charges key=3f0c timeout=10000
    12:04:21.208 checkout 8841 timeout, retry 1/3
    12:04:21.209 checkout 8841 POST /charges key=a71e timeout=10000
    12:04:22.954 checkout 8841 201 Created charge=ch_992
    12:04:23.470 webhook charge.succeeded charge=ch_991 checkout=8841
    12:04:23.518 webhook charge.succeeded charge=ch_992 checkout=8841

Expected
- One checkout is charged at most once, whatever the provider's latency, including when our process restarts between
  the first attempt and the retry.
- A late webhook for an attempt we gave up on is matched to the checkout instead of opening a second order.

Please do not raise the timeout as the fix. We had that in 2.9 and it only moved the problem. The fix must go out as
2.14.1 and must not need a schema change that locks `payments` (120 million rows). Finance needs a list of affected
checkouts since 2.14 (a query is fine).
"""

PLAN = {
    "summary": "Make the idempotency key belong to the checkout attempt, persist it before the first request, and match "
    "late webhooks to it.",
    "approach": "Reproduce with a provider stub that answers after 12 s. Move key creation from PaymentClient.post to the "
    "checkout, store it in the existing payment_attempts table, reuse it on retry and after a restart. Then webhooks, "
    "the regression tests and the query for finance.",
    "risks": ["in-flight checkouts during the deploy have no stored key", "the provider forgets keys after 24 h"],
    "assumptions": ["payment_attempts has a unique index on (checkout_id, number)"],
    "tasks": [
        {
            "name": "reproduce",
            "description": "Write a failing test: a provider stub that answers after 12 s must lead to two charges today.",
            "sequence": 1,
            "files_likely_affected": ["tests/payments/test_slow_provider.py", "tests/stubs/provider.py"],
        },
        {
            "name": "find the cause",
            "description": "Confirm where the key is made and which callers rely on it being new every time.",
            "sequence": 2,
            "depends_on": ["reproduce"],
        },
        {
            "name": "fix the key",
            "description": "The key of a charge request must be the same for every attempt of one checkout, and survive a "
            "restart. Store it before the first request leaves. No schema change on payments; payment_attempts may get "
            "a nullable column. Callers other than checkout (refunds, top-ups) must behave as before.",
            "sequence": 3,
            "depends_on": ["find the cause"],
            "estimated_complexity": "high",
            "files_likely_affected": [
                "shop/payments/client.py",
                "shop/checkout/charge.py",
                "shop/payments/attempts.py",
            ],
            "acceptance": [
                "test_slow_provider passes: one charge, whatever the latency",
                "killing the process between attempt and retry leads to the same key",
                "refunds and top-ups still send a new key per call",
            ],
        },
        {
            "name": "match late webhooks",
            "description": "A charge.succeeded for an attempt we gave up on belongs to its checkout.",
            "sequence": 4,
            "depends_on": ["fix the key"],
        },
        {"name": "query for finance", "description": "SQL for checkouts charged twice since 2.14.", "sequence": 4},
        {
            "name": "release 2.14.1",
            "description": "Changelog, tag, staged rollout with the double-charge alert watched for a day.",
            "sequence": 5,
            "depends_on": ["match late webhooks", "query for finance"],
        },
    ],
}


def tell(telling: Telling) -> None:
    telling.begin(
        PLAN,
        name="Double charges on slow provider answers",
        source_type="github_issue",
        source_ref="https://example.test/shop/issues/4127",
        source_content=ISSUE,
    )
    _reproduce(telling)
    _cause(telling)
    _finance(telling)
    _fix(telling)


def _reproduce(telling: Telling) -> None:
    telling.start("reproduce")
    telling.note(
        "reproduce", "progress", "Provider stub can delay its answer per path; see delay_ms", "tests/stubs/provider.py"
    )
    telling.note(
        "reproduce",
        "error",
        "The test passes by accident: the retry policy in tests is max_attempts=1",
        detail="conftest.py sets RETRIES=1 for all of tests/payments",
    )
    telling.note(
        "reproduce", "recovery", "Test overrides the policy with the production one", "tests/payments/conftest.py"
    )
    telling.note(
        "reproduce", "complete", "test_slow_provider fails as wanted: 2 charges", "tests/payments/test_slow_provider.py"
    )
    telling.done(
        "reproduce",
        "tests/payments/test_slow_provider.py fails on main with two charges for one checkout. Run it with "
        "`pytest tests/payments -k slow_provider`; the fixture `production_retries` is needed, the default policy in "
        "conftest.py retries nothing.",
    )


def _cause(telling: Telling) -> None:
    telling.start("find the cause")
    telling.note("find the cause", "progress", "PaymentClient.post makes uuid4() per call since 5d1c0e2")
    telling.note("find the cause", "progress", "Callers: checkout/charge.py, refunds/service.py, topup/views.py")
    telling.note(
        "find the cause",
        "decision",
        "Key becomes a parameter of PaymentClient.post with no default, so that no caller can forget to choose",
        reason="a default would bring the bug back silently",
    )
    telling.done(
        "find the cause",
        "The key is made in PaymentClient.post (client.py:88), called again by the retry wrapper in charge.py:41. "
        "Refunds and top-ups rely on a new key per call: they never retry. Only checkout needs a stable key. "
        "payment_attempts has one row per attempt and is written after the answer, too late to survive a restart.",
    )


def _finance(telling: Telling) -> None:
    telling.start("query for finance")
    telling.note(
        "query for finance",
        "progress",
        "Query groups captured charges by checkout; 57 since 2.14",
        "ops/sql/double_charges.sql",
    )
    telling.done("query for finance", "ops/sql/double_charges.sql; 57 checkouts, 16 not refunded yet. Sent to finance.")


def _fix(telling: Telling) -> None:
    name = "fix the key"
    telling.plan(
        name,
        "Insert the attempt row with its key before the request leaves; the retry reads it back. The key is derived from "
        "nothing: a uuid4 stored once per checkout attempt group.",
        "Add nullable column idempotency_key to payment_attempts (no lock: add column only, index concurrently)",
        "Make key a required parameter of PaymentClient.post; pass uuid4() in refunds and top-ups",
        "Write AttemptStore.key_for(checkout_id): read the stored key or insert a new one, in its own transaction",
        "Use key_for in charge.py for the first attempt and every retry",
        "Test restart between attempt and retry: kill the worker in the stub's delay",
        "Run the whole payments suite with production_retries",
        files_to_modify=["shop/payments/client.py", "shop/payments/attempts.py", "shop/checkout/charge.py"],
        files_to_create=["migrations/0412_attempt_key.sql", "tests/payments/test_restart.py"],
        context={
            "run_tests": "pytest tests/payments -k 'slow_provider or restart'",
            "migration_number": "0412",
            "owner_of_refunds": "team ledger; tell them before merging a signature change",
        },
    )
    telling.start(name)
    telling.note(
        name,
        "progress",
        "Migration 0412 written, applies in 40 ms on the staging copy",
        "migrations/0412_attempt_key.sql",
        step=1,
    )
    telling.note(
        name,
        "progress",
        "PaymentClient.post takes key; refunds and top-ups pass uuid4()",
        "shop/payments/client.py",
        "shop/refunds/service.py",
        "shop/topup/views.py",
        step=2,
    )
    first = telling.note(
        name,
        "decision",
        "key_for runs inside the checkout's transaction",
        reason="one commit less per checkout",
    )
    telling.note(
        name,
        "error",
        "Deadlock in test_slow_provider: retry waits for the row lock its own first attempt holds",
        traceback="psycopg.errors.DeadlockDetected: deadlock detected\nDETAIL: Process 311 waits for ShareLock on "
        "transaction 8120; blocked by process 309.\n  at shop/payments/attempts.py:52 in key_for",
    )
    telling.note(
        name,
        "decision",
        "key_for runs in a transaction of its own, committed before the request leaves",
        reason="otherwise the retry deadlocks with its own first attempt, and a restart would lose the key",
        supersedes=first,
    )
    telling.note(
        name,
        "recovery",
        "Own connection for key_for; the deadlock is gone, 200 runs green",
        "shop/payments/attempts.py",
        step=3,
    )
    telling.note(
        name,
        "progress",
        "charge.py uses key_for on the first attempt; the retry wrapper still calls post without the stored key, next: "
        "charge.py:41",
        "shop/checkout/charge.py",
    )

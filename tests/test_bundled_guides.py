"""The guides that come with Handrail: they load, they can be walked to the end on every path, and their checks tell a
good output from a lazy one. What a condition or a rule means is tested with the format, not here."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

import handrail
from handrail.domain.guides.conditions import variables
from handrail.domain.guides.definition import Composition, Guide, Rule, Step
from handrail.domain.guides.progress import next_step
from handrail.domain.guides.validation import check_output
from handrail.outside.guide_files import GuideFiles, standard_sources
from handrail.outside.linear_matcher import LinearMatcher
from handrail.outside.user_files import UserFolder

BUNDLED = standard_sources(home=Path(), project=None, storage_path=None)[0]
IDS = tuple(sorted(file.stem for file in BUNDLED.folder.iterdir() if file.suffix == ".yaml"))
PAGE = Path(__file__).parent.parent / "docs" / "guides.md"
MATCHER = LinearMatcher()
LAZY = ("done", "Done. All tests passed.")

VALUES: dict[str, dict[str, tuple[Any, ...]]] = {
    "ai-task-implementation": {"taskSize": ("small", "large"), "openQuestions": (0, 2)},
    "bug-hunt": {"regression": (True, False), "reproducible": ("always", "sometimes", "never")},
    "code-review": {"size": ("small", "large"), "risky": (True, False)},
    "feature-development": {"contractChange": (True, False), "risk": ("low", "high")},
    "incident": {"harm": ("ongoing", "stopped"), "dataAtRisk": (True, False)},
    "migration": {"kind": ("schema", "data", "framework"), "online": (True, False), "backfill": (True, False)},
    "refactoring": {"coverage": ("good", "thin"), "publicSurface": (True, False)},
    "writing-a-guide": {"branching": (True, False)},
    "writing-tests": {"testability": ("good", "poor")},
}
"""The context variables of each guide with the values its prompts name."""

MISSING = object()
SKIPPED: dict[str, dict[str, tuple[str, tuple[Any, ...]]]] = {
    "ai-task-implementation": {
        "clarify": ("openQuestions", (0, MISSING)),
        "challenge-plan": ("taskSize", ("small",)),
    },
    "bug-hunt": {"corner": ("reproducible", ("always",)), "bisect": ("regression", (False, MISSING))},
    "code-review": {"divide": ("size", ("small", MISSING)), "risk": ("risky", (False,))},
    "feature-development": {"contract": ("contractChange", (False,)), "harden": ("risk", ("low",))},
    "incident": {"stabilise": ("harm", ("stopped",)), "data": ("dataAtRisk", (False,))},
    "migration": {
        "expand": ("kind", ("framework",)),
        "bridge": ("kind", ("schema", "data", MISSING)),
        "backfill": ("backfill", (False,)),
    },
    "refactoring": {"safety-net": ("coverage", ("good",)), "compatibility": ("publicSurface", (False,))},
    "writing-a-guide": {"paths": ("branching", (False,))},
    "writing-tests": {"make-room": ("testability", ("good", MISSING))},
}
"""For each conditional step its variable and the values that skip it; with every other value it runs. Guards are not
skipped by a missing value: an agent that forgot to set it does the step."""

GOOD: dict[str, dict[str, str]] = {
    "ai-task-implementation": {
        "plan": """Approach: extend the parser; a second parser would duplicate the escape rules.
            Changes: 1. src/app/parser.py accepts quotes. 2. tests/test_parser.py covers them.
            ## Acceptance
            - quoted commas survive: pytest tests/test_parser.py -k quoted
            **Risks:** exports written by older versions; I will load the three samples in tests/data.""",
        "challenge-plan": """Sinking assumption: the csv module keeps a doubled quote. Checked in a REPL at 3.11:
            it does, with doublequote=True. Empty and 50 MB files: streamed, no change. Callers found by name and
            by entry point: two, both tolerate the new field. Nothing else changed in the plan.""",
        "implement": """1. src/app/parser.py: quotes accepted, done, test seen failing first. 2.
            tests/test_parser.py: four cases, done. Left out: the deprecated reader, nothing calls it.""",
        "review-diff": """Two files changed: src/app/parser.py (quotes), tests/test_parser.py (cases). The reading
            found a debug print at the end of read_row, removed; everything else is needed by the first item.""",
        "verify": """**Verdict:** done
            - Ran: pytest -q → 214 passed (baseline 210); ruff check → clean
            - Acceptance: quoted commas → met, see test_quoted_comma_survives
            - Not done: nothing""",
    },
    "bug-hunt": {
        "symptom": """Observed: `IndexError: list index out of range` in 2.3.1 on Linux since Monday, only for
            empty carts.
            Expected: an empty receipt, as docs/receipts.md says. Damage: none stored. Leads: receipts.py.""",
        "reproduce": """Reproduction: `python -m shop receipt --cart empty.json` from a clean checkout
            Output: IndexError: list index out of range
            Rate: fails in 3 of 20 runs""",
        "corner": """Controlled hash order with PYTHONHASHSEED=0: 0 of 50 runs fail; seed 7: 50 of 50. One worker
            instead of four changes nothing, so interleaving is ruled out. No traces needed, the failure is
            deterministic now.""",
        "bisect": """First bad: 4f2a91c "sort lines by price"; 77b01de before it passes. It sorts a set.""",
        "hypotheses": """H1: empty list indexed. Predicts failure for every empty cart → ran 20 → only 3 fail →
            ruled out.
            H2: set order decides which line is first. Predicts seed dependence → seed 7 always fails → kept.
            H3: stale build. Rebuilt, same → ruled out.""",
        "root-cause": """### Root cause
            `lines` is a set, so "first" is arbitrary, and the total row may come first (src/shop/receipts.py:41).
            Chain: hash seed → order → total row first → index 1 missing.
            Prediction checked: seed 7 with one item must fail too; it did.
            Escaped because: the test's cart had equal prices.""",
        "failing-test": """Test: tests/test_receipts.py::test_the_total_row_comes_last
            Fails with: assert ['total', 'tea'] == ['tea', 'total']""",
        "fix": """Change: src/shop/receipts.py:41 keeps a list; the order is now the cart's, which is the cause.
            Data: nothing stored. Siblings: searched `= {` in src/shop, one more in invoices.py, repaired with its
            test.""",
        "prove": """Verdict: fixed
            With the fix: pytest -q → 340 passed; the reporter's cart prints
            Without the fix: test_the_total_row_comes_last fails as before
            Repeated: 60 of 60 runs passed, old rate 3 of 20
            Cause: order of a set. Prevention: lint rule added. Open: none""",
    },
    "code-review": {
        "intent": """Intent: retries must not send the same mail twice. Range: 1a2b3c4..9f8e7d6, 3 files, builds.
            Right change: yes, the queue is the only place that knows.""",
        "read": """Suspicion: mailer/queue.py:88 - two workers may both see `sent == False`; check with two threads.
            Followed: retry of message 17 through to the send.""",
        "tests": """Ran: pytest tests/mailer → 31 passed at head, 29 at base
            Broke: removed the `sent` check → only one test red
            Gaps: two workers at once""",
        "risk": """Trust: no outside input reaches it. Data: the new column is nullable, the old version ignores
            it; rollback tried on a copy. Concurrency: check-then-act without a lock, see queue.py:88. Failure:
            SMTP timeout leaves `sent` false, retried, fine. Contract and cost do not apply: internal, one query
            more per mail.""",
        "confirm-findings": """queue.py:88 → confirmed with two threads and a barrier: two mails. Naming of
            `flush` → refuted, used so elsewhere.""",
        "verdict": """Verdict: request changes
            BLOCKER mailer/queue.py:88 - with two workers on one message, two mails go out; update where sent is false
            Questions: none
            Checked: all three files, suite at both ends
            Not checked: the SMTP provider's own retries, no access""",
    },
    "feature-development": {
        "frame": """Need: clerks retype orders. Acceptance: AC1: given order 12, `copy 12` makes 13 with the same
            lines. AC2: a cancelled order is refused with E_CANCELLED. AC3: an order of 500 lines copies in under a
            second.
            Non-goals: copying payments. Limits: 500 lines.""",
        "ground": """Model feature: order split, entry at shop/cli.py:210, rule at shop/orders.py:95.
            Baseline: 340 passed.""",
        "design": """Decision: copy in the domain, because AC2 needs the status rule there.
            Rejected: SQL insert-select; would be taken if 500 lines were slow.
            Failure modes: called twice makes two orders, refused by request key.
            Undo: flag order_copy.""",
        "contract": """Contract: `copy ORDER [--date]`. Examples: copy 12 → 13.
            Compatibility: old clients ignore the command; old data has no source id; after a rollback the column
            stays.""",
        "slice": """1. skeleton: copies one line, AC1. 2. refusal, AC2. 3. bulk insert, AC3.""",
        "build": """Slice 1 (a81c2f3): AC1 passes. Slice 2 (0d1e2f3): AC2 passes. Slice 3: AC3 passes at 0.4 s. No
            debts.""",
        "harden": """Empty order → refused. Malformed id → E_ID. Another clerk's order → refused by the permission
            check. Same request twice → second answers 13 again. Two at once → one waits on the row lock. Database
            down → exit 3, nothing written. 5000 lines → 3.1 s, above the limit, refused over 500 as agreed. Flag
            off with copies present → works.
            Not attempted: clock jumps, no clock is read.""",
        "prove": """Verdict: done
            AC1: met - copy 12 printed 13. AC2: met - E_CANCELLED. AC3: met - 0.4 s
            Ran: pytest -q → 361 passed
            Release: flag order_copy. Left open: nothing""",
    },
    "incident": {
        "assess": """Impact: 4 % of logins fail with 503 since 09:12 UTC, growing. Recent changes: release 51 at
            09:05. Log: 09:14 first alert.""",
        "stabilise": """Action: 09:21 back to release 50, agreed by the on-call lead, expected errors to fall
            within 2 min, fell at 09:23, kept. Evidence kept: heap dump and logs of pod 3 in the incident folder.""",
        "confirm-recovery": """Recovered: 09:23 UTC, login errors 0.1 %, as last week at this hour; queue empty at
            09:40.
            Still reduced: release 51 is out.""",
        "data": """Affected: 212 sessions from 09:05 to 09:23, query kept beside this report. Repair: none needed,
            sessions expired by themselves; before 212, after 0. To tell: nobody.""",
        "explain": """Timeline: 09:05 release 51 (deploy log), 09:12 first 503 (gateway), 09:23 recovery.
            Mechanism: proved - pool size read as text, auth/pool.py:33.
            Contributing: no canary, alert threshold at 5 %. Unknown: nothing.""",
        "follow-up": """Verdict: closed
            Actions: typed settings → no 09:12 entry → platform team → loading a bad value fails the build
            Temporary: none. Report: in the wiki""",
    },
    "migration": {
        "inventory": """From text prices to integer cents. Users: orders service, nightly export, the finance sheet
            (found in the query log). Size: 41 million rows, 12 GB, 318 rows with a comma. Conditions: two versions
            run at once.""",
        "strategy": """Phases: expand r51, write both r52, backfill, reconcile, switch r53, contract r55.
            Compatibility: r50 ignores the column, r52 writes both, r53 reads new and still writes old.
            Alternative: one stop, four hours, refused by sales.""",
        "way-back": """Way back: each phase, previous release, 5 min, nothing lost. Point of no return: dropping
            the old column.
            Restore tested: Tuesday, 38 min, checksums equal. Stop signals: lag over 10 s.""",
        "rehearse": """Rehearsed: on last night's copy. Measured: 22 min, longest lock 80 ms, lag 2 s.
            Interrupted: killed at 40 %, resumed, same checksum; second run changed 0 rows. Changed: batch 5000 →
            2000.""",
        "expand": """Released: nullable column in r51. Old code: r50 ran its suite on it.
            Both written: shop/orders.py:140 since r52, 2 May 10:00. Watched: lag 1 s.""",
        "bridge": """Bridge: web/compat.py:12. Pilot: reports, taught us that dates are naive. Left: 214 uses (rg
            -c old_api src).
            Differences: none silent.""",
        "backfill": """Backfilled: 41,002,118 of 41,002,118 in 31 min, batches of 2000. Quarantined: 0.
            Interruptions: one.""",
        "reconcile": """Compared: sums and counts per month, all rows. Mismatches: 0 (318 comma rows repaired first).
            Accepted: none.""",
        "switch": """Stages: 1 % for an hour, 10 % for a day, all; errors flat. Way back used: at 10 %, 40 s.
            Now: reads new, writes both.""",
        "contract": """Verdict: complete
            Unused: column statistics show no read from 3 to 31 May. Removed: column; copy until July.
            Left: nothing""",
    },
    "refactoring": {
        "purpose": """Purpose: adding a payment kind touches five files today (last three changes). Target: one
            registry. Boundary: shop/pay. Must not change: error codes, receipt order. Done when: a new kind is one
            file.""",
        "safety-net": """Tests: tests/pay/test_receipts.py, 14 cases. Breaks: inverted the limit → test_limit red;
            dropped the log call → hole, closed. Surprises: zero payments print twice.""",
        "route": """1. Extract kind lookup (pay/kinds.py), suite green. 2. Move card rules behind it.""",
        "compatibility": """`pay.card` → kept as forwarder, deprecated until 4.0. Surface compared by tool: no
            other change.""",
        "walk": """Move 1 a1b2c3d, move 2 d4c3b2a, move 3 0f9e8d7, suite green after each. Deviation: move 2 was
            split after a red run.
            Tests touched: one import in test_card.py.""",
        "prove-unchanged": """Verdict: behaviour unchanged
            Ran: pytest -q → 340 passed; 10,000 recorded receipts equal byte by byte
            Test diff: one import. Purpose: reached. Later: zero payments print twice""",
    },
    "writing-a-guide": {
        "need": """Work: release notes. Failures: breaking changes missed in 3 of 8 releases. Craft: read merged
            titles. Decision: new guide, nothing near it exists.""",
        "outline": """collect | result: list of changes | prevents omissions. Variables: none.""",
        "draft": """Wrote .handrail/guides/release-notes.yaml; no outline row changed.""",
        "checks": """collect: good output → valid; headings instead of labels → valid; "done" → not valid,
            "Add 'Breaking:'".""",
        "paths": """{} → collect, write; {major: true} → collect, warn, write. No faults.""",
        "validate": """$ handrail guide validate .handrail/guides/release-notes.yaml
            1 checked, 0 with problems. Listed once, from the project.""",
        "trial": """Verdict: ready
            Trial: release 51, by a fresh agent, same list as the original plus one omission. Changed: one label.""",
    },
    "writing-tests": {
        "promises": """P1: a refund never exceeds the payment (docs/refunds.md). P2: a refused refund changes
            nothing. Doors: shop/refunds.py:20. Nobody could confirm rounding.""",
        "make-room": """Real clock → `now` parameter with default, shop/refunds.py:22, callers unchanged.""",
        "cases": """P1: pay 70, refund 71 → refused, catches an inverted condition; refund 70 → accepted.
            P2: balance after.""",
        "write": """tests/test_refunds.py covers P1 and P2. No bugs found.""",
        "break-it": """Breaks: `>` to `>=` → test_a_full_refund_is_accepted red. Harmless change: renamed
            _sum, all green.
            Ran: pytest tests/test_refunds.py --count 20 → 80 passed in 0.9 s
            Verdict: sufficient""",
    },
}
"""One good output for each step with criteria, valid in every context of the guide."""


def _shelf(source: UserFolder) -> GuideFiles:
    return GuideFiles((source,), matcher=MATCHER, server_version=handrail.__version__)


GUIDES: dict[str, Guide] = {loaded.guide.id: loaded.guide for loaded in _shelf(BUNDLED).guides()}


def _step(guide_id: str, step_id: str) -> Step:
    return next(step for step in GUIDES[guide_id].steps if step.id == step_id)


def _contexts(guide_id: str) -> list[dict[str, Any]]:
    names = VALUES[guide_id]
    combined = itertools.product(*((*values, MISSING) for values in names.values()))
    return [{name: value for name, value in zip(names, row, strict=True) if value is not MISSING} for row in combined]


def _walk(guide: Guide, context: dict[str, Any]) -> list[str]:
    """The steps in the order they are given, until none is left that applies."""
    done: list[str] = []
    while (progress := next_step(guide, completed=done, current=None, context=context)).step is not None:
        assert not progress.is_complete
        done.append(progress.step.id)
    return done


def _checked_steps() -> list[tuple[str, str]]:
    return [(guide.id, step.id) for guide in GUIDES.values() for step in guide.steps if step.validation_criteria]


def _rules(criteria: tuple[Rule, ...] | Composition | Rule | None) -> list[Rule]:
    if criteria is None:
        return []
    if isinstance(criteria, Rule):
        return [criteria]
    if isinstance(criteria, Composition):
        inner = (*(criteria.and_ or ()), *(criteria.or_ or ()), *(() if criteria.not_ is None else (criteria.not_,)))
        return [rule for branch in inner for rule in _rules(branch)]
    return list(criteria)


def test_every_bundled_guide_loads_without_a_problem() -> None:
    assert _shelf(BUNDLED).problems() == ()
    assert tuple(sorted(GUIDES)) == IDS


def test_a_bundled_guides_id_is_its_file_stem() -> None:
    assert {loaded.guide.id: loaded.file.stem for loaded in _shelf(BUNDLED).guides()} == {name: name for name in IDS}


def test_the_tables_here_cover_every_guide() -> None:
    assert set(VALUES) == set(SKIPPED) == set(GOOD) == set(IDS)


@pytest.mark.parametrize("guide_id", IDS)
def test_every_path_gives_the_steps_its_context_calls_for_and_ends(guide_id: str) -> None:
    guide = GUIDES[guide_id]
    for context in _contexts(guide_id):
        skipped = {
            step_id
            for step_id, (variable, values) in SKIPPED[guide_id].items()
            if any(
                context.get(variable, MISSING) is value or context.get(variable, MISSING) == value for value in values
            )
        }
        walked = _walk(guide, context)
        assert walked == [step.id for step in guide.steps if step.id not in skipped], context
        left = next_step(guide, completed=walked, current=None, context=context)
        assert left.is_complete is not bool(skipped)
        assert next_step(guide, completed=[*walked, *skipped], current=None, context=context).is_complete


@pytest.mark.parametrize("guide_id", IDS)
def test_a_variable_and_its_values_are_named_in_a_prompt_before_they_decide_anything(guide_id: str) -> None:
    named: set[str] = set()
    for step in GUIDES[guide_id].steps:
        assert set(variables(step.run_condition)) <= named, step.id
        for variable, values in VALUES[guide_id].items():
            if f"- {variable}: " in step.prompt:
                named.add(variable)
                line = step.prompt.partition(f"- {variable}: ")[2].partition("\n- ")[0]
                # A flag may name one value and call the other "otherwise"; a text must name all of its values.
                words = {f'"{value}"' for value in values if isinstance(value, str)}
                assert all(word in line for word in words), (step.id, variable)
        for rule in _rules(step.validation_criteria):
            assert set(variables(rule.condition)) <= named, step.id
    assert named == set(VALUES[guide_id])


def test_every_checked_step_has_a_good_output_here() -> None:
    assert sorted(_checked_steps()) == sorted((guide, step) for guide, outputs in GOOD.items() for step in outputs)


@pytest.mark.parametrize(("guide_id", "step_id"), _checked_steps())
def test_a_good_output_passes_in_every_context(guide_id: str, step_id: str) -> None:
    for context in _contexts(guide_id):
        verdict = check_output(_step(guide_id, step_id), GOOD[guide_id][step_id], context, MATCHER)
        assert verdict.valid, (context, verdict.issues)


@pytest.mark.parametrize(("guide_id", "step_id"), _checked_steps())
def test_a_lazy_output_fails_with_a_message_in_every_context(guide_id: str, step_id: str) -> None:
    for context, lazy in itertools.product(_contexts(guide_id), LAZY):
        verdict = check_output(_step(guide_id, step_id), lazy, context, MATCHER)
        assert not verdict.valid
        assert all(len(issue) > 20 for issue in verdict.issues)
        assert verdict.issues


def test_an_intermittent_bug_must_be_proved_by_repetition() -> None:
    once = "\n".join(line for line in GOOD["bug-hunt"]["prove"].splitlines() if "Repeated" not in line)
    prove = _step("bug-hunt", "prove")
    assert check_output(prove, once, {"reproducible": "always"}, MATCHER).valid
    verdict = check_output(prove, once, {"reproducible": "sometimes"}, MATCHER)
    assert [issue for issue in verdict.issues if "Repeated: N of N" in issue]


def test_an_unknown_root_cause_is_not_a_root_cause() -> None:
    unsure = GOOD["bug-hunt"]["root-cause"].replace("`lines` is a set", "Unknown, but `lines` is a set")
    verdict = check_output(_step("bug-hunt", "root-cause"), unsure, {}, MATCHER)
    assert len(verdict.issues) == 1
    assert "given as not known" in verdict.issues[0]


def test_a_review_cannot_approve_with_an_open_blocker() -> None:
    review = GOOD["code-review"]["verdict"]
    step = _step("code-review", "verdict")
    assert not check_output(step, review.replace("request changes", "approve"), {}, MATCHER).valid
    assert check_output(
        step, review.replace("request changes", "approve").replace("BLOCKER", "MINOR"), {}, MATCHER
    ).valid
    nothing = "Verdict: approve\nFindings: none\nChecked: all\nNot checked: nothing"
    assert check_output(step, nothing, {}, MATCHER).valid


def test_a_feature_is_not_done_while_an_example_is_not_met() -> None:
    report = GOOD["feature-development"]["prove"].replace("AC1: met", "AC1: not met")
    step = _step("feature-development", "prove")
    assert not check_output(step, report, {}, MATCHER).valid
    assert check_output(step, report.replace("Verdict: done", "Verdict: partial"), {}, MATCHER).valid


def test_headings_pass_where_the_prompt_shows_labels() -> None:
    report = "## Verdict\n\n**fixed**\n\n## With the fix\n\n| run | result |\n\n### Without the fix\n\nfails again"
    assert check_output(_step("bug-hunt", "prove"), report, {"reproducible": "always"}, MATCHER).valid
    report = "1. **Impact**\n   4 % of logins\n2. **Recent changes**\n   release 51"
    assert check_output(_step("incident", "assess"), report, {}, MATCHER).valid


def test_the_pages_example_is_a_guide_that_runs_as_it_says(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "release-notes.yaml").write_text(text, encoding="utf-8")
    shelf = _shelf(UserFolder("page", tmp_path))
    assert shelf.problems() == ()
    guide = shelf.guides()[0].guide
    assert _walk(guide, {"breaking": 0}) == ["collect", "publish"]
    assert _walk(guide, {"breaking": 2}) == ["collect", "ways-across", "publish"]
    notes = "Breaking: `--old` is gone, use `--new`. New: copies. Repaired: receipts of empty carts print again."
    assert check_output(guide.steps[2], notes, {}, MATCHER).valid
    assert not check_output(guide.steps[2], f"{notes} And various improvements.", {}, MATCHER).valid


def test_the_page_lists_each_bundled_guide_with_its_variables() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for guide_id, names in VALUES.items():
        row = next(line for line in lines if line.startswith(f"| `{guide_id}` |"))
        assert row.split(" | ")[2].split("`")[1::2] == list(names)


def test_the_task_guide_is_the_one_the_tools_document_shows() -> None:
    guide = GUIDES["ai-task-implementation"]
    assert guide.name == "AI Task Prompt Workflow"
    assert guide.description == "Guides through task understanding → planning → implementation → verification"
    assert (guide.category, guide.version) == ("development", "1.0.0")
    assert guide.preconditions == ("Task description is clear and complete",)
    first = guide.steps[0]
    assert (first.id, first.title) == ("understand", "Deep understanding of task and codebase")
    assert first.prompt.startswith("Analyze the task description")
    assert first.require_confirmation
    assert [line.partition(" ")[0] for line in first.guidance] == ["PREP:", "IMPLEMENT:", "VERIFY:"]
    assert check_output(first, "I have analyzed the requirements.", {}, MATCHER).valid
    assert {"plan", "implement", "verify"} < {step.id for step in guide.steps}


@pytest.mark.parametrize("guide_id", IDS)
def test_prompts_stay_short_enough_to_be_read(guide_id: str) -> None:
    for step in GUIDES[guide_id].steps:
        assert 400 <= len(step.prompt) <= 1500, step.id

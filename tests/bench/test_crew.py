"""`bench/crew` would notice: a lost write, a doubled one, one in the wrong place, a claim that was given twice."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.crew.burst import Ask, Written, percentile
from bench.crew.checking import doubled, lost, out_of_order
from bench.crew.claims import claim_problems
from bench.crew.contestants import Findings
from bench.crew.lines import Reply, messages_in, reply_of, split_reply
from bench.crew.messages import Round
from bench.crew.report import loss, rate_ratio
from handrail.kernel.ledger import Change, Event


def written(mark: str, began_ns: int, done_ns: int) -> Written:
    return Written(Ask(mark, "write", {}), Reply(False, mark), began_ns, done_ns)


def known(*writes: Written) -> dict[str, Written]:
    return {one.ask.mark: one for one in writes}


def a_round(per_s: float, *, lost: int = 0, problem: str | None = None) -> Round:
    return Round(100, per_s, 1.0, 2.0, Counter(), Findings(lost, problem=problem))


def test_what_was_acknowledged_and_is_not_kept_is_lost() -> None:
    assert lost(["a", "b", "c"], ["c", "a", "never acknowledged"]) == ["b"]


def test_what_is_kept_twice_is_doubled() -> None:
    assert doubled(["a", "b", "a"]) == ["a"]


def test_of_two_that_followed_each_other_the_first_stands_first() -> None:
    first, second = written("first", 0, 10), written("second", 11, 20)
    assert out_of_order(["first", "second"], known(first, second)) == []
    assert out_of_order(["second", "first"], known(first, second)) == ["second"]


def test_of_two_that_were_under_way_together_either_may_stand_first() -> None:
    one, other = written("one", 0, 10), written("other", 5, 20)
    assert out_of_order(["one", "other"], known(one, other)) == []
    assert out_of_order(["other", "one"], known(one, other)) == []


def test_order_is_held_across_what_stands_between() -> None:
    early, long, late = written("early", 0, 10), written("long", 5, 90), written("late", 50, 60)
    assert out_of_order(["late", "long", "early"], known(early, long, late)) == ["late"]


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50.5), (0.99, 99.01)])
def test_a_percentile_is_what_so_many_do_not_exceed(share: float, expected: float) -> None:
    assert percentile([float(number) for number in range(1, 101)], share) == pytest.approx(expected)


def test_few_values_have_a_percentile_too() -> None:
    assert percentile([], 0.99) == 0
    assert percentile([7.0], 0.99) == 7


# -- claims ----------------------------------------------------------------------------------------------------------


def event(kind: str, task: str) -> Event:
    changes = (Change("task", task, {}, {}), Change("lease", task, {}, None))
    return Event("wf_1", 1, 1, kind, "ag_1", "mcp", 1, {}, changes, "")


def test_every_claim_once_is_no_problem() -> None:
    events = [event("task.claimed", "t1"), event("task.in_progress", "t1"), event("task.completed", "t1")]
    assert claim_problems(events, acknowledged=2) == []


def test_a_task_that_was_claimed_twice_is_told() -> None:
    assert claim_problems([event("task.claimed", "t1")] * 2, acknowledged=2) == ["t1 was claimed 2 times"]


def test_a_claim_that_is_missing_is_told() -> None:
    problems = claim_problems([event("task.claimed", "t1")], acknowledged=2)
    assert problems == ["2 calls were acknowledged, 1 are there"]


# -- replies ---------------------------------------------------------------------------------------------------------


def test_a_refusal_is_no_acknowledgement_whichever_way_it_is_said() -> None:
    assert reply_of({"error": {"code": -32602}}).refused
    assert reply_of({"result": {"isError": True, "content": [{"type": "text", "text": "no"}]}}).refused
    assert not reply_of({"result": {"content": [{"type": "text", "text": "yes"}]}}).refused


def test_an_http_reply_of_a_stated_length_is_whole_when_all_of_it_came() -> None:
    received = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}rest"
    assert split_reply(received) == ("HTTP/1.1 200 OK\r\nContent-Length: 2", b"{}", b"rest")
    assert split_reply(received[:-5]) is None


def test_a_chunked_reply_is_whole_with_its_last_chunk() -> None:
    received = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\ndata: \r\n8\r\n{"id":1}\r\n0\r\n\r\n'
    whole = split_reply(received)
    assert whole is not None
    assert messages_in(whole[1]) == [{"id": 1}]
    assert all(split_reply(received[:length]) is None for length in range(len(received)))


# -- telling ---------------------------------------------------------------------------------------------------------


def test_losses_are_told_with_their_share_and_what_else_is_wrong() -> None:
    assert loss([a_round(1.0), a_round(1.0)]) == "0"
    assert loss([a_round(1.0, lost=50), a_round(1.0)]) == "50 (25%)"
    unreadable = [a_round(1.0, lost=100, problem="store unreadable")]
    assert loss(unreadable) == "100 (100%), store unreadable after 1 of 1 rounds"


def test_a_ratio_is_the_median_of_the_rounds_own() -> None:
    results = {"one": [a_round(10), a_round(40), a_round(30)], "base": [a_round(10), a_round(20), a_round(10)]}
    assert rate_ratio(results, "one", "base") == 2
    assert rate_ratio(results, "one", "nobody") is None

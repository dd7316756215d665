"""The analysis of stored answers: counts, pairs, letters and spreads."""

from __future__ import annotations

import time

import pytest

from spt.analysis import Analysis, Cells, analyse, first_letter
from spt.spec import Arm
from tests.predictions import ARMS, Rows, closed_rows, row, rows


def test_the_four_cells() -> None:
    answers = [row(0, True, True), row(1, True, False), row(2, True, False), row(3, False, True), row(4, False, False)]
    cells = analyse({"zero_shot": answers}, closed=False, arms=ARMS).cells
    expected = Cells(knows_in=1, knows_out=2, wrong_in=1, wrong_out=1, tax_items=("i1", "i2"))
    assert cells == {"zero_shot": expected}
    assert cells["zero_shot"].n == 5


def test_what_is_compared() -> None:
    names = ["zero_shot", "few_shot", "soft_prompt", "seed-1", "seed-2", "shuffled", "valid-format", "tuned_items"]
    analysis = analyse({name: rows(40, 20, 40) for name in names}, closed=False, arms=ARMS)
    baselines, both = ("zero_shot", "few_shot"), ("shuffled", "valid-format")
    pairs = [(a, "soft_prompt") for a in (*baselines, *both)] + [(a, control) for control in both for a in baselines]
    assert [(e.a, e.b) for e in analysis.equivalence] == pairs
    metrics = ("format", "knowledge", "exact_match")
    assert [(c.a, c.b, c.metric) for c in analysis.comparisons] == [(*pair, m) for pair in pairs for m in metrics]
    assert analysis.controls == ("shuffled", "valid-format")
    assert set(analysis.cells) == set(names) and set(analysis.tuned_vs_unseen) == set(metrics)
    assert Analysis.model_validate_json(analysis.model_dump_json()) == analysis


def test_the_sign_is_of_the_soft_prompt_and_of_the_tuned_items() -> None:
    methods = {"zero_shot": rows(50, 10, 0), "soft_prompt": rows(50, 30, 50), "tuned_items": rows(20, 20, 20)}
    analysis = analyse(methods, closed=False, arms=ARMS)
    rise = analysis.comparison("zero_shot", "soft_prompt", "knowledge")
    assert rise is not None and (rise.difference, rise.only_a, rise.only_b, rise.n) == (0.4, 0, 20, 50)
    tuned = analysis.tuned_vs_unseen["exact_match"]
    assert (tuned.difference, tuned.n_a, tuned.n_b) == (0.4, 50, 20)


def test_the_spread_over_seeds() -> None:
    methods = {"soft_prompt": rows(10, 4, 10), "seed-1": rows(10, 6, 10), "seed-2": rows(10, 8, 10)}
    spread = analyse(methods, closed=False, arms=ARMS).seeds["knowledge"]
    assert (spread.mean, spread.low, spread.high, spread.sd, spread.n_seeds) == pytest.approx((0.6, 0.4, 0.8, 0.2, 3))
    assert analyse({"soft_prompt": rows(10, 4, 10), "shuffled": rows(10, 4, 10)}, closed=False, arms=ARMS).seeds == {}


def test_letters_are_counted_for_closed_questions_alone() -> None:
    methods = {"zero_shot": closed_rows(8, 2, "AB"), "soft_prompt": closed_rows(8, 2, "C")}
    letters = analyse(methods, closed=True, arms=ARMS).letters
    assert letters["reference"] == {"A": 2, "B": 2, "C": 2, "D": 2, "other": 0}
    assert letters["zero_shot"] == {"A": 4, "B": 4, "C": 0, "D": 0, "other": 0}
    assert letters["soft_prompt"]["C"] == 8
    assert analyse({"soft_prompt": rows(8, 2, 8)}, closed=False, arms=ARMS).letters == {}
    assert (first_letter("(B) Rome"), first_letter("Berlin"), first_letter("")) == ("B", "other", "other")


def test_other_items_and_items_that_stand_twice_are_refused() -> None:
    with pytest.raises(ValueError, match="not the same items"):
        analyse({"zero_shot": rows(8, 2, 8), "soft_prompt": rows(9, 2, 8)}, closed=False, arms=ARMS)
    with pytest.raises(ValueError, match="1 predictions have the id"):
        analyse({"zero_shot": [row(0, True, True), row(0, True, True)]}, closed=False, arms=ARMS)


def test_the_order_of_items_does_not_matter() -> None:
    zero, soft = rows(64, 20, 0), rows(64, 30, 64, start=10)
    there = analyse({"zero_shot": zero, "soft_prompt": soft}, closed=False, arms=ARMS)
    assert analyse({"zero_shot": zero, "soft_prompt": soft[::-1]}, closed=False, arms=ARMS) == there


@pytest.mark.parametrize(
    "methods",
    [
        {},
        {"zero_shot": []},
        {"soft_prompt": rows(1, 0, 0)},
        {"shuffled": rows(1, 1, 1)},
        {"tuned_items": rows(1, 1, 1)},
    ],
)
@pytest.mark.parametrize("closed", [True, False])
def test_missing_methods_leave_their_parts_empty(methods: dict[str, Rows], closed: bool) -> None:
    analysis = analyse(methods, closed=closed, arms=())
    assert analysis.comparisons == analysis.equivalence == () and analysis.seeds == analysis.tuned_vs_unseen == {}
    assert {finding.kind for finding in analysis.findings} <= {"chance", "few"}


@pytest.mark.parametrize("n", [1, 2, 64])
@pytest.mark.parametrize("share", [0, 1])
@pytest.mark.parametrize("closed", [True, False])
def test_all_or_nothing_right_says_something_sound(n: int, share: int, closed: bool) -> None:
    names = ["zero_shot", "few_shot", *(arm.name for arm in ARMS), "tuned_items"]
    make = (lambda: closed_rows(n, n * share, "ABCD")) if closed else (lambda: rows(n, n * share, n))
    for finding in analyse({name: make() for name in names}, closed=closed, arms=ARMS).findings:
        assert finding.text.endswith(".") and "nan" not in finding.text and "None" not in finding.text


def test_ten_thousand_items_are_quick() -> None:
    names = ["zero_shot", "few_shot", "soft_prompt", "seed-1", "seed-2", "shuffled", "tuned_items"]
    methods = {name: closed_rows(10_000, 4000 + 100 * i, "ABCD") for i, name in enumerate(names)}
    arms = [Arm("soft_prompt", 0), Arm("seed-1", 1), Arm("seed-2", 2), Arm("shuffled", 0, "shuffled")]
    start = time.process_time()  # of the processor: other tests run beside this one
    analyse(methods, closed=True, arms=arms)
    assert time.process_time() - start < 3

"""Rates and their intervals against published values; the three rates kept apart."""

from __future__ import annotations

import pytest

from spt.metrics import MethodScores, Prediction, Rate


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [  # Newcombe 1998, Statistics in Medicine 17:857, table I, method 3 (score without continuity correction)
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_interval(k: int, n: int, low: float, high: float) -> None:
    rate = Rate.of([True] * k + [False] * (n - k))
    assert (rate.rate, rate.n) == (k / n, n)
    assert (rate.low, rate.high) == pytest.approx((low, high), abs=5e-5)


def test_a_rate_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Rate.of([])


def prediction(in_format: bool, knows: bool, exact: bool) -> Prediction:
    return Prediction(
        id="x", question="q", target="t", answer="a", response="r", in_format=in_format, knows=knows, exact_match=exact,
        stopped_by="eos" if exact else "length",
    )  # fmt: skip


def test_the_rates_are_counted_apart() -> None:
    rows = [prediction(True, True, True), prediction(False, True, False), prediction(True, False, False)]
    scores = MethodScores.of([*rows, prediction(False, True, False)], closed=False)
    assert (scores.format.rate, scores.knowledge.rate, scores.exact_match.rate) == (0.5, 0.75, 0.25)
    assert scores.format_tax == 0.5
    assert scores.stopped_by == {"eos": 1, "length": 3}
    assert scores.knowledge_by == "rule"
    assert MethodScores.of(rows, closed=True).knowledge_by == "likelihood"

"""Swap distance, chance and intervals against brute force; orders of made-up models against what they must be."""

from __future__ import annotations

from itertools import pairwise, permutations, product
from math import nan

import numpy as np
import pytest

from spt import swaps
from spt.ranking import Cell, Scores, Twins, rank


def linear_extensions(scores: list[float]) -> list[tuple[int, ...]]:
    """All orders, best first, that put a higher score before a lower one and tied models in any way."""
    orders = permutations(range(len(scores)))
    return [o for o in orders if all(scores[a] >= scores[b] for a, b in pairwise(o))]


def inverted(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """Pairs that stand the other way round, counted by bubble sort."""
    line = [other.index(model) for model in one]
    done = 0
    for _ in line:
        for i in range(len(line) - 1):
            if line[i] > line[i + 1]:
                line[i], line[i + 1] = line[i + 1], line[i]
                done += 1
    return done


@pytest.mark.parametrize("seed", range(12))
def test_distance_is_the_mean_over_all_ways_to_break_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = (rng.integers(0, 4, size=5).tolist() for _ in range(2))
    ways = [inverted(a, b) for a, b in product(linear_extensions(one), linear_extensions(other))]
    assert swaps.swaps(one, other) == pytest.approx(np.mean(ways))
    assert swaps.swaps(other, one) == swaps.swaps(one, other)


def test_no_tie_is_broken_by_position_or_name() -> None:
    assert swaps.swaps([1, 1], [1, 2]) == swaps.swaps([1, 1], [2, 1]) == 0.5
    assert swaps.swaps([0.1 + 0.2, 0.3], [1, 2]) == 0.5  # means over seeds have rounding errors


def test_chance_of_seven_models() -> None:
    assert swaps.possible(7) == 21 and swaps.chance_mean(7) == 10.5
    shares = swaps.inversions(7)
    assert sum(shares) == pytest.approx(1) and len(shares) == 22
    assert np.dot(shares, range(22)) == pytest.approx(10.5)
    assert sum(shares[:6]) == pytest.approx(343 / 5040)


def test_chance_is_exact_against_all_orders() -> None:
    for models in (2, 3, 5):
        found = [inverted(order, tuple(range(models))) for order in permutations(range(models))]
        counted = [found.count(d) / len(found) for d in range(swaps.possible(models) + 1)]
        assert swaps.inversions(models) == pytest.approx(counted)


def test_probability_by_chance() -> None:
    seven = [7, 6, 5, 4, 3, 2, 1]
    five_swaps = [6, 7, 4, 5, 2, 3, 1]  # three neighbours swapped
    assert swaps.chance_p(seven, seven) == pytest.approx(1 / 5040)
    assert swaps.chance_p(five_swaps, seven) == pytest.approx(sum(swaps.inversions(7)[:4]))
    assert swaps.chance_p(seven[::-1], seven) == pytest.approx(1)


def test_probability_with_ties_counts_the_orders_that_keep_them() -> None:
    reference = [1.0, 2.0, 3.0]
    assert swaps.chance_p([5, 5, 5], reference) == 1  # any order of the same scores is as near
    # Of the three places of the one better model, one is nearest.
    assert swaps.chance_p([0, 0, 1], reference) == pytest.approx(1 / 3)


def test_probability_of_many_models_with_ties_is_sampled_and_repeats() -> None:
    scores = [float(i // 2) for i in range(12)]
    near = swaps.chance_p(scores, list(range(12)))
    assert 0 < near < 0.001 and near == swaps.chance_p(scores, list(range(12)))


def test_tau_b_and_where_there_is_none() -> None:
    assert swaps.tau_b([1, 2, 3], [1, 2, 3]) == pytest.approx(1)
    assert swaps.tau_b([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(5 / np.sqrt(5 * 6))
    assert swaps.tau_b([1, 1, 1], [1, 2, 3]) is None
    assert swaps.tau_b([1], [1]) is None


def test_places_share_the_mean_of_their_ranks() -> None:
    assert swaps.places([0.5, 0.9, 0.5, 0.1]).tolist() == [2.5, 1, 2.5, 4]


def test_close_pairs_are_those_the_items_cannot_tell_apart() -> None:
    assert swaps.close([[0.5], [0.52], [0.95]], [64]) == 1
    assert swaps.close([[0.5], [0.52], [0.95]], [20_000]) == 0
    assert swaps.close([[0.0], [0.0], [1.0]], [64]) == 1  # a tie is close; nothing has no width
    assert swaps.close([[0.5, 0.5], [0.6, 0.6]], [120, 120]) == 0 < swaps.close([[0.5], [0.6]], [120])


def test_resampled_rates_have_the_spread_of_their_items_and_keep_what_models_share() -> None:
    rng = np.random.default_rng(0)
    outcomes = np.stack([rng.random(400) < 0.3, rng.random(400) < 0.6, np.ones(400)]).astype(float)
    outcomes = np.concatenate([outcomes, outcomes[:1]])
    drawn = swaps.resampled_rates(outcomes, 3000, 1)
    assert drawn.shape == (3000, 4)
    rate = outcomes[0].mean()
    assert drawn[:, 0].mean() == pytest.approx(rate, abs=0.002)
    assert drawn[:, 0].std() == pytest.approx(np.sqrt(rate * (1 - rate) / 400), rel=0.05)
    assert (drawn[:, 2] == 1).all()
    assert (drawn[:, 0] == drawn[:, 3]).all()  # the same answers stay tied, however items are drawn
    assert (drawn == swaps.resampled_rates(outcomes, 3000, 1)).all()


# ---- orders


def twins(number: int) -> list[Twins]:
    return [Twins(f"M{i}", f"base{i}", f"post{i}") for i in range(number)]


def cells(base: list[float], post: list[float], n: int | None = 1000, items: bool = False) -> dict:
    """Soft-prompt scores of the bases, zero-shot and soft-prompt scores of their twins."""
    found = {}
    for name, values in (("base", base), ("post", post)):
        for i, value in enumerate(values):
            right = (np.arange(n or 0) < round(value * (n or 0))).astype(float) if items else None
            cell = Cell(value, n, outcomes=right)
            for method in ("soft_prompt",) if name == "base" else ("zero_shot", "soft_prompt"):
                found[f"{name}{i}", method] = cell
    return found


def test_an_order_against_its_reference() -> None:
    scores: Scores = {"b": cells([0.1, 0.3, 0.2], [0.4, 0.5, 0.6])}
    ranked = rank(scores, twins(3))
    (order,) = ranked.benchmarks[0].orders
    assert (order.method, order.distance.value, order.pairs, order.chance) == ("soft_prompt", 1, 3, 1.5)
    assert order.distance.low is None  # no answers to resample
    assert order.gap is not None and order.gap.value == pytest.approx(0.3)
    assert order.gaps["M2"] == pytest.approx(0.4)
    assert order.tied == 0 and order.close == 0 and order.mark == ""
    assert ranked.overall is None and ranked.averages[0].distance.value == 1
    assert ranked.benchmarks[0].items == 1000


def test_marks_for_ties_and_for_too_few_items() -> None:
    ties = rank({"b": cells([0.0, 0.0, 0.0, 0.2], [0.1, 0.2, 0.3, 0.4])}, twins(4)).benchmarks[0].orders[0]
    assert (ties.mark, ties.tied) == ("mostly ties", 3)
    assert ties.distance.value == 1.5  # the three ties, one half each
    few = rank({"b": cells([0.3, 0.32, 0.34, 0.36], [0.1, 0.2, 0.3, 0.4], n=64)}, twins(4)).benchmarks[0].orders[0]
    assert (few.mark, few.tied, few.close) == ("mostly too close to tell", 0, 6)
    unknown = rank({"b": cells([0.3, 0.32], [0.1, 0.2], n=None)}, twins(2)).benchmarks[0].orders[0]
    assert unknown.close is None and unknown.mark == ""


def test_interval_over_items() -> None:
    scores: Scores = {"b": cells([0.1, 0.5, 0.9], [0.2, 0.6, 0.95], items=True)}
    order = rank(scores, twins(3)).benchmarks[0].orders[0]
    assert (order.distance.low, order.distance.high) == (0, 0)  # far apart: no resampling turns them
    near = rank({"b": cells([0.5, 0.501, 0.502], [0.2, 0.6, 0.95], items=True)}, twins(3)).benchmarks[0].orders[0]
    assert near.distance.value == 0 and near.distance.high is not None and near.distance.high > 0
    assert order.gap is not None and order.gap.low is not None and order.gap.high is not None
    assert order.gap.low < order.gap.value < order.gap.high
    assert order == rank(scores, twins(3)).benchmarks[0].orders[0]  # seeded


def test_over_all_is_the_mean_score_and_averages_are_of_distances() -> None:
    a = cells([0.1, 0.3], [0.4, 0.5], items=True)
    b = cells([0.9, 0.2], [0.4, 0.5], items=True)
    ranked = rank({"a": a, "b": b}, twins(2))
    assert ranked.overall is not None
    order = ranked.overall.orders[0]
    assert [score.value for score in order.base] == pytest.approx([0.5, 0.25])
    assert order.distance.value == 1 and order.base[0].n == 2000
    (average,) = ranked.averages
    assert average.distance.value == 0.5 and average.benchmarks == 2 and average.distance.low is not None


def test_soft_prompt_nearer_than_another_method() -> None:
    grid = cells([0.1, 0.5, 0.9], [0.2, 0.6, 0.95], items=True)
    grid |= {(f"base{i}", "few_shot"): grid[f"base{2 - i}", "soft_prompt"] for i in range(3)}
    averages = {a.method: a for a in rank({"b": grid}, twins(3)).averages}
    assert averages["few_shot"].nearer is not None and averages["few_shot"].nearer.value == 3
    assert averages["few_shot"].nearer.low == 3
    assert averages["soft_prompt"].nearer is None


def test_against_same_and_further_methods() -> None:
    grid = cells([0.1, 0.3], [0.5, 0.4])
    grid |= {("base0", "lora"): Cell(0.2), ("base1", "lora"): Cell(0.1)}
    ranked = rank({"b": grid}, twins(2), "zero_shot")
    assert [order.method for order in ranked.benchmarks[0].orders] == ["soft_prompt", "lora"]
    lora = ranked.benchmarks[0].orders[1]
    assert lora.distance.value == 0 and lora.gap is None and lora.gaps == {}  # the twins have no lora score
    grid |= {("post0", "soft_prompt"): Cell(0.1), ("post1", "soft_prompt"): Cell(0.2)}
    same = rank({"b": grid}, twins(2), "same").benchmarks[0].orders
    assert [order.method for order in same] == ["soft_prompt"] and same[0].distance.value == 0


def test_twins_without_a_score_are_left_out_and_named() -> None:
    grid = cells([0.1, 0.3, 0.2], [0.4, 0.5, 0.6])
    del grid["base1", "soft_prompt"]
    ranked = rank({"b": grid}, twins(3))
    assert ranked.benchmarks[0].orders[0].twins == ("M0", "M2")
    assert ranked.notes == ("b, soft_prompt: no score of both twins for M1.",)


@pytest.mark.parametrize("number", [0, 1])
def test_too_few_pairs_give_nothing_and_no_error(number: int) -> None:
    ranked = rank({"b": cells([0.1] * number, [0.2] * number)}, twins(number))
    assert ranked.benchmarks == () and ranked.overall is None and ranked.averages == ()
    assert rank({}, twins(number)).benchmarks == ()


def test_two_pairs_are_defined_whatever_they_score() -> None:
    for base, post in product(product((0.0, 0.5, 1.0), repeat=2), repeat=2):
        order = rank({"b": cells(list(base), list(post), 8, items=True)}, twins(2)).benchmarks[0].orders[0]
        assert 0 <= order.distance.value <= 1 and 0 < order.p <= 1
        assert order.tau is None or order.tau == pytest.approx(round(order.tau))
        assert nan not in (order.distance.low, order.distance.high)

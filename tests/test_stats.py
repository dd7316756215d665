"""Paired, equivalence and unpaired comparisons: published values, statsmodels and independent implementations agree."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binom, norm
from statsmodels.stats.contingency_tables import mcnemar as sm_mcnemar
from statsmodels.stats.proportion import confint_proportions_2indep
from statsmodels.stats.weightstats import ttost_paired

from spt import stats


def pair(only_a: int, only_b: int, n: int, both: int = 0) -> tuple[dict[str, bool], dict[str, bool]]:
    """Two methods with these discordant counts; `both` of the other items are right with each."""
    outcomes = [(1, 0)] * only_a + [(0, 1)] * only_b + [(1, 1)] * both
    outcomes += [(0, 0)] * (n - len(outcomes))
    return (
        {str(i): bool(a) for i, (a, _) in enumerate(outcomes)},
        {str(i): bool(b) for i, (_, b) in enumerate(outcomes)},
    )


TABLES = [(7, 1, 21), (16, 6, 161), (0, 1, 44), (0, 0, 64), (5, 5, 200), (0, 30, 64), (1, 0, 1), (3, 17, 20)]


# Tango


def test_tango_interval_as_published() -> None:
    """Fagerland, Lydersen, Laake 2014, Statistics in Medicine 33:2850, table V."""
    assert stats.tango_interval(7, 1, 21, 0.95) == pytest.approx((-0.517, -0.026), abs=5e-4)


def profile_score(only_a: int, only_b: int, n: int, difference: float) -> float:
    """The same statistic by numeric maximum likelihood, without the closed form of the constrained estimate."""

    def loss(share_a: float) -> float:
        parts = [(only_a, share_a), (only_b, share_a + difference), (n - only_a - only_b, 1 - 2 * share_a - difference)]
        return -sum(count * math.log(max(share, 1e-300)) for count, share in parts if count)

    bounds = (max(0.0, -difference), (1 - difference) / 2)
    share_a = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-12}).x
    variance = n * (2 * share_a + difference - difference**2)
    return (only_b - only_a - n * difference) / math.sqrt(variance)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("difference", [-0.6, -0.05, -0.01, 0.02, 0.05, 0.4])
def test_tango_score_is_the_profile_likelihood_one(table: tuple[int, int, int], difference: float) -> None:
    assert stats.tango_score(*table, difference) == pytest.approx(profile_score(*table, difference), abs=2e-3, rel=1e-3)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_tango_interval_ends_where_the_test_rejects(table: tuple[int, int, int], level: float) -> None:
    only_a, only_b, n = table
    low, high = stats.tango_interval(*table, level)
    assert -1 <= low <= (only_b - only_a) / n <= high <= 1
    z = norm.ppf((1 + level) / 2)
    for end, value in ((low, z), (high, -z)):
        if abs(end) < 1 - 1e-9:
            assert stats.tango_score(*table, end) == pytest.approx(value, abs=1e-6)
    assert stats.tango_interval(only_b, only_a, n, level) == pytest.approx((-high, -low), abs=1e-12)


@pytest.mark.parametrize("n", [1, 20, 51, 52, 64, 1000])
def test_tango_without_discordant_items_has_a_width(n: int) -> None:
    z = norm.ppf(0.95)
    bound = z**2 / (n + z**2)
    assert stats.tango_interval(0, 0, n, 0.9) == pytest.approx((-bound, bound))
    assert stats.equivalence(*pair(0, 0, n)).verdict == ("unchanged" if n >= 52 else "too few items to tell")


# Paired differences


@pytest.mark.parametrize("table", TABLES)
def test_mcnemar_is_that_of_statsmodels(table: tuple[int, int, int]) -> None:
    only_a, only_b, n = table
    expected = sm_mcnemar([[0, only_a], [only_b, n - only_a - only_b]], exact=True).pvalue if only_a + only_b else 1
    assert stats.mcnemar(only_a, only_b) == pytest.approx(expected)


def test_mcnemar_by_hand() -> None:
    assert stats.mcnemar(0, 5) == pytest.approx(2 / 2**5)
    assert stats.mcnemar(1, 7) == pytest.approx(2 * 9 / 2**8)  # Fagerland 2013, BMC Med Res Methodol 13:91: 0.0703
    assert stats.mcnemar(3, 3) == 1


def test_a_paired_difference() -> None:
    result = stats.compare(*pair(only_a=2, only_b=12, n=40, both=10))
    assert (result.rate_a, result.rate_b, result.difference, result.n) == (0.3, 0.55, 0.25, 40)
    assert (result.only_a, result.only_b) == (2, 12)
    assert result.p == pytest.approx(2 * (1 + 14 + 91) / 2**14)
    assert result.low < 0.25 < result.high
    assert stats.compare(*pair(2, 12, 40, 10)) == result


def test_the_bootstrap_is_that_of_resampled_items() -> None:
    only_a, only_b, n = 6, 20, 100
    item = np.array([-1] * only_a + [1] * only_b + [0] * (n - only_a - only_b))
    rng = np.random.default_rng(5)
    means = item[rng.integers(0, n, size=(20_000, n))].mean(axis=1)
    low, high = stats.bootstrap(only_a, only_b, n)
    assert (low, high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.0101)  # one item of 100


@pytest.mark.parametrize("table", TABLES)
def test_swapping_the_methods_flips_the_sign(table: tuple[int, int, int]) -> None:
    a, b = pair(*table)
    there, back = stats.compare(a, b), stats.compare(b, a)
    assert back.difference == -there.difference and back.p == there.p
    assert (back.low, back.high) == pytest.approx((-there.high, -there.low), abs=2 / table[2] if table[2] > 1 else 1e-9)
    one, two = stats.equivalence(a, b), stats.equivalence(b, a)
    assert (two.low, two.high) == pytest.approx((-one.high, -one.low))
    assert (two.verdict, two.needed) == (one.verdict, one.needed)
    first, second = stats.unpaired(a.values(), b.values()), stats.unpaired(b.values(), a.values())
    assert (second.low, second.high) == pytest.approx((-first.high, -first.low))


@pytest.mark.parametrize("function", [stats.compare, stats.equivalence])
def test_other_items_are_refused(function) -> None:
    with pytest.raises(ValueError, match="2 are in one of the two only"):
        function({"x": True}, {"y": True})
    with pytest.raises(ValueError, match="at least one"):
        function({}, {})


@pytest.mark.parametrize("n", [1, 2, 64])
@pytest.mark.parametrize(("right_a", "right_b"), [(False, False), (True, True), (False, True), (True, False)])
def test_degenerate_items(n: int, right_a: bool, right_b: bool) -> None:
    a, b = {str(i): right_a for i in range(n)}, {str(i): right_b for i in range(n)}
    difference, same = stats.compare(a, b), stats.equivalence(a, b)
    assert difference.difference == right_b - right_a
    assert -1 <= difference.low <= difference.difference <= difference.high <= 1
    assert difference.high - difference.low > 0.05, "few items are never certain"
    assert -1 <= same.low <= same.difference <= same.high <= 1 and 0 <= same.p <= 1
    if n < 64:
        assert same.verdict == "too few items to tell" and same.needed is not None and same.needed > n
    else:
        assert same.verdict == ("unchanged" if right_a == right_b else "changed") and same.needed is None


# Equivalence


def test_the_verdicts() -> None:
    assert stats.equivalence(*pair(20, 30, 512)).verdict == "unchanged"
    assert stats.equivalence(*pair(0, 30, 64)).verdict == "changed"
    small = stats.equivalence(*pair(6, 16, 64))
    assert small.verdict == "too few items to tell" and small.needed is not None and 90 < small.needed < 150
    significant = stats.equivalence(*pair(10, 40, 5000))  # 0.6 points, p < 0.001: inside the margin wins
    assert significant.p_changed < 0.001 and significant.verdict == "unchanged"
    with pytest.raises(ValueError, match="margin"):
        stats.equivalence(*pair(1, 1, 9), margin=0)


def test_equivalence_agrees_with_its_interval() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        n = int(rng.integers(1, 600))
        only_a, only_b, _rest = rng.multinomial(n, rng.dirichlet([1, 1, 12]))
        result = stats.equivalence(*pair(int(only_a), int(only_b), n))
        assert (result.p < 0.05) == (result.low > -0.05 and result.high < 0.05) == (result.verdict == "unchanged")


def test_equivalence_of_many_items_is_the_paired_t_tost() -> None:
    a, b = pair(500, 560, 10_000, both=4000)
    values = np.array(list(b.values()), float), np.array(list(a.values()), float)
    for margin in (0.0110, 0.0115, 0.012):
        expected = ttost_paired(*values, -margin, margin)[0]
        assert stats.equivalence(a, b, margin).p == pytest.approx(expected, rel=0.03, abs=1e-4)


def verdicts(share_a: float, share_b: float, n: int, runs: int = 2000) -> dict[str, float]:
    """Shares of verdicts over simulated data; every distinct table is judged once."""
    draws = np.random.default_rng(3).multinomial(n, [share_a, share_b, 1 - share_a - share_b], size=runs)
    tables, times = np.unique(draws[:, :2], axis=0, return_counts=True)
    shares: dict[str, float] = {}
    for (only_a, only_b), count in zip(tables.tolist(), times.tolist(), strict=True):
        low, high = stats.tango_interval(only_a, only_b, n, 0.9)
        inside = low > -0.05 and high < 0.05
        verdict = "unchanged" if inside else "changed" if stats.mcnemar(only_a, only_b) < 0.05 else "too few"
        shares[verdict] = shares.get(verdict, 0) + count / runs
    return shares


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(("discordant", "n"), [(0.06, 150), (0.15, 500), (0.3, 1000)])
def test_a_change_of_the_size_of_the_margin_is_seldom_called_none(discordant: float, n: int, sign: int) -> None:
    half = sign * 0.025
    assert verdicts(discordant / 2 - half, discordant / 2 + half, n).get("unchanged", 0) <= 0.06


@pytest.mark.parametrize(
    ("only_a", "only_b", "n", "decided"),
    [(4, 4, 64, "unchanged"), (5, 6, 100, "unchanged"), (6, 16, 64, "changed"), (1, 4, 30, "changed")],
)
def test_the_items_needed_give_80_percent_power(only_a: int, only_b: int, n: int, decided: str) -> None:
    needed = stats.items_needed(only_a, only_b, n)
    difference, discordant = (only_b - only_a) / n, (only_a + only_b + 1) / (n + 1)
    shares = verdicts((discordant - difference) / 2, (discordant + difference) / 2, needed)
    assert 0.74 < shares[decided] < 0.9


def test_items_needed_at_the_edges() -> None:
    assert 52 <= stats.items_needed(0, 0, 20) < 300  # no discordant item seen among twenty does not mean none
    for only_b in (4, 5, 6):  # below, on and above the margin of 5 of 100
        assert 100 < stats.items_needed(0, only_b, 100) < 400
    assert 100 < stats.items_needed(10, 15, 100) < 1200
    assert stats.items_needed(0, 1, 1) > 1


def test_exact_power_of_the_number_for_a_change() -> None:
    """Without simulation: chance of a significant exact test, summed over the discordant items."""
    share_a, share_b = 0.1, 0.25
    n = math.ceil(stats._needed_for_change(share_a, share_b))
    power = 0.0
    for k in range(n + 1):
        rejected = [j for j in range(k + 1) if stats.mcnemar(k - j, j) < 0.05] if k else []
        inside = binom.pmf(rejected, k, share_b / (share_a + share_b)).sum() if rejected else 0
        power += binom.pmf(k, n, share_a + share_b) * inside
    assert 0.77 < power < 0.86


# Unpaired differences


@pytest.mark.parametrize(
    ("right_b", "n_b", "right_a", "n_a", "low", "high"),
    [  # Newcombe 1998, Statistics in Medicine 17:873, table II, method 10
        (56, 70, 48, 80, 0.0524, 0.3339),
        (9, 10, 3, 10, 0.1705, 0.8090),
        (5, 56, 0, 29, -0.0381, 0.1926),
        (0, 10, 0, 20, -0.1611, 0.2775),
        (0, 10, 0, 10, -0.2775, 0.2775),
        (10, 10, 0, 20, 0.6791, 1.0000),
        (10, 10, 0, 10, 0.6075, 1.0000),
    ],
)
def test_newcombe_interval_as_published(
    right_b: int, n_b: int, right_a: int, n_a: int, low: float, high: float
) -> None:
    result = stats.unpaired([i < right_a for i in range(n_a)], [i < right_b for i in range(n_b)])
    assert (result.low, result.high) == pytest.approx((low, high), abs=6e-5)
    assert (result.difference, result.n_a, result.n_b) == (right_b / n_b - right_a / n_a, n_a, n_b)
    expected = confint_proportions_2indep(right_b, n_b, right_a, n_a, compare="diff", method="newcomb")
    assert (result.low, result.high) == pytest.approx(expected, abs=1e-9)


def test_an_unpaired_difference_needs_items() -> None:
    with pytest.raises(ValueError, match="at least one"):
        stats.unpaired([], [True])

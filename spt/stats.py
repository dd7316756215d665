"""Comparisons of two methods' 0/1 outcomes: paired, equivalent or not, unpaired. On scipy; imports no torch.

All rates, differences, bounds and margins are shares (0.05 is five points), and every difference is b − a. P values are
two-sided and not corrected for the number of comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil, inf, sqrt
from statistics import NormalDist
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from spt.metrics import Rate

MARGIN = 0.05  # changes inside ±5 points count as none
ALPHA = 0.05
POWER = 0.8
RESAMPLES = 10_000
Verdict = Literal["unchanged", "changed", "too few items to tell"]

_NORMAL = NormalDist()


class PairedDifference(BaseModel):
    """Two methods on the same items.

    Test: exact McNemar (binomial on the discordant items). Interval: percentile bootstrap over items, 95 %; Tango's
    where all items have the same outcome, since resampling would call that certain.
    """

    model_config = ConfigDict(frozen=True)
    rate_a: float
    rate_b: float
    difference: float
    low: float
    high: float
    only_a: int = Field(description="items right with a alone")
    only_b: int = Field(description="items right with b alone")
    p: float
    n: int


class Equivalence(BaseModel):
    """Is b the same as a, within the margin? Two one-sided score tests for paired proportions.

    Tango 1998, Statistics in Medicine 17:891, which also behaves where no item is discordant. `low` and `high` are the
    90 % score interval: inside ±margin exactly where both tests reject at 5 %.
    """

    model_config = ConfigDict(frozen=True)
    rate_a: float
    rate_b: float
    difference: float
    low: float
    high: float
    margin: float
    p: float = Field(description="the larger of the two one-sided p values; below 0.05: equivalent")
    p_changed: float = Field(description="exact McNemar")
    n: int
    verdict: Verdict
    needed: int | None = Field(None, description="too few items: how many would be enough (`items_needed`)")


class UnpairedDifference(BaseModel):
    """Two rates on different items. 95 % interval: Newcombe 1998, Statistics in Medicine 17:873, method 10."""

    model_config = ConfigDict(frozen=True)
    rate_a: float
    rate_b: float
    difference: float
    low: float
    high: float
    n_a: int
    n_b: int


def _discordant(a: Mapping[str, bool], b: Mapping[str, bool]) -> tuple[int, int]:
    """Items that only a has, and that only b has. Raises ValueError where there are none, or not the same ones."""
    if not a:
        raise ValueError("a comparison needs at least one item")
    if a.keys() != b.keys():
        raise ValueError(f"not the same items: {len(a.keys() ^ b.keys())} are in one of the two only")
    return sum(a[i] and not b[i] for i in a), sum(b[i] and not a[i] for i in a)


def mcnemar(only_a: int, only_b: int) -> float:
    """Exact two-sided p value; 1 where no item is discordant."""
    from scipy.stats import binomtest  # here, since importing it takes longer than the command line needs to answer

    return float(binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0


def bootstrap(only_a: int, only_b: int, n: int, seed: int = 0) -> tuple[float, float]:
    """95 % percentile interval of the difference over resampled items; the same for the same arguments.

    Where all items have the same outcome it is Tango's interval. An item adds −1, 0 or 1 to the difference, so
    drawing n items with replacement is one draw of three counts.
    """
    if n in (only_a, only_b, n - only_a - only_b):  # resampling knows no other outcome and would call it certain
        return tango_interval(only_a, only_b, n)
    shares = np.array([only_b, only_a, n - only_a - only_b]) / n
    counts = np.random.default_rng(seed).multinomial(n, shares, size=RESAMPLES)
    low, high = np.quantile((counts[:, 0] - counts[:, 1]) / n, [0.025, 0.975])
    return float(low), float(high)


def compare(a: Mapping[str, bool], b: Mapping[str, bool], seed: int = 0) -> PairedDifference:
    """Compare two methods, given as item id -> outcome. Raises ValueError if the items differ."""
    only_a, only_b = _discordant(a, b)
    n = len(a)
    low, high = bootstrap(only_a, only_b, n, seed)
    return PairedDifference(
        rate_a=sum(a.values()) / n,
        rate_b=sum(b.values()) / n,
        difference=(only_b - only_a) / n,
        low=low,
        high=high,
        only_a=only_a,
        only_b=only_b,
        p=mcnemar(only_a, only_b),
        n=n,
    )


def _null_variance(share_a: float, share_b: float, difference: float) -> float:
    """Variance of one item's b − a, by maximum likelihood where the true difference is the one given (Tango 1998).

    `share_a` and `share_b` are the observed shares of items that only a, only b has.
    """
    linear = (2 - share_b + share_a) * difference - share_a - share_b
    root = sqrt(max(0.0, linear**2 + 8 * share_a * difference * (1 - difference)))
    only_a = (root - linear) / 4
    return max(0.0, 2 * only_a + difference * (1 - difference))


def tango_score(only_a: int, only_b: int, n: int, difference: float) -> float:
    """Tango's statistic for "the true difference b − a is `difference`": standard normal if so, and falling in it."""
    distance = only_b - only_a - n * difference
    variance = n * _null_variance(only_a / n, only_b / n, difference)
    if variance <= 0:
        return 0.0 if not distance else (inf if distance > 0 else -inf)
    return distance / sqrt(variance)


def tango_interval(only_a: int, only_b: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """All differences that the score test does not reject, found by halving."""
    z = _NORMAL.inv_cdf((1 + level) / 2)
    estimate = (only_b - only_a) / n

    def crossing(low: float, high: float, value: float) -> float:
        for _ in range(60):  # to 1e-18 of the range
            middle = (low + high) / 2
            low, high = (middle, high) if tango_score(only_a, only_b, n, middle) > value else (low, middle)
        return (low + high) / 2

    return crossing(-1.0, estimate, z), crossing(estimate, 1.0, -z)


def equivalence_power(share_a: float, share_b: float, n: int, margin: float = MARGIN) -> float:
    """Chance, in normal approximation, that n items show equivalence if these are the true discordant shares."""
    difference = share_b - share_a
    spread = sqrt(share_a + share_b - difference**2)
    z = _NORMAL.inv_cdf(1 - ALPHA)
    rejects = -1.0
    for bound, room in ((margin, margin - difference), (-margin, margin + difference)):
        over = sqrt(n) * room - z * sqrt(_null_variance(share_a, share_b, bound))
        rejects += _NORMAL.cdf(over / spread) if spread else float(over > 0)
    return max(0.0, rejects)


def _needed_for_equivalence(share_a: float, share_b: float, margin: float) -> float:
    if abs(share_b - share_a) >= margin:
        return inf
    high = 1
    while equivalence_power(share_a, share_b, high, margin) < POWER:
        high *= 2
        if high > 10**12:
            return inf
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if equivalence_power(share_a, share_b, middle, margin) >= POWER else (middle, high)
    return high


def _needed_for_change(share_a: float, share_b: float) -> float:
    """Connor 1987, Biometrics 43:207, with the continuity correction that brings it near the exact test."""
    difference, discordant = abs(share_b - share_a), share_a + share_b
    if not difference:
        return inf
    z_alpha, z_power = _NORMAL.inv_cdf(1 - ALPHA / 2), _NORMAL.inv_cdf(POWER)
    plain = (z_alpha * sqrt(discordant) + z_power * sqrt(discordant - difference**2)) ** 2 / difference**2
    return plain / 4 * (1 + sqrt(1 + 2 / (plain * difference))) ** 2


def items_needed(only_a: int, only_b: int, n: int, margin: float = MARGIN) -> int:
    """Items that give a verdict with 80 % power if the truth is what was measured.

    Either verdict tells, so it is the smaller of two numbers: of items that show equivalence (none would do where the
    measured difference is outside the margin) and of items that show a change (none would do where it is zero). One of
    the two always exists, on the edge of the margin as well. Few items often show no discordant one, which does not
    mean that there are none: the share of discordant items is taken as (k + 1) / (n + 1), half of the added item on
    each side, while the difference stays as measured.
    """
    difference, discordant = (only_b - only_a) / n, (only_a + only_b + 1) / (n + 1)
    share_a, share_b = (discordant - difference) / 2, (discordant + difference) / 2
    needed = min(_needed_for_equivalence(share_a, share_b, margin), _needed_for_change(share_a, share_b))
    return max(n + 1, ceil(needed))


def equivalence(a: Mapping[str, bool], b: Mapping[str, bool], margin: float = MARGIN) -> Equivalence:
    """Whether b is the same as a within the margin. Raises ValueError if the items differ.

    `unchanged`: the 90 % interval lies inside ±margin, even where a small difference is significant. `changed`:
    otherwise, if the exact McNemar p is below 5 %. Else there are too few items to tell.
    """
    if not 0 < margin < 1:
        raise ValueError("the margin is a share between 0 and 1")
    only_a, only_b = _discordant(a, b)
    n = len(a)
    low, high = tango_interval(only_a, only_b, n, 1 - 2 * ALPHA)
    p_changed = mcnemar(only_a, only_b)
    verdict: Verdict = "too few items to tell"
    if -margin < low and high < margin:
        verdict = "unchanged"
    elif p_changed < ALPHA:
        verdict = "changed"
    below = _NORMAL.cdf(tango_score(only_a, only_b, n, margin))
    above = _NORMAL.cdf(-tango_score(only_a, only_b, n, -margin))
    return Equivalence(
        rate_a=sum(a.values()) / n,
        rate_b=sum(b.values()) / n,
        difference=(only_b - only_a) / n,
        low=low,
        high=high,
        margin=margin,
        p=max(below, above),
        p_changed=p_changed,
        n=n,
        verdict=verdict,
        needed=items_needed(only_a, only_b, n, margin) if verdict == "too few items to tell" else None,
    )


def unpaired(a: Iterable[bool], b: Iterable[bool]) -> UnpairedDifference:
    """Compare two rates on different items. Raises ValueError where one has none."""
    first, second = Rate.of(a), Rate.of(b)
    difference = second.rate - first.rate
    return UnpairedDifference(
        rate_a=first.rate,
        rate_b=second.rate,
        difference=difference,
        low=difference - sqrt((second.rate - second.low) ** 2 + (first.high - first.rate) ** 2),
        high=difference + sqrt((second.high - second.rate) ** 2 + (first.rate - first.low) ** 2),
        n_a=first.n,
        n_b=second.n,
    )

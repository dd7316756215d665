"""How far two orders of the same models are apart, and how far chance would put them. On numpy and scipy; no torch.

The swap distance is the number of pairs that the two orders put the other way round: the swaps of neighbours that turn
one into the other (bubble sort, Kendall). A pair that ties in either order counts one half, which is the mean over all
ways to break the ties; no tie is ever broken by name. Scores may have leading axes: one order each, all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations
from math import sqrt

import numpy as np

Numbers = Sequence[float] | np.ndarray

DIGITS = 9  # scores that agree so far are the same: means over seeds have rounding errors
EXACT = 7  # models; of so many all 5,040 orders are tried where there are ties
SHUFFLES = 10_000  # of more models
NORMAL_95 = 1.959964


def possible(models: int) -> int:
    """Pairs of models, which is the largest swap distance."""
    return models * (models - 1) // 2


def signs(scores: Numbers) -> np.ndarray:
    """1, 0 or -1 for each pair of models along the last axis: the first is better, they tie, the second is better."""
    values = np.asarray(scores, dtype=float)
    first, second = np.triu_indices(values.shape[-1], 1)
    return np.sign(np.round(values[..., first] - values[..., second], DIGITS))


def swaps(scores: Numbers, reference: Numbers) -> np.ndarray:
    """The swap distance, for each leading index of either."""
    return ((1 - signs(scores) * signs(reference)) / 2).sum(axis=-1)


def tau_b(scores: Numbers, reference: Numbers) -> float | None:
    """Kendall's tau-b. None where one of the orders is nothing but ties (or has fewer than two models): 0 / 0."""
    from scipy.stats import kendalltau  # here: importing it takes longer than the command line needs to answer

    if len(scores) < 2:
        return None
    value = float(kendalltau(np.round(scores, DIGITS), np.round(reference, DIGITS), variant="b").statistic)
    return None if np.isnan(value) else value


@lru_cache(maxsize=64)
def inversions(models: int) -> tuple[float, ...]:
    """Probability of each swap distance 0, 1, … between two orders without ties, one of them random. Exact."""
    shares = np.ones(1)
    for size in range(2, models + 1):
        shares = np.convolve(shares, np.full(size, 1 / size))
    return tuple(float(share) for share in shares)


def chance_mean(models: int) -> float:
    """The swap distance to expect of a random order, with ties or without: half of the pairs."""
    return possible(models) / 2


def chance_p(scores: Numbers, reference: Numbers, seed: int = 0) -> float:
    """Probability that a random order is as near to the reference as these scores, or nearer.

    Without ties it is exact. With ties the scores, which keep their ties, are dealt to the models at random: in all
    ways for up to seven models, else in 10,000.
    """
    models = len(scores)
    if models < 2:
        return 1.0
    observed = float(swaps(scores, reference))
    if signs(scores).all() and signs(reference).all():
        return min(1.0, sum(inversions(models)[: int(observed) + 1]))
    values = np.asarray(scores, dtype=float)
    if models <= EXACT:
        return float((swaps(values[_orders(models)], reference) <= observed).mean())
    shuffled = np.random.default_rng(seed).permuted(np.tile(values, (SHUFFLES, 1)), axis=1)
    near = sum(int((swaps(part, reference) <= observed).sum()) for part in np.array_split(shuffled, 20))
    return (near + 1) / (SHUFFLES + 1)  # the order that was observed is one of them


@lru_cache(maxsize=EXACT)
def _orders(models: int) -> np.ndarray:
    return np.array(list(permutations(range(models))))


def places(scores: Numbers) -> np.ndarray:
    """The rank of each model, the highest score first; those that tie share the mean of their ranks."""
    values = np.round(np.asarray(scores, dtype=float), DIGITS)
    better = (values > values[:, None]).sum(axis=1)
    same = (values == values[:, None]).sum(axis=1)
    return better + (same + 1) / 2


def tied(scores: Numbers) -> int:
    """Pairs of models with the same score."""
    return int((signs(scores) == 0).sum())


def close(rates: Sequence[Sequence[float]], items: Sequence[int]) -> int:
    """Pairs of models whose scores are nearer than the items can tell apart, ties among them.

    `rates` has a row for each model and a column for each benchmark, of so many items; a score is the mean of a row.
    Two scores are told apart where the 95 % interval of their difference leaves out zero. Agresti and Caffo 2000: one
    more success and one more failure each, so that rates of 0 and 1 have a width too. The items count as independent
    samples, which is on the careful side for models that share them.
    """
    n = np.asarray(items, dtype=float) + 2
    shares = (np.asarray(rates, dtype=float) * (n - 2) + 1) / n
    variances = (shares * (1 - shares) / n).sum(axis=1) / len(items) ** 2
    means = shares.mean(axis=1)
    first, second = np.triu_indices(len(means), 1)
    width = NORMAL_95 * np.sqrt(variances[first] + variances[second])
    return int((np.abs(means[first] - means[second]) <= width).sum())


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % interval of the mean of a few values (Student's t); None for fewer than two."""
    from scipy.stats import t

    if len(values) < 2:
        return None
    half = float(t.ppf(0.975, len(values) - 1)) * float(np.std(values, ddof=1)) / sqrt(len(values))
    mean = float(np.mean(values))
    return mean - half, mean + half


def resampled_rates(outcomes: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Rates of each row of `outcomes` (models × items) over items drawn with replacement: (resamples, models).

    All rows are drawn together: models that share items stand or fall by the same ones.
    """
    rng = np.random.default_rng(seed)
    items = outcomes.shape[1]
    at_once = max(1, 4_000_000 // items)  # draws in memory
    parts = []
    for start in range(0, resamples, at_once):
        rows = min(at_once, resamples - start)
        drawn = rng.integers(0, items, size=(rows, items)) + np.arange(rows)[:, None] * items
        weights = np.bincount(drawn.ravel(), minlength=rows * items).reshape(rows, items)
        parts.append(weights @ outcomes.T / items)
    return np.concatenate(parts)


def percentiles(values: np.ndarray) -> tuple[float, float]:
    """The middle 95 % of resampled values."""
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)

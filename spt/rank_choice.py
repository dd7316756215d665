"""Which of the scores at hand are ranked, and what is left out of them and why. Imports no torch.

Scores are compared where their runs differ in model and seed alone. Of runs with other settings on the same benchmark
the largest group counts. Seeds are averaged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from spt import rank_pairs
from spt.ranking import Cell, Key, Scores, Twins
from spt.spec import Method, UserError
from spt.view import count

Metric = Literal["exact_match", "knowledge", "format"]
METRICS: tuple[Metric, ...] = get_args(Metric)
MOST_ANSWERS = 1_000_000  # to resample; reading them takes seconds

Settings = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Entry:
    """One model's scores with one method and seed: of a run, or of a line of a CSV."""

    model: str
    benchmark: str
    method: Method
    seed: int
    rates: Mapping[Metric, float]
    n: int | None
    settings: Settings | None = None  # None = of a CSV, which does not tell
    variant: Settings = ()  # how this model is run
    arm: Method = ""  # what the run calls it
    run: str = ""
    folder: Path | None = None  # where the answers are
    changed: float = 0.0
    judged: bool = False  # knowledge is a judge's
    twins: tuple[str, str] | None = None  # CSV: pair, kind
    closed: bool = False


@dataclass(frozen=True)
class Found:
    """What the sources hold."""

    entries: tuple[Entry, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chosen:
    """What is ranked: scores, pairs, and what was left out of them."""

    scores: Scores
    twins: tuple[Twins, ...]
    notes: tuple[str, ...]
    runs: tuple[Entry, ...] = field(default=(), repr=False)  # one entry of each run behind them


@dataclass(frozen=True)
class Outcomes:
    """Which items a model got right."""

    ids: tuple[str, ...]  # in order
    right: Mapping[Metric, np.ndarray]  # bool, by item


Answers = Callable[[Entry], Outcomes | None]  # None where they are not there, or are not those of the result


def choose(found: Found, answers: Answers, metric: Metric = "exact_match", pairs: Path | None = None) -> Chosen:
    """What can be ranked of all that was found. Raises UserError for pairs that cannot be."""
    entries, notes = _once(found.entries)
    twins, unpaired = _twins(entries, pairs)
    models = {model for pair in twins for model in pair[1:]}
    kept: list[Entry] = []
    by_benchmark: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.model in models:
            by_benchmark[entry.benchmark].append(entry)
    for benchmark, there in sorted(by_benchmark.items()):
        same, left = _same_settings(benchmark, there, twins, metric)
        kept += same
        notes += left
    alone = sorted({entry.model for entry in entries} - models)
    if alone:
        notes.append(f"No twin, so not ranked: {', '.join(alone)}.")
    scores, more = _scores(kept, answers, metric)
    runs = {entry.folder: entry for entry in kept if entry.folder is not None}
    return Chosen(scores, tuple(twins), (*found.notes, *unpaired, *notes, *more), tuple(runs.values()))


def _once(entries: Sequence[Entry]) -> tuple[list[Entry], list[str]]:
    """Each run once, however often it was named; of two runs that only differ where it does not matter, the later."""
    latest: dict[tuple[object, ...], Entry] = {}
    twice: dict[tuple[str, ...], None] = {}
    for entry in sorted(entries, key=lambda e: (e.changed, e.arm == e.method)):
        key = (entry.model, entry.benchmark, entry.method, entry.seed, entry.settings, entry.variant)
        before = latest.get(key)
        if before is not None and before.run != entry.run:
            twice[(entry.model, entry.benchmark, before.run, entry.run)] = None
        latest[key] = entry
    notes = [
        f"{model} stands twice on {benchmark} with the same settings and seed ({old}, {new}): the later run counts."
        for model, benchmark, old, new in twice
        if old and new
    ]
    return list(latest.values()), notes


def _twins(entries: Sequence[Entry], path: Path | None) -> tuple[list[Twins], list[str]]:
    """Pairs of the CSV's columns, then those of the file and the names for all other models."""
    columns: dict[str, dict[str, set[str]]] = {}
    for entry in entries:
        if entry.twins is not None:
            pair, kind = entry.twins
            columns.setdefault(pair, {}).setdefault(kind, set()).add(entry.model)
    twins, notes = [], []
    for pair, kinds in columns.items():
        for kind in ("base", "post-trained"):
            if len(kinds.get(kind, ())) > 1:
                raise UserError(f"The pair {pair} has more than one {kind} model: {', '.join(sorted(kinds[kind]))}.")
        if len(kinds) == 2:
            twins.append(Twins(pair, min(kinds["base"]), min(kinds["post-trained"])))
        else:
            notes.append(f"The pair {pair} has no {'base' if 'base' not in kinds else 'post-trained'} model.")
    rank_pairs.check_once("The column pair", [twin[1:] for twin in twins])
    told = {entry.model for entry in entries if entry.twins is not None}
    others, more = rank_pairs.of_models((e.model for e in entries if e.model not in told), path)
    return [*twins, *others], [*notes, *more]


def _same_settings(
    benchmark: str, entries: Sequence[Entry], twins: Sequence[Twins], metric: Metric
) -> tuple[list[Entry], list[str]]:
    """The largest group of equal settings: most complete pairs, then most scores. And what that leaves out."""

    def group(entry: Entry) -> Settings:
        judged = (("judged", str(entry.judged)),) if metric == "knowledge" and not entry.closed else ()
        return (*(entry.settings or ()), *judged)

    groups: dict[Settings, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.settings is not None:
            groups[group(entry)].append(entry)
    if not groups:
        return list(entries), []

    def size(settings: Settings) -> tuple[int, int, int]:
        models = {entry.model for entry in groups[settings]}
        pairs = sum(twin.base in models and twin.post in models for twin in twins)
        return pairs, len(groups[settings]), max(entry.n or 0 for entry in groups[settings])

    chosen = max(groups, key=size)
    notes = []
    for settings, others in groups.items():
        if settings != chosen:
            runs = count(len({entry.run for entry in others}), "run")
            notes.append(f"{benchmark}: {runs} left out for other settings: {_differing(settings, chosen)}.")
    same, more = _same_variant(benchmark, groups[chosen])
    notes += more
    there = {(entry.model, entry.method) for entry in same}
    lines = [entry for entry in entries if entry.settings is None]
    known = [entry for entry in lines if (entry.model, entry.method) not in there]
    double = len(lines) - len(known)
    if lines:
        notes.append(
            f"{benchmark}: {count(len(known), 'score')} from a CSV, whose settings are not known, beside those of runs"
            f"{f'; {double} more that runs have as well are left out' if double else ''}."
        )
    return [*same, *known], notes


def _differing(settings: Settings, chosen: Settings) -> str:
    return ", ".join(f"{name} {a} (not {b})" for (name, a), (_, b) in zip(settings, chosen, strict=True) if a != b)


def _same_variant(benchmark: str, entries: Sequence[Entry]) -> tuple[list[Entry], list[str]]:
    """Each model as it was run most often, its precision and chat template. Said where models differ in them."""
    runs = Counter((entry.model, entry.variant) for entry in entries)
    chosen = {model: variant for (model, variant), _ in reversed(runs.most_common())}
    notes = []
    for model, variant in runs:
        if variant != chosen[model]:
            notes.append(f"{benchmark}: {model} with {_differing(variant, chosen[model])} is left out.")
    for values in zip(*chosen.values(), strict=True):
        (usual, _), *others = Counter(values).most_common()
        models = [f"{model} with {value[1]}" for model, value in zip(chosen, values, strict=True) if value != usual]
        if others:
            notes.append(f"{benchmark}: not all models have {' '.join(usual)}: {', '.join(models)}.")
    return [entry for entry in entries if entry.variant == chosen[entry.model]], notes


def _scores(entries: Sequence[Entry], answers: Answers, metric: Metric) -> tuple[Scores, list[str]]:
    """Means over seeds, with the answers behind them where they can be resampled."""
    cells: dict[str, dict[Key, list[Entry]]] = defaultdict(lambda: defaultdict(list))
    for entry in entries:
        cells[entry.benchmark][entry.model, entry.method].append(entry)
    number = sum(entry.n or 0 for entry in entries if entry.folder is not None)
    notes = []
    if number > MOST_ANSWERS:
        notes.append(
            f"No intervals: there are {number:,} answers to resample, and {MOST_ANSWERS:,} are read at most; "
            "name fewer runs for them."
        )
    scores: dict[str, dict[Key, Cell]] = {}
    for benchmark, by_key in cells.items():
        outcomes: dict[Key, np.ndarray] = {}
        if number <= MOST_ANSWERS:
            outcomes, note = _outcome_rows(benchmark, by_key, answers, metric)
            notes += note
        scores[benchmark] = {key: _cell(seeds, metric, outcomes.get(key)) for key, seeds in by_key.items()}
    return scores, notes


def _cell(seeds: Sequence[Entry], metric: Metric, outcomes: np.ndarray | None) -> Cell:
    rates = [entry.rates[metric] for entry in seeds]
    items = [entry.n for entry in seeds if entry.n is not None]
    return Cell(
        value=float(np.mean(rates)), n=min(items) if len(items) == len(seeds) else None, seeds=len(seeds),
        low=min(rates), high=max(rates), outcomes=outcomes,
    )  # fmt: skip


def _outcome_rows(
    benchmark: str, cells: Mapping[Key, Sequence[Entry]], answers: Answers, metric: Metric
) -> tuple[dict[Key, np.ndarray], list[str]]:
    """For each model and method the share of seeds that got each item right; all rows over the same items."""
    read = {key: [answers(entry) for entry in seeds] for key, seeds in cells.items()}
    whole = {key: [each for each in seeds if each is not None] for key, seeds in read.items() if None not in seeds}
    sets = Counter(each.ids for seeds in whole.values() for each in seeds)
    if not sets:
        return {}, []
    ids, times = sets.most_common(1)[0]
    notes = []
    if times < sum(sets.values()):
        notes.append(f"{benchmark}: not all runs answered the same items; those that did not have no interval.")
    return {
        key: np.mean([each.right[metric] for each in seeds], axis=0)
        for key, seeds in whole.items()
        if all(each.ids == ids for each in seeds)
    }, notes

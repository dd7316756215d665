"""What a run's stored answers say: counts, comparisons and equivalence as numbers, findings as words. Imports no torch.

`analyse` is pure: the same predictions give the same analysis, so a stored run can be analysed again at any time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from spt.findings import Finding, tell
from spt.metrics import Prediction, Rate
from spt.spec import LORA, TUNED_ITEMS, Arm, Control, Method
from spt.stats import Equivalence, PairedDifference, UnpairedDifference, compare, equivalence, unpaired

Metric = Literal["format", "knowledge", "exact_match"]
METRICS: tuple[Metric, ...] = ("format", "knowledge", "exact_match")
REFERENCE = "reference"
OTHER = "other"
_LETTERS = "ABCDEFGH"


class Cells(BaseModel):
    """One method's items by knows × in format, as counts. `knows_out` is the format tax.

    Closed questions: knowledge is ranked apart from the answer, so `knows_in` may hold wrong answers in the form.
    """

    model_config = ConfigDict(frozen=True)
    knows_in: int
    knows_out: int
    wrong_in: int
    wrong_out: int
    tax_items: tuple[str, ...] = Field((), description="ids of the items in `knows_out`")

    @classmethod
    def of(cls, rows: Sequence[Prediction]) -> Cells:
        counts = Counter((row.knows, row.in_format) for row in rows)
        return cls(
            knows_in=counts[True, True],
            knows_out=counts[True, False],
            wrong_in=counts[False, True],
            wrong_out=counts[False, False],
            tax_items=tuple(row.id for row in rows if row.knows and not row.in_format),
        )

    @property
    def n(self) -> int:
        return self.knows_in + self.knows_out + self.wrong_in + self.wrong_out


class Comparison(BaseModel):
    """One metric of methods a and b on the same items; differences are b − a."""

    model_config = ConfigDict(frozen=True)
    a: Method
    b: Method
    metric: Metric
    result: PairedDifference


class KnowledgeEquivalence(BaseModel):
    """Whether b knows as much as a, on the same items."""

    model_config = ConfigDict(frozen=True)
    a: Method
    b: Method
    result: Equivalence


class Spread(BaseModel):
    """One metric over the soft prompts of several seeds: shares, and the sample standard deviation."""

    model_config = ConfigDict(frozen=True)
    mean: float
    low: float
    high: float
    sd: float
    n_seeds: int


class Chance(BaseModel):
    """Closed questions: rates of the soft prompt beside what picking an option at random would give."""

    model_config = ConfigDict(frozen=True)
    knowledge: Rate
    exact_match: Rate
    chance: float = Field(description="mean of 1 / number of options")


class Analysis(BaseModel):
    """Everything measured from the answers of a run. Parts for which there are no predictions are empty."""

    model_config = ConfigDict(frozen=True)
    closed: bool
    controls: tuple[Control, ...] = Field(description="controls that have predictions")
    cells: dict[Method, Cells]
    comparisons: tuple[Comparison, ...]
    equivalence: tuple[KnowledgeEquivalence, ...]
    letters: dict[str, dict[str, int]] = Field(description="closed: method or `reference` -> first letter -> answers")
    chance: Chance | None
    seeds: dict[Metric, Spread]
    tuned_vs_unseen: dict[Metric, UnpairedDifference] = Field(description="a: unseen test items, b: tuned items")
    findings: tuple[Finding, ...] = ()

    def comparison(self, a: Method, b: Method, metric: Metric) -> PairedDifference | None:
        for each in self.comparisons:
            if (each.a, each.b, each.metric) == (a, b, metric):
                return each.result
        return None

    def equivalent(self, a: Method, b: Method) -> Equivalence | None:
        for each in self.equivalence:
            if (each.a, each.b) == (a, b):
                return each.result
        return None


def first_letter(response: str) -> str:
    """`C` for `C. Paris`; `other` where an answer does not begin with a letter from A to H standing alone."""
    text = response.strip().lstrip("([*\"' ")
    if text[:1] in _LETTERS and text[:1] and not text[1:2].isalnum():
        return text[0]
    return OTHER


def _outcomes(rows: Sequence[Prediction]) -> dict[Metric, dict[str, bool]]:
    """Metric -> item -> outcome. Raises ValueError where an item stands twice, since pairs would be lost silently."""
    outcomes: dict[Metric, dict[str, bool]] = {
        "format": {row.id: row.in_format for row in rows},
        "knowledge": {row.id: row.knows for row in rows},
        "exact_match": {row.id: row.exact_match for row in rows},
    }
    if len(outcomes["format"]) != len(rows):
        raise ValueError(f"{len(rows) - len(outcomes['format'])} predictions have the id of another one")
    return outcomes


def histograms(predictions: Mapping[Method, Sequence[Prediction]]) -> dict[str, dict[str, int]]:
    """Histograms with the same letters each, as many as the longest list of options has, and `other`."""
    methods = {method: rows for method, rows in predictions.items() if method != TUNED_ITEMS}
    if not methods:
        return {}
    counts = {REFERENCE: Counter(first_letter(row.target) for row in next(iter(methods.values())))}
    counts |= {method: Counter(first_letter(row.response) for row in rows) for method, rows in methods.items()}
    options = max(len(row.options) for rows in methods.values() for row in rows)
    used = {letter for counter in counts.values() for letter in counter}
    names = [letter for at, letter in enumerate(_LETTERS) if at < max(options, 2) or letter in used]
    return {key: {name: counter[name] for name in (*names, OTHER)} for key, counter in counts.items()}


def _chance(rows: Sequence[Prediction]) -> Chance | None:
    if not all(row.options for row in rows):
        return None
    return Chance(
        knowledge=Rate.of(row.knows for row in rows),
        exact_match=Rate.of(row.exact_match for row in rows),
        chance=fmean(1 / len(row.options) for row in rows),
    )


def _spreads(seeds: Sequence[Mapping[Metric, Mapping[str, bool]]]) -> dict[Metric, Spread]:
    spreads: dict[Metric, Spread] = {}
    for metric in METRICS:
        rates = [fmean(seed[metric].values()) for seed in seeds]
        spreads[metric] = Spread(
            mean=fmean(rates), low=min(rates), high=max(rates), sd=stdev(rates), n_seeds=len(rates)
        )
    return spreads


def analyse(predictions: Mapping[Method, Sequence[Prediction]], closed: bool, arms: Sequence[Arm]) -> Analysis:
    """Analyse the answers of a run. Methods that are missing, or empty, are left out of every part.

    `arms` (`RunSpec.arms`) says which predictions are further seeds and which are controls. Raises ValueError where
    two methods that are compared answered different items, or an item stands twice.
    """
    present = {method: rows for method, rows in predictions.items() if rows}
    outcomes = {method: _outcomes(rows) for method, rows in present.items()}
    controls = [arm.control for arm in arms if arm.control and arm.name in present]
    seeds = [outcomes[arm.name] for arm in arms if not arm.control and arm.name in present]

    # The controls stand against the baselines too: one that made the model worse would flatter the real prompt.
    wanted: list[tuple[Method, Method]] = [(a, "soft_prompt") for a in ("zero_shot", "few_shot", *controls)]
    wanted += [(a, control) for control in controls for a in ("zero_shot", "few_shot")]
    wanted.append((LORA, "soft_prompt"))
    pairs = [(a, b) for a, b in wanted if a in present and b in present]

    numbers = Analysis(
        closed=closed,
        controls=tuple(controls),
        cells={method: Cells.of(rows) for method, rows in present.items()},
        comparisons=tuple(
            Comparison(a=a, b=b, metric=metric, result=compare(outcomes[a][metric], outcomes[b][metric]))
            for a, b in pairs
            for metric in METRICS
        ),
        equivalence=tuple(
            KnowledgeEquivalence(a=a, b=b, result=equivalence(outcomes[a]["knowledge"], outcomes[b]["knowledge"]))
            for a, b in pairs
        ),
        letters=histograms(present) if closed else {},
        chance=_chance(present["soft_prompt"]) if closed and "soft_prompt" in present else None,
        seeds=_spreads(seeds) if len(seeds) > 1 else {},
        tuned_vs_unseen={
            metric: unpaired(outcomes["soft_prompt"][metric].values(), outcomes[TUNED_ITEMS][metric].values())
            for metric in METRICS
            if "soft_prompt" in present and TUNED_ITEMS in present
        },
    )
    return numbers.model_copy(update={"findings": tuple(tell(numbers))})

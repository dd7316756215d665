"""Knowledge, format and exact match, kept apart. Definitions: README, "What the numbers mean". Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

StoppedBy = Literal["eos", "rule", "loop", "length"]


class Rate(BaseModel):
    """A share of n items with its 95 % Wilson score interval."""

    model_config = ConfigDict(frozen=True)
    rate: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, flags: Iterable[bool]) -> Rate:
        """Wilson 1927 interval, through scipy. Raises ValueError for no items: a rate of nothing is a bug upstream."""
        from scipy.stats import binomtest  # here, since importing it takes longer than the command line needs to answer

        values = [bool(flag) for flag in flags]
        if not values:
            raise ValueError("a rate needs at least one item")
        interval = binomtest(sum(values), len(values)).proportion_ci(confidence_level=0.95, method="wilson")
        return cls(rate=sum(values) / len(values), low=interval.low, high=interval.high, n=len(values))


class Prediction(BaseModel):
    """One test item answered by one method."""

    model_config = ConfigDict(frozen=True)
    id: str
    question: str
    options: tuple[str, ...] = ()
    topic: str = ""
    target: str = Field(description="the text the benchmark asks for")
    answer: str
    response: str = Field(description="what was generated, stopped and trimmed by the rule of the format")
    in_format: bool
    knows: bool
    exact_match: bool
    stopped_by: StoppedBy
    option_logprobs: tuple[float, ...] = Field((), description="closed: log-likelihood of each option, in nats")


class MethodScores(BaseModel):
    """The three rates of one method, over the same items."""

    model_config = ConfigDict(frozen=True)
    format: Rate
    knowledge: Rate
    exact_match: Rate
    knowledge_by: Literal["likelihood", "rule", "judge"]
    stopped_by: dict[StoppedBy, int]

    @property
    def format_tax(self) -> float:
        """Knowledge accuracy minus exact match: what the score loses to form."""
        return self.knowledge.rate - self.exact_match.rate

    @classmethod
    def of(cls, predictions: Sequence[Prediction], closed: bool) -> MethodScores:
        stopped: dict[StoppedBy, int] = {}
        for prediction in predictions:
            stopped[prediction.stopped_by] = stopped.get(prediction.stopped_by, 0) + 1
        return cls(
            format=Rate.of(p.in_format for p in predictions),
            knowledge=Rate.of(p.knows for p in predictions),
            exact_match=Rate.of(p.exact_match for p in predictions),
            knowledge_by="likelihood" if closed else "rule",
            stopped_by=stopped,
        )

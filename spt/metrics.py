"""Knowledge, format and exact match, kept apart. Definitions: README, "What the numbers mean". Imports no torch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

StoppedBy = Literal["eos", "rule", "loop", "length"]
KnowledgeBy = Literal["likelihood", "rule", "judge"]


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
    aliases: tuple[str, ...] = Field((), description="further accepted answers")
    response: str = Field(description="what was generated, stopped and trimmed by the rule of the format")
    in_format: bool
    knows: bool
    exact_match: bool
    stopped_by: StoppedBy
    option_logprobs: tuple[float, ...] = Field((), description="closed: log-likelihood of each option, in nats")


class Verdict(BaseModel):
    """What a judge said of one answer. `correct` and `in_format` are None where its reply was no verdict."""

    model_config = ConfigDict(frozen=True)
    id: str = Field("", description="the item, in a run folder; empty in the cache, where one text serves many items")
    key: str = Field(description="hash of what was judged: question, accepted answers, form and response")
    correct: bool | None
    in_format: bool | None
    reply: str = Field(description="what the judge wrote, its thinking left out, cut where it is long")


class Agreement(BaseModel):
    """How far the rule and the judge agree on n items that both decided."""

    model_config = ConfigDict(frozen=True)
    kappa: float | None = Field(description="Cohen's kappa; None where chance alone would make them agree")
    agree: float | None = Field(description="share of items on which they agree; None for no items")
    n: int

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> Agreement:
        """Of pairs (rule, judge)."""
        both = list(pairs)
        agree = sum(a == b for a, b in both) / len(both) if both else None
        return cls(kappa=cohen_kappa(both), agree=agree, n=len(both))


def cohen_kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Cohen 1960: (observed - expected) / (1 - expected) agreement of two raters.

    None for no items, and where the expected agreement is 1 (both gave every item the same verdict): 0 / 0.
    """
    n = len(pairs)
    first, second = sum(a for a, _ in pairs), sum(b for _, b in pairs)
    observed = n * sum(a == b for a, b in pairs)  # times n squared, like the next one: whole numbers compare exactly
    expected = first * second + (n - first) * (n - second)
    return None if expected == n * n else (observed - expected) / (n * n - expected)


class JudgeScores(BaseModel):
    """What a judge says of one method. Items without a readable verdict keep the verdict of the rule."""

    model_config = ConfigDict(frozen=True)
    knowledge: Rate
    in_format: Rate
    exact: Rate = Field(description="correct and in the form")
    unparsed: int = Field(description="items without a readable verdict")
    agreement_knowledge: Agreement
    agreement_format: Agreement


class JudgeInfo(BaseModel):
    """Who judged a run, and how it was asked."""

    model_config = ConfigDict(frozen=True)
    model: str
    revision: str | None = Field(None, description="of a local judge")
    url: str | None = Field(None, description="endpoint, without credentials; None = a local model")
    prompt_version: int
    prompt_sha256: str
    items: int = Field(description="answers judged, all methods together")
    time: float = Field(description="Unix seconds")


class Shown(NamedTuple):
    """The rates a view shows, and who decided on knowledge."""

    format: Rate
    knowledge: Rate
    exact_match: Rate
    knowledge_by: KnowledgeBy


class MethodScores(BaseModel):
    """The three rates of one method, over the same items, by rule; and those of a judge, where one was asked."""

    model_config = ConfigDict(frozen=True)
    format: Rate
    knowledge: Rate
    exact_match: Rate
    knowledge_by: KnowledgeBy
    stopped_by: dict[StoppedBy, int]
    judge: JudgeScores | None = None

    @property
    def shown(self) -> Shown:
        """Knowledge as the judge saw it where there was one; format and exact match are always those of the rule."""
        if self.judge is None:
            return Shown(self.format, self.knowledge, self.exact_match, self.knowledge_by)
        return Shown(self.format, self.judge.knowledge, self.exact_match, "judge")

    @property
    def format_tax(self) -> float:
        """Knowledge accuracy minus exact match: what the score loses to form."""
        return self.knowledge.rate - self.exact_match.rate

    @classmethod
    def of_items(cls, predictions: Sequence[Prediction], closed: bool, ids: Collection[str]) -> MethodScores | None:
        """The rates over these items alone; None while some of them are not answered yet."""
        chosen = [prediction for prediction in predictions if prediction.id in ids]
        return cls.of(chosen, closed) if chosen and len(chosen) == len(ids) else None

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

"""Scoring an answer: the one place that turns a response into a `Prediction`, in a run and in `rescore`. No torch."""

from __future__ import annotations

from collections.abc import Sequence

from spt.benchmarks.base import Example
from spt.benchmarks.formats import AnswerFormat
from spt.metrics import Prediction, StoppedBy


def score(
    form: AnswerFormat,
    example: Example,
    response: str,
    stopped_by: StoppedBy,
    option_logprobs: Sequence[float] = (),
) -> Prediction:
    """Score a response, trimmed by the format already.

    option_logprobs: closed formats need them, one an option; knowledge is then the option of highest likelihood.
    """
    if form.closed:
        knows = example.options[option_logprobs.index(max(option_logprobs))] == example.target
    else:
        knows = form.knows(response, example)
    return Prediction(
        id=example.id,
        question=example.question,
        options=example.options,
        topic=example.topic,
        target=example.target,
        answer=example.answer,
        aliases=example.aliases,
        response=response,
        in_format=form.in_format(response, example),
        knows=knows,
        exact_match=form.exact_match(response, example),
        stopped_by=stopped_by,
        option_logprobs=tuple(option_logprobs),
    )


def rescore(prediction: Prediction, form: AnswerFormat) -> Prediction:
    """The same answer, scored by the rules as they are now. Needs nothing but the row itself."""
    example = Example(
        question=prediction.question,
        answer=prediction.answer,
        target=prediction.target,
        options=prediction.options,
        aliases=prediction.aliases,
        topic=prediction.topic,
    )
    scored = score(form, example, prediction.response, prediction.stopped_by, prediction.option_logprobs)
    return scored.model_copy(update={"id": prediction.id})

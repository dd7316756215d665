"""Answering test items: batches of like length, greedy answers, ranked options, scored by the rules of the format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spt.benchmarks.base import Benchmark, Example
from spt.generation import generate
from spt.likelihood import option_logprobs
from spt.metrics import Prediction
from spt.models import LoadedModel
from spt.prompting import Prompter
from spt.scoring import score
from spt.spec import Method

EVAL_BATCH = 16  # items; the same for all methods of a run, so that comparisons stay paired in bf16 too


@dataclass(frozen=True)
class Evaluator:
    """Answers with one model on one benchmark, whatever the method."""

    loaded: LoadedModel
    benchmark: Benchmark
    prompter: Prompter

    def batches(self, method: Method, items: Sequence[Example]) -> list[tuple[Example, ...]]:
        """Items in batches of like length. Planned over all items, so a resumed run forms the same batches."""
        ordered = sorted(items, key=lambda item: (len(self.prompter.context(item, method)), item.id))
        return [tuple(ordered[i : i + EVAL_BATCH]) for i in range(0, len(ordered), EVAL_BATCH)]

    def answer_all(self, method: Method, items: Sequence[Example]) -> list[Prediction]:
        """Scored answers to all items, in their order."""
        found = {row.id: row for batch in self.batches(method, items) for row in self.answer(method, batch)}
        return [found[item.id] for item in items]

    def answer(self, method: Method, batch: Sequence[Example]) -> tuple[Prediction, ...]:
        """Scored answers to one batch."""
        form, prompter = self.benchmark.format, self.prompter
        contexts = [prompter.context(item, method) for item in batch]
        answers = generate(self.loaded, contexts, form)
        logprobs: list[list[float]] = [[] for _ in batch]
        if self.benchmark.closed:
            options = [[prompter.answer(option) for option in item.options] for item in batch]
            logprobs = option_logprobs(self.loaded, contexts, options)
        return tuple(
            score(form, item, answer.text, answer.stopped_by, scores)
            for item, answer, scores in zip(batch, answers, logprobs, strict=True)
        )

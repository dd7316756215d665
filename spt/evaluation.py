"""Answering test items: batches of like length, greedy answers, ranked options, scored by the rules of the format.

Where memory runs out, a batch is answered in halves, and so are all later ones. An answer does not depend on what
stands beside it, except for rounding in bf16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spt.benchmarks.base import Benchmark, Example
from spt.events import MemoryReduced
from spt.generation import generate
from spt.likelihood import option_logprobs
from spt.metrics import Prediction
from spt.models import LoadedModel
from spt.out_of_memory import is_out_of_memory, release
from spt.prompting import Prompter
from spt.scoring import score
from spt.spec import Method
from spt.ticker import Listen

EVAL_BATCH = 16  # items; the same for all methods of a run, so that comparisons stay paired in bf16 too


@dataclass
class Evaluator:
    """Answers with one model on one benchmark, whatever the method."""

    loaded: LoadedModel
    benchmark: Benchmark
    prompter: Prompter
    at_once: int = EVAL_BATCH  # items of a batch that go through the model together
    notices: list[MemoryReduced] = field(default_factory=list)  # for the caller to take
    listen: Listen = lambda batch: None  # hears of every token of a batch

    def batches(self, method: Method, items: Sequence[Example]) -> list[tuple[Example, ...]]:
        """Items in batches of like length. Planned over all items, so a resumed run forms the same batches."""
        ordered = sorted(items, key=lambda item: (len(self.prompter.context(item, method)), item.id))
        return [tuple(ordered[i : i + EVAL_BATCH]) for i in range(0, len(ordered), EVAL_BATCH)]

    def answer_all(self, method: Method, items: Sequence[Example]) -> list[Prediction]:
        """Scored answers to all items, in their order."""
        found = {row.id: row for batch in self.batches(method, items) for row in self.answer(method, batch)}
        return [found[item.id] for item in items]

    def answer(self, method: Method, batch: Sequence[Example]) -> tuple[Prediction, ...]:
        """Scored answers to one batch. Where memory runs out it begins again in halves, down to single items.

        The whole batch begins again, so that a run which is broken off behind the notice goes on to the same bits.
        """
        while True:
            try:
                return tuple(row for part in self._portions(batch) for row in self._answer(method, part))
            except (RuntimeError, MemoryError) as error:
                size = min(self.at_once, len(batch))
                if size == 1 or not is_out_of_memory(error):
                    raise
            release()
            self.at_once = size // 2
            items = "one item" if self.at_once == 1 else f"{self.at_once} items"
            detail = (
                f"The device ran out of memory in answering: {items} at once from here on. "
                "Each answer is still made from the same tokens."
            )
            self.notices.append(MemoryReduced(what="evaluation", at_once=self.at_once, detail=detail))

    def _portions(self, batch: Sequence[Example]) -> list[Sequence[Example]]:
        return [batch[i : i + self.at_once] for i in range(0, len(batch), self.at_once)]

    def _answer(self, method: Method, batch: Sequence[Example]) -> list[Prediction]:
        form, prompter = self.benchmark.format, self.prompter
        contexts = [prompter.context(item, method) for item in batch]
        answers = generate(self.loaded, contexts, form, self.listen)
        logprobs: list[list[float]] = [[] for _ in batch]
        if self.benchmark.closed:
            options = [[prompter.answer(option) for option in item.options] for item in batch]
            logprobs = option_logprobs(self.loaded, contexts, options)
        return [
            score(form, item, answer.text, answer.stopped_by, scores)
            for item, answer, scores in zip(batch, answers, logprobs, strict=True)
        ]

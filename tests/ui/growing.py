"""A run that seems to go on: its lock is held, and its events are appended when a test wants them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from spt import events as ev
from spt.metrics import Rate
from spt.spec import RunSpec
from spt.store import RunFolder, Store
from tests.ui import samples

EVERY = 10  # steps from probe to probe
PROBED = 16


@dataclass
class Growing:
    """The run, and how many steps it has made."""

    folder: RunFolder
    step: int = 0

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step += 1
            loss = 4 / self.step
            self.folder.append(
                ev.StepLoss(step=self.step, loss=loss, learning_rate=0.01, grad_norm=1.0, seconds=0.1)
            )
            if self.step % EVERY == 0:
                self.folder.append(probe(self.step))


def probe(step: int) -> ev.Probe:
    """Answers come into the form one after the other, and change with every probe."""
    answers = tuple(
        ev.ProbeAnswer(id=f"item{i}", response=f"#### {i} at step {step}", in_format=i < step / 5, right=i % 2 == 0)
        for i in range(PROBED)
    )
    return ev.Probe(
        step=step,
        format=Rate.of(a.in_format for a in answers),
        knowledge=Rate.of(a.right for a in answers),
        exact_match=Rate.of(a.right and a.in_format for a in answers),
        answers=answers,
    )


@contextmanager
def growing(store: Store, steps: int, items: int = 45) -> Iterator[Growing]:
    """In the middle of tuning: both baselines are answered and scored."""
    spec = RunSpec(benchmark="capitals", steps=steps, items=items)
    folder = store.create(spec)
    with folder.lock():
        folder.append(ev.RunStarted(run=folder.id))
        questions = tuple(
            ev.Question(id=f"item{i}", question=f"What is the capital of country {i}?", target=f"#### City {i}")
            for i in range(PROBED)
        )
        folder.append(
            ev.DataLoaded(
                benchmark="capitals", format="x", closed=False, train=9, test=items, items=items, probed=questions
            )
        )
        rows, scores = samples.predictions(items), samples.scores(items)
        for method in ("zero_shot", "few_shot"):
            folder.append(ev.Predictions(method, tuple(rows[method])))
            folder.append(ev.MethodScored(method=method, scores=scores[method]))
        folder.append(ev.PhaseStarted(phase="tuning", total=steps))
        folder.append(probe(0))
        yield Growing(folder)

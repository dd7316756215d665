"""Training targets of the controls: prompts tuned on wrong answers in the right form.

If the method only taught form, a prompt tuned on them would reach the same format and the same knowledge. Where the
real prompt's knowledge rises above theirs, it has learnt from the answers, or been helped to recall them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from spt.benchmarks.base import Benchmark, Example
from spt.spec import Arm


def targets(arm: Arm, train: Sequence[Example], benchmark: Benchmark) -> list[str]:
    """The target of every training row, in order, as this arm is tuned on it.

    shuffled: the answers of the rows, permuted so that no row keeps its own. Closed questions have options of their
    own, so there the *place* of the right option is permuted: the letters keep their frequencies.
    valid-format: a random option, or a dummy answer in the form (`AnswerFormat.dummy`).
    """
    if arm.control is None:
        return [row.target for row in train]
    rng = random.Random(f"{arm.control}-{arm.seed}")
    if arm.control == "valid-format":
        return [benchmark.format.dummy(rng, row) for row in train]
    order = list(range(len(train)))
    rng.shuffle(order)
    donor = dict(zip(order, [*order[1:], *order[:1]], strict=True))  # a ring: nobody is their own donor
    if not benchmark.closed:
        return [train[donor[i]].target for i in range(len(train))]
    places = [row.options.index(row.target) for row in train]
    return [row.options[places[donor[i]] % len(row.options)] for i, row in enumerate(train)]

"""arithmetic: grade-school word problems with worked steps. Open-ended, worked lines and then `#### answer`.

Nothing is stored: problems are drawn from a seed, the same ones each time, in the style of GSM8K's answers.
Question: `Anna packs 3 boxes with 4 nuts in each and then takes 2 nuts out again. How many nuts are left in the boxes?`
Target:   `At first the boxes hold 3*4=<<3*4=12>>12 nuts.\\nThen 12-2=<<12-2=10>>10 nuts are left.\\n#### 10`
Topic:    `packing`

Two or three steps, positive whole numbers, no result above 400. The answer is never one of the numbers in the question,
so that copying a number from the question is never right. Train and test share no story, no name and no thing
(`arithmetic_stories.py`). Stories take turns, so that the first rows of a split show every kind of problem.

Source: written and generated for this project.   Licence: Apache-2.0, as the project.
"""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from spt.benchmarks.arithmetic_stories import (
    TEST_NAMES,
    TEST_STORIES,
    TEST_THINGS,
    TRAIN_NAMES,
    TRAIN_STORIES,
    TRAIN_THINGS,
    Story,
)
from spt.benchmarks.base import Benchmark, Example, Split
from spt.benchmarks.formats import HashAnswer

SEED = 2606
TRAIN_ROWS = 640
TEST_ROWS = 240
LARGEST = 400

_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
}


def load(data_dir: Path | None = None) -> Split:
    """Both splits, the same problems at every load."""
    return Split(
        train=_generate(TRAIN_ROWS, TRAIN_STORIES, TRAIN_NAMES, TRAIN_THINGS),
        test=_generate(TEST_ROWS, TEST_STORIES, TEST_NAMES, TEST_THINGS),
    )


def _generate(rows: int, stories: Sequence[Story], names: Sequence[str], things: Sequence[str]) -> list[Example]:
    rng = random.Random(SEED)
    examples: dict[str, Example] = {}
    while len(examples) < rows:
        example = _draw(stories[len(examples) % len(stories)], names, things, rng)
        if example is not None:
            examples.setdefault(example.question, example)
    return list(examples.values())


def _draw(story: Story, names: Sequence[str], things: Sequence[str], rng: random.Random) -> Example | None:
    """One problem with random numbers; None where they do not come out as positive whole numbers."""
    who, other = rng.sample(names, 2)
    words = {"who": who, "other": other, "things": rng.choice(things)}
    values = {name: rng.randint(low, high) for name, (low, high) in story.ranges.items()}
    given = set(values.values())
    lines: list[str] = []
    for step in story.steps:
        left, sign, right = re.split(r"([-+*/])", step.expression)
        x, y = (values[term] if term in values else int(term) for term in (left, right))
        if sign == "/" and x % y:
            return None
        values[step.result] = result = _OPERATORS[sign](x, y)
        if not 1 < result <= LARGEST:  # not 1: "1 apples"
            return None
        calc = f"{x}{sign}{y}=<<{x}{sign}{y}={result}>>{result}"
        lines.append(step.line.format(calc=calc, **words, **values))
    answer = values[story.steps[-1].result]
    if answer in given:
        return None
    return Example(
        question=story.text.format(**words, **values),
        answer=str(answer),
        target="\n".join([*lines, f"#### {answer}"]),
        topic=story.topic,
    )


ARITHMETIC = Benchmark(
    name="arithmetic",
    title="Grade-school arithmetic with worked steps (open-ended)",
    format=HashAnswer(max_new_tokens=160),
    instruction="Solve the problem step by step, one step a line. Write each calculation with its result between "
    "<< and >>. Then write a last line with #### followed by the answer as a number and nothing else.",
    source="generated for this project from a seed",
    licence="Apache-2.0",
    read=load,
)

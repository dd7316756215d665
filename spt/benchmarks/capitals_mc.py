"""capitals-mc: the capital of every UN member state, with four options to copy from. Closed, option copy.

Made from the rows of `capitals` (see there) with a fixed seed; the splits are the same.
Question: `What is the capital of Oman?`   Options: `A. Doha`, `B. Hanoi`, `C. Muscat`, `D. Tokyo`
Target: `C. Muscat`   Topic: `Asia`

Wrong options are capitals of the same region and split. Each letter is right equally often (one more or less where the
count is no multiple of four), so that a model that always says one letter scores 25 %.

Source: written for this project.   Licence: Apache-2.0, as the project.
"""

from __future__ import annotations

import random
from pathlib import Path

from spt.benchmarks.base import Benchmark, Example, Split
from spt.benchmarks.capitals import CapitalRow, read_capitals
from spt.benchmarks.formats import OptionCopy

LETTERS = "ABCD"
SEED = 2606


def load(data_dir: Path | None = None) -> Split:
    """Both splits, in the order of `capitals`; the same options at every load."""
    rows = read_capitals()
    return Split(
        train=_with_options([row for row in rows if row.split == "train"]),
        test=_with_options([row for row in rows if row.split == "test"]),
    )


def _with_options(rows: list[CapitalRow]) -> list[Example]:
    rng = random.Random(SEED)
    places = [i % len(LETTERS) for i in range(len(rows))]
    rng.shuffle(places)
    return [_example(row, place, rows, rng) for row, place in zip(rows, places, strict=True)]


def _example(row: CapitalRow, place: int, rows: list[CapitalRow], rng: random.Random) -> Example:
    others = [other.capital for other in rows if other.region == row.region and other is not row]
    names = rng.sample(others, len(LETTERS) - 1)
    names.insert(place, row.capital)
    options = tuple(f"{letter}. {name}" for letter, name in zip(LETTERS, names, strict=True))
    return Example(
        question=row.question,
        answer=row.capital,
        target=options[place],
        options=options,
        topic=row.region,
    )


CAPITALS_MC = Benchmark(
    name="capitals-mc",
    title="Capitals of the world (multiple choice)",
    format=OptionCopy(),
    instruction="Answer the question. Copy the whole line of the correct option, its letter included, "
    "exactly as shown, and write nothing else.",
    source="written for this project",
    licence="Apache-2.0",
    read=load,
)

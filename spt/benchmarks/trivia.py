"""trivia: general knowledge with short answers. Open-ended, short phrase.

One row of `assets/benchmarks/trivia.jsonl`:
    {"topic": "geography", "subject": "Rhodesia", "question": "Which African country was called Rhodesia until 1980?",
     "answer": "Zimbabwe", "aliases": [], "split": "train"}
Target: `Zimbabwe`   Topic: `geography`

821 questions (574 train, 247 test) over sixteen topics, which take turns in the file, so that the first rows of a split
show all of them. Train and test are disjoint by subject: what a train question is about or answers with is neither
subject nor answer in test. No answer occurs in its own question. Facts are meant to last: no office holders, no records
that may fall. Accents, case and articles need no alias: comparison folds them.

Source: written for this project.   Licence: Apache-2.0, as the project.
"""

from __future__ import annotations

from pathlib import Path

from spt.benchmarks.assets import AssetRow, read_rows
from spt.benchmarks.base import Benchmark, Example, Split
from spt.benchmarks.formats import ShortPhrase


class TriviaRow(AssetRow):
    """One question. `subject` is what it is about; it decides, with the answer, which split the row may be in."""

    topic: str
    subject: str
    question: str
    answer: str
    aliases: tuple[str, ...]


def read_trivia() -> list[TriviaRow]:
    """All questions, in the order of the file (topics take turns)."""
    return read_rows("trivia.jsonl", TriviaRow)


def load(data_dir: Path | None = None) -> Split:
    """Both splits, in the order of the file."""
    rows = read_trivia()
    return Split(
        train=[_example(row) for row in rows if row.split == "train"],
        test=[_example(row) for row in rows if row.split == "test"],
    )


def _example(row: TriviaRow) -> Example:
    return Example(
        question=row.question, answer=row.answer, target=row.answer, aliases=row.aliases, topic=row.topic
    )


TRIVIA = Benchmark(
    name="trivia",
    title="General knowledge (open-ended)",
    format=ShortPhrase(),
    instruction="Answer the question with the answer alone: a short phrase on one line, no sentence, no full stop.",
    source="written for this project",
    licence="Apache-2.0",
    read=load,
)

"""triviaqa: trivia questions without any text to read. Open-ended, short phrase.

A row in the hub's shape (made up, and without the fields that are not read):
    {"question": "Which river flows through Vienna?",
     "answer": {"value": "The Danube", "aliases": ["The Danube", "Danube River", "Donau"]}}
Target: `The Danube`   Aliases: `Danube River`, `Donau`

On the hub: mandarjoshi/trivia_qa, config `rc.nocontext`, 138,384 train and 17,944 validation rows. The labels of its
test split are secret, so validation is the test split. The target is the set's `value` where that is a bare phrase,
else the first alias that is one; rows with none are dropped.
Source: Joshi et al. 2017, arXiv:1705.03551.   Licence: not stated on the hub; the authors' code is Apache-2.0.
"""

from __future__ import annotations

from pathlib import Path

from spt.benchmarks.base import Benchmark, Example, HubSet, Split
from spt.benchmarks.formats import ShortPhrase
from spt.benchmarks.hub_rows import DroppedRow, Row, load, phrase_row

HUB = HubSet(
    "mandarjoshi/trivia_qa",
    "rc.nocontext",
    "0f7faf33a3908546c6fd5b73a660e0f8ff173c2f",
    train="train",
    test="validation",
)
FORMAT = ShortPhrase()


def example(row: Row) -> Example:
    """One row. Raises DroppedRow without an answer, or where none is a bare phrase."""
    answer = row["answer"]
    if not answer or answer["value"] in (None, "", "<unk>"):
        raise DroppedRow("no label")
    return phrase_row(row["question"], (answer["value"], *answer["aliases"]))


def read(data_dir: Path | None) -> Split:
    """Both splits."""
    return load(HUB, data_dir, FORMAT, example)


TRIVIAQA = Benchmark(
    name="triviaqa",
    title="TriviaQA (open-ended)",
    format=FORMAT,
    instruction="Answer the question with the answer alone: a short phrase on one line, no sentence, no full stop.",
    source="mandarjoshi/trivia_qa (Joshi et al. 2017)",
    licence="not stated",
    read=read,
    hub=HUB,
)

"""nq_open: questions people typed into a search engine. Open-ended, short phrase, often several accepted answers.

A row in the hub's shape (this one was made up):
    {"question": "who built the first lighthouse in lisbon", "answer": ["King Ferdinand", "Ferdinand I"]}
Target: `King Ferdinand`   Aliases: `Ferdinand I`

On the hub: google-research-datasets/nq_open, config `nq_open`, 87,925 train and 3,610 validation rows, no test split:
validation is the test split, as in the papers that use it. The target is the first accepted answer that is a bare
phrase, the others are aliases; rows with none are dropped. Questions get the question mark that they lack.
Source: Lee et al. 2019, from Natural Questions (Kwiatkowski et al. 2019).   Licence: CC BY-SA 3.0.
"""

from __future__ import annotations

from pathlib import Path

from spt.benchmarks.base import Benchmark, Example, HubSet, Split
from spt.benchmarks.formats import ShortPhrase
from spt.benchmarks.hub_rows import Row, load, phrase_row

HUB = HubSet(
    "google-research-datasets/nq_open",
    "nq_open",
    "5dd9790a83002ad084ddeb7c420dc716852c6f28",
    train="train",
    test="validation",
)
FORMAT = ShortPhrase()


def example(row: Row) -> Example:
    """One row. Raises DroppedRow without an answer, or where none is a bare phrase."""
    question = row["question"].strip()
    return phrase_row(question if question.endswith("?") else f"{question}?", row["answer"])


def read(data_dir: Path | None) -> Split:
    """Both splits."""
    return load(HUB, data_dir, FORMAT, example)


NQ_OPEN = Benchmark(
    name="nq_open",
    title="Natural Questions, open (open-ended)",
    format=FORMAT,
    instruction="Answer the question with the answer alone: a short phrase on one line, no sentence, no full stop.",
    source="google-research-datasets/nq_open (Lee et al. 2019)",
    licence="CC BY-SA 3.0",
    read=read,
    hub=HUB,
)

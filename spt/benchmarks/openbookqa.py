"""openbookqa: elementary science, without the book. Closed, option copy.

A row in the hub's shape (this one was made up):
    {"id": "1-1", "question_stem": "A plant on the window sill will bend towards", "answerKey": "D",
     "choices": {"text": ["the wall", "the pot", "the cat", "the light"], "label": ["A", "B", "C", "D"]}}
Question: `question_stem`   Target: `D. the light`

On the hub: allenai/openbookqa, config `main`, 4,957 train and 500 test rows.
Source: Mihaylov et al. 2018, arXiv:1809.02789.   Licence: not stated on the hub; the authors' code is Apache-2.0.
"""

from __future__ import annotations

from pathlib import Path

from spt.benchmarks.base import Benchmark, Example, HubSet, Split
from spt.benchmarks.formats import OptionCopy
from spt.benchmarks.hub_rows import COPY_INSTRUCTION, Row, choices_row, load

HUB = HubSet("allenai/openbookqa", "main", "388097ea7776314e93a529163e0fea805b8a6454", train="train", test="test")
FORMAT = OptionCopy(max_new_tokens=48)


def example(row: Row) -> Example:
    """One row."""
    return choices_row(row, question="question_stem")


def read(data_dir: Path | None) -> Split:
    """Both splits."""
    return load(HUB, data_dir, FORMAT, example)


OPENBOOKQA = Benchmark(
    name="openbookqa",
    title="OpenBookQA: elementary science (multiple choice)",
    format=FORMAT,
    instruction=COPY_INSTRUCTION,
    source="allenai/openbookqa (Mihaylov et al. 2018)",
    licence="not stated",
    read=read,
    hub=HUB,
)

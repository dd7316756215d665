"""commonsense_qa: questions on everyday life, five options. Closed, option copy.

A row in the hub's shape (this one was made up):
    {"id": "x1", "question": "Where would you keep milk?", "question_concept": "milk", "answerKey": "C",
     "choices": {"label": ["A", "B", "C", "D", "E"], "text": ["shoe", "roof", "fridge", "garage", "pond"]}}
Target: `C. fridge`

On the hub: tau/commonsense_qa, config `default`, 9,741 train and 1,221 validation rows. The labels of its test split
are secret, so validation is the test split. `question_concept` is no topic here: there are almost as many as questions.
Source: Talmor et al. 2019, arXiv:1811.00937.   Licence: MIT (as its hub card says).
"""

from __future__ import annotations

from pathlib import Path

from spt.benchmarks.base import Benchmark, HubSet, Split
from spt.benchmarks.formats import OptionCopy
from spt.benchmarks.hub_rows import COPY_INSTRUCTION, choices_row, load

HUB = HubSet(
    "tau/commonsense_qa", "default", "94630fe30dad47192a8546eb75f094926d47e155", train="train", test="validation"
)
FORMAT = OptionCopy()


def read(data_dir: Path | None) -> Split:
    """Both splits."""
    return load(HUB, data_dir, FORMAT, choices_row)


COMMONSENSE_QA = Benchmark(
    name="commonsense_qa",
    title="CommonsenseQA (multiple choice)",
    format=FORMAT,
    instruction=COPY_INSTRUCTION,
    source="tau/commonsense_qa (Talmor et al. 2019)",
    licence="MIT",
    read=read,
    hub=HUB,
)

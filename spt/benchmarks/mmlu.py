"""mmlu: exam questions from 57 subjects, four options. Closed, option copy.

A row in the hub's shape (this one was made up):
    {"question": "Which organ pumps blood?", "subject": "anatomy", "choices": ["liver", "heart", "lung", "skin"],
     "answer": 1}
Target: `B. heart`   Topic: `anatomy`, so `--holdout-topic anatomy` tunes on the other subjects and tests on this one.

On the hub: cais/mmlu, config `all`, 1,531 validation and 14,042 test rows. It has no train split of its own kind
(`auxiliary_train` are rows of other sets), so the prompt is tuned on validation.
Source: Hendrycks et al. 2021, arXiv:2009.03300.   Licence: MIT.
"""

from __future__ import annotations

from pathlib import Path

from spt.benchmarks.base import Benchmark, Example, HubSet, Split
from spt.benchmarks.formats import OptionCopy
from spt.benchmarks.hub_rows import COPY_INSTRUCTION, Row, load, with_options

HUB = HubSet("cais/mmlu", "all", "c30699e8356da336a370243923dbaf21066bb9fe", train="validation", test="test")
FORMAT = OptionCopy(max_new_tokens=160)  # some options are whole paragraphs


def example(row: Row) -> Example:
    """One row; `answer` is the place of the right choice, counted from 0."""
    key = None if row["answer"] in (None, "", -1) else int(row["answer"])
    return with_options(row["question"], row["choices"], key, topic=row["subject"])


def read(data_dir: Path | None) -> Split:
    """Both splits."""
    return load(HUB, data_dir, FORMAT, example)


MMLU = Benchmark(
    name="mmlu",
    title="MMLU: exams in 57 subjects (multiple choice)",
    format=FORMAT,
    instruction=COPY_INSTRUCTION,
    source="cais/mmlu (Hendrycks et al. 2021)",
    licence="MIT",
    read=read,
    hub=HUB,
)

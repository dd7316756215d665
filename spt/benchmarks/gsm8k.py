"""gsm8k: grade-school word problems with worked solutions. Open-ended, worked lines and then `#### answer`.

A row in the hub's shape (this one was made up):
    {"question": "Ida bakes 3 trays of 8 rolls and sells 20. How many rolls are left?",
     "answer": "She bakes 3*8=<<3*8=24>>24 rolls.\\nThen 24-20=<<24-20=4>>4 are left.\\n#### 4"}
Target: the `answer` field as it is, working and calculator annotations included, since that is what the benchmark shows
and its own scorer reads only what stands behind `####`.

On the hub: openai/gsm8k, config `main`, 7,473 train and 1,319 test rows. Rows whose answer is no number are dropped.
Source: Cobbe et al. 2021, arXiv:2110.14168.   Licence: MIT.
"""

from __future__ import annotations

from pathlib import Path

from spt.benchmarks.answers import parse_number
from spt.benchmarks.base import Benchmark, Example, HubSet, Split
from spt.benchmarks.formats import HashAnswer
from spt.benchmarks.hub_rows import DroppedRow, Row, load

HUB = HubSet("openai/gsm8k", "main", "740312add88f781978c0658806c59bc2815b9866", train="train", test="test")
FORMAT = HashAnswer(max_new_tokens=400)


def example(row: Row) -> Example:
    """One row. Raises DroppedRow where no number stands behind `####`."""
    worked = "\n".join(line.rstrip() for line in row["answer"].strip().splitlines())
    answer = worked.rpartition("####")[2].strip()
    if "####" not in worked or parse_number(answer) is None:
        raise DroppedRow("no number behind ####")
    return Example(question=row["question"].strip(), answer=answer, target=worked)


def read(data_dir: Path | None) -> Split:
    """Both splits."""
    return load(HUB, data_dir, FORMAT, example)


GSM8K = Benchmark(
    name="gsm8k",
    title="GSM8K: grade-school maths (open-ended)",
    format=FORMAT,
    instruction="Word problems and their solutions. Each solution is worked out step by step, and its last line is "
    '"#### " and the number asked for.',
    source="openai/gsm8k (Cobbe et al. 2021)",
    licence="MIT",
    read=read,
    hub=HUB,
)

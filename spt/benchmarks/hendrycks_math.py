"""math: MATH, competition problems with worked solutions. Open-ended, LaTeX, the answer in `\\boxed{}`.

A row in the hub's shape (this one was made up):
    {"problem": "What is $3^2 + 4$?", "level": "Level 1", "type": "Algebra",
     "solution": "We have $3^2 = 9$, so the sum is\\n\\\\[9 + 4 = \\\\boxed{13}.\\\\]"}
Target: the solution up to the end of the line with its box, here all of it.   Topic: `type`

The target is the worked solution and not the bare `\\boxed{13}`, as the benchmark asks for a solution that ends in a
box: a prompt tuned on bare boxes would teach the model to answer without working, and so change what it can do.
Solutions with no box, or several, are dropped.

On the hub: DigitalLearningGmbH/MATH-lighteval, config `default`, 7,500 train and 5,000 test rows, in parquet; the
authors' own repository on the hub was taken down.
Source: Hendrycks et al. 2021, arXiv:2103.03874.   Licence: MIT.
"""

from __future__ import annotations

from pathlib import Path

from spt.benchmarks.base import Benchmark, Example, HubSet, Split
from spt.benchmarks.formats import Boxed
from spt.benchmarks.formats.boxed import boxed_answer
from spt.benchmarks.hub_rows import DroppedRow, Row, load

HUB = HubSet(
    "DigitalLearningGmbH/MATH-lighteval",
    "default",
    "0530c78699ea5e8eb5530600900e1f328b48acad",
    train="train",
    test="test",
)
FORMAT = Boxed(max_new_tokens=768)


def example(row: Row) -> Example:
    """One row. Raises DroppedRow where the solution has no box."""
    solution = "\n".join(line.rstrip() for line in row["solution"].strip().splitlines())
    answer = boxed_answer(solution)
    if answer is None:
        raise DroppedRow("no boxed answer")
    if solution.count("\\boxed") > 1:
        raise DroppedRow("several boxed answers")
    target = FORMAT.trim(f"{solution}\n")[0]
    return Example(question=row["problem"].strip(), answer=answer, target=target, topic=row.get("type") or "")


def read(data_dir: Path | None) -> Split:
    """Both splits."""
    return load(HUB, data_dir, FORMAT, example)


MATH = Benchmark(
    name="math",
    title="MATH: competition maths (open-ended)",
    format=FORMAT,
    instruction="Problems and their solutions. Each solution is worked out step by step in LaTeX, and its last line "
    "holds the final answer in \\boxed{}.",
    source="DigitalLearningGmbH/MATH-lighteval (Hendrycks et al. 2021)",
    licence="MIT",
    read=read,
    hub=HUB,
)

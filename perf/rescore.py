"""Time of `spt rescore` by rule: 10,000 stored answers of one benchmark, without a model.

    python -m perf.rescore [ITEMS]

The answers are made up, three methods that share them evenly, half of them in the form. One line a benchmark.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from itertools import cycle, islice

from spt.benchmarks import BENCHMARKS, mathematics
from spt.benchmarks.base import Benchmark, Example, Split
from spt.benchmarks.formats import Boxed
from spt.events import Predictions, RunFinished
from spt.metrics import MethodScores, Prediction
from spt.runner import rescore_run
from spt.scoring import score
from spt.spec import METHODS, RunSpec, UserError
from spt.store import Store
from tests.finished import result


def formulas(folder: object) -> Split:
    """Problems as in MATH, each with another answer: fractions, roots, polynomials, intervals, numbers."""
    kinds = (
        "\\frac{{{0}}}{{{1}}}", "{0}\\sqrt{{{1}}}", "x^2+{0}x-{1}", "({0},{1}]", "{0}", "\\frac{{{0}\\pi}}{{{1}}}",
    )  # fmt: skip
    found = []
    for i in range(5000):
        answer = kinds[i % len(kinds)].format(i + 3, i % 97 + 2)
        found.append(Example(question=f"Problem {i}: find it.", answer=answer, target=f"\\boxed{{{answer}}}"))
    return Split([], found)


MATH = Benchmark("made-up-math", "Formulas", Boxed(256), "Solve it.", "made up here", "as the project", formulas)


def answers(benchmark: Benchmark, number: int) -> list[Prediction]:
    """So many scored answers; ids are made unique, since a benchmark may have fewer rows."""
    rows = []
    for i, example in enumerate(islice(cycle(benchmark.load().test), number)):
        response = example.target if i % 2 else f"I think that the answer must be {example.answer}, after all of this."
        if benchmark is MATH and i % 2 and i % 3:  # wrong or written otherwise: only math-verify can tell
            response = f"So it is $\\boxed{{{example.answer} + {i % 2}}}$."
        logprobs = [-1.0 * k for k in range(len(example.options))]
        rows.append(score(benchmark.format, example, response, "rule", logprobs).model_copy(update={"id": f"{i:012x}"}))
    return rows


def measure(benchmark: Benchmark, number: int) -> float:
    """Seconds to rescore a run with that many answers, stale ones, so that every file is written anew too."""
    spec = RunSpec(benchmark=benchmark.name, items=number)
    folder = Store().create(spec)
    scores = {}
    for method, share in zip(METHODS, (number // 3, number // 3, number - 2 * (number // 3)), strict=True):
        rows = [row.model_copy(update={"in_format": False}) for row in answers(benchmark, share)]
        folder.append(Predictions(method, tuple(rows)))
        scores[method] = MethodScores.of(rows, benchmark.closed)
    folder.append(RunFinished(result=result(spec, scores)))
    mathematics.stop()  # a new process has no comparisons in memory, and none that compares
    mathematics.equal.cache_clear()
    mathematics.ends_with.cache_clear()
    start = time.perf_counter()
    rescore_run(folder)
    return time.perf_counter() - start


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as root:
        os.environ["SPT_HOME"] = root
        BENCHMARKS[MATH.name] = MATH
        for name, benchmark in BENCHMARKS.items():
            try:
                seconds = measure(benchmark, number)
            except UserError as error:  # its rows are not on this machine
                print(f"{name}: {error}")
                continue
            print(f"{name} ({benchmark.format.name}): {number:,} answers in {seconds:.2f} s")


if __name__ == "__main__":
    main()

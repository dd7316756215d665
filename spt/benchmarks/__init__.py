"""The benchmarks: one file each, listed here by name. Importing this package reads no data and no heavy library.

A new benchmark is a file that ends in a `Benchmark` and one line in `BENCHMARKS`.
"""

from __future__ import annotations

from difflib import get_close_matches

from spt.benchmarks.arithmetic import ARITHMETIC
from spt.benchmarks.base import Benchmark, Example, Split
from spt.benchmarks.capitals import CAPITALS
from spt.benchmarks.capitals_mc import CAPITALS_MC
from spt.benchmarks.trivia import TRIVIA
from spt.spec import RunSpec, UserError

__all__ = ["BENCHMARKS", "Benchmark", "Example", "Split", "for_spec", "get"]

BENCHMARKS: dict[str, Benchmark] = {
    "capitals": CAPITALS,
    "capitals-mc": CAPITALS_MC,
    "trivia": TRIVIA,
    "arithmetic": ARITHMETIC,
}


def get(name: str) -> Benchmark:
    """The benchmark of that name (`_` is read as `-`, case does not matter). Raises UserError if there is none."""
    key = name.strip().lower().replace("_", "-")
    if key in BENCHMARKS:
        return BENCHMARKS[key]
    close = get_close_matches(key, BENCHMARKS, n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    raise UserError(f"Unknown benchmark '{name}'. Known: {', '.join(BENCHMARKS)}.{hint}")


def for_spec(spec: RunSpec) -> Benchmark:
    """The benchmark of a run: one of the registry, a file of the user's, or a task of lm-evaluation-harness."""
    return get(spec.benchmark)

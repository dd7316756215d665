"""The benchmarks: one file each, listed here by name. Importing this package reads no data and no heavy library.

A new benchmark is a file that ends in a `Benchmark` and one line here. `load(spec)` is what a run asks for.
"""

from __future__ import annotations

import os
from difflib import get_close_matches

from spt.benchmarks.arc import ARC_CHALLENGE, ARC_EASY
from spt.benchmarks.arithmetic import ARITHMETIC
from spt.benchmarks.base import Benchmark, Example, Split
from spt.benchmarks.capitals import CAPITALS
from spt.benchmarks.capitals_mc import CAPITALS_MC
from spt.benchmarks.commonsense_qa import COMMONSENSE_QA
from spt.benchmarks.gsm8k import GSM8K
from spt.benchmarks.hendrycks_math import MATH
from spt.benchmarks.mmlu import MMLU
from spt.benchmarks.nq_open import NQ_OPEN
from spt.benchmarks.openbookqa import OPENBOOKQA
from spt.benchmarks.trivia import TRIVIA
from spt.benchmarks.triviaqa import TRIVIAQA
from spt.spec import RunSpec, UserError

__all__ = [
    "BENCHMARKS",
    "BUNDLED",
    "HUB",
    "Benchmark",
    "Example",
    "Split",
    "asked_of_hub",
    "canonical",
    "check_source",
    "default_data_dir",
    "for_spec",
    "get",
    "load",
    "rows_are_here",
]

BUNDLED: dict[str, Benchmark] = {b.name: b for b in (CAPITALS, CAPITALS_MC, TRIVIA, ARITHMETIC)}
_FROM_HUB = (GSM8K, MATH, TRIVIAQA, NQ_OPEN, ARC_EASY, ARC_CHALLENGE, COMMONSENSE_QA, OPENBOOKQA, MMLU)
HUB: dict[str, Benchmark] = {b.name: b for b in _FROM_HUB}
BENCHMARKS: dict[str, Benchmark] = BUNDLED | HUB

_HARNESS = "lm_eval:"
_OWN_SETTINGS = ("answer_format", "template", "pattern")


def get(name: str) -> Benchmark:
    """The benchmark of that name (`_` is `-`, case does not matter). Raises UserError if there is none."""
    key = _folded(name)
    known = {_folded(known): known for known in BENCHMARKS}
    if key in known:
        return BENCHMARKS[known[key]]
    close = get_close_matches(key, known, n=1)
    hint = f" Did you mean '{known[close[0]]}'?" if close else ""
    raise UserError(f"Unknown benchmark '{name}'. Known: {', '.join(BENCHMARKS)}.{hint}")


def _folded(name: str) -> str:
    return name.strip().lower().replace("_", "-")


def is_own_file(name: str) -> bool:
    """Whether a benchmark is a file of the user's."""
    return not name.startswith(_HARNESS) and name.lower().endswith((".jsonl", ".csv"))


def default_data_dir() -> str | None:
    """The folder in place of the hub that the environment names: what the page and the command line begin with."""
    return os.environ.get("SPT_DATA_DIR") or None


def canonical(spec: RunSpec) -> RunSpec:
    """The spec as it counts: the benchmark's own spelling, and without settings that this benchmark does not read.

    So a run has the same id however it is spelt, and wherever SPT_DATA_DIR points. Raises UserError for a benchmark
    that is not known; files are not looked at.
    """
    if spec.benchmark.startswith(_HARNESS):
        unread: tuple[str, ...] = ("data_dir", *_OWN_SETTINGS)
    elif is_own_file(spec.benchmark):
        unread = ("data_dir",)
    else:
        benchmark = get(spec.benchmark)
        spec = spec.model_copy(update={"benchmark": benchmark.name})
        unread = _OWN_SETTINGS if benchmark.hub else ("data_dir", *_OWN_SETTINGS)
    return spec.model_copy(update=dict.fromkeys(unread))


def for_spec(spec: RunSpec) -> Benchmark:
    """The benchmark of a run: one of the registry, a file of the user's, or a task of lm-evaluation-harness.

    The latter two are read here, as their rows decide on their format. Raises UserError where that fails.
    """
    if spec.benchmark.startswith(_HARNESS):
        from spt.benchmarks import harness

        return harness.benchmark(spec.benchmark.removeprefix(_HARNESS))
    if is_own_file(spec.benchmark):
        from spt.benchmarks import own

        return own.benchmark(spec.benchmark, spec.answer_format, spec.template, spec.pattern)
    return get(spec.benchmark)


def rows_are_here(spec: RunSpec) -> bool:
    """Whether `load` needs neither the network nor a heavy library: bundled rows, a file, a folder in place of the hub.

    Raises UserError for a benchmark that is not known.
    """
    if spec.benchmark.startswith(_HARNESS):
        return False  # lm-eval takes seconds to import, and its tasks' rows are on the hub
    return is_own_file(spec.benchmark) or get(spec.benchmark).hub is None or bool(spec.data_dir)


def asked_of_hub(spec: RunSpec) -> str:
    """What `load` is about to wait for, as a view shows it; empty where the rows are here."""
    if spec.benchmark.startswith(_HARNESS):
        return f"Asking lm-evaluation-harness for {spec.benchmark.removeprefix(_HARNESS)} …"
    return "" if rows_are_here(spec) else f"Asking the hub about {spec.benchmark} …"


def check_source(spec: RunSpec) -> None:
    """What can be said of a benchmark whose rows are not here. Raises UserError."""
    if spec.benchmark.startswith(_HARNESS):
        from spt.benchmarks import harness

        harness.require(spec.benchmark.removeprefix(_HARNESS))


def load(spec: RunSpec) -> tuple[Benchmark, Split]:
    """The benchmark of a run and its rows, with the held-out topic taken from train and alone in test."""
    benchmark = for_spec(spec)
    split = benchmark.load(spec.data_dir)
    return benchmark, split if spec.holdout_topic is None else hold_out(split, spec.holdout_topic, benchmark.name)


def hold_out(split: Split, topic: str, name: str) -> Split:
    """Train on all other topics, test on this one. Raises UserError where that leaves nothing."""
    topics = sorted({example.topic for example in (*split.train, *split.test)} - {""})
    if not topics:
        raise UserError(f"{name} has no topics: leave --holdout-topic out.")
    wanted = next((known for known in topics if known.casefold() == topic.strip().casefold()), None)
    if wanted is None:
        raise UserError(f"{name} has no topic {topic!r} to hold out: choose one of {', '.join(topics)}.")
    train = [example for example in split.train if example.topic != wanted]
    # A topic of the training rows alone is tested on those: they are tuned on no more.
    test = [example for example in split.test if example.topic == wanted] or [
        example for example in split.train if example.topic == wanted
    ]
    if not train:
        raise UserError(f"All training rows of {name} are on {wanted!r}: nothing is left to tune on, hold out another.")
    return Split(train=train, test=test, dropped=split.dropped)

"""Finished runs of made-up pairs of models, written through the store; no model is loaded.

Base models write nothing in form zero-shot, few-shot blurs what they know, the soft prompt shows it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from spt import events as ev
from spt.metrics import MethodScores, Prediction, Rate
from spt.spec import METHODS, Method, RunSpec
from spt.store import RunFolder, Store
from tests.finished import result

FORM = {"zero_shot": 0.04, "few_shot": 0.6, "soft_prompt": 0.96}


def base(number: int) -> str:
    return f"lab/Model-{number}-Base"


def post(number: int) -> str:
    return f"lab/Model-{number}"


def rows(skill: float, form: float, items: int, seed: str) -> list[Prediction]:
    """Answers to the same items; an item has a difficulty, so that models agree on which are hard."""
    hard, luck = random.Random("items"), random.Random(seed)
    found = []
    for i in range(items):
        knows = hard.random() * 0.7 + luck.random() * 0.3 < skill
        in_format = luck.random() < form
        found.append(
            Prediction(
                id=f"i{i}", question="q", target="#### x", answer="x", response="#### x", in_format=in_format,
                knows=knows, exact_match=knows and in_format, stopped_by="eos",
            )
        )  # fmt: skip
    return found


def finish(model: str, skill: float, forms: dict[Method, float], probes: bool = True, **settings: Any) -> RunFolder:
    """A finished run of a model of that skill. A `benchmark` that ends in -mc is closed."""
    spec = RunSpec(**{"model": model, "items": 64, **settings})
    closed = spec.benchmark.endswith("-mc")
    folder = Store().create(spec)
    folder.append(ev.RunStarted(run=folder.id))
    scores = {}
    for method in METHODS:
        answers = rows(skill, forms[method], spec.items, f"{model} {method} {spec.seed} {spec.benchmark}")
        folder.append(ev.Predictions(method, tuple(answers)))
        scores[method] = MethodScores.of(answers, closed)
    if probes:
        for step in range(0, 81, 10):
            share = forms["zero_shot"] + (forms["soft_prompt"] - forms["zero_shot"]) * min(1, step / 50)
            knows, formed = ([True] * round(16 * x) + [False] * (16 - round(16 * x)) for x in (skill, share))
            rates = {"knowledge": Rate.of(knows), "format": Rate.of(formed), "exact_match": Rate.of(formed)}
            folder.append(ev.Probe(step=step, answers=(), **rates))
    done = result(spec, scores).model_copy(update={"benchmark": {"name": spec.benchmark, "closed": closed}})
    folder.append(ev.RunFinished(result=done))
    return folder


def lay_out(
    pairs: int = 7,
    benchmarks: Sequence[str] = ("capitals", "capitals-mc"),
    seeds: Sequence[int] = (0,),
    **settings: Any,
) -> list[RunFolder]:
    """Runs of so many pairs on these benchmarks, each model more skilled than the one before."""
    made = []
    for number in range(1, pairs + 1):
        skill = 0.15 + 0.7 * number / (pairs + 1)
        for benchmark in benchmarks:
            for seed in seeds:
                more = {"benchmark": benchmark, "seed": seed, **settings}
                made.append(finish(base(number), skill, FORM, **more))
                made.append(finish(post(number), skill + 0.05, dict.fromkeys(METHODS, 0.93), **more))
    return made

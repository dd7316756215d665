"""A finished run without a model: made-up answers, scored and stored as a run does it."""

from __future__ import annotations

from collections.abc import Callable

from spt.analysis import analyse
from spt.benchmarks import for_spec
from spt.benchmarks.base import Example
from spt.events import SCHEMA, MethodScored, Predictions, Result, RunFinished, RunStarted, TuningSummary
from spt.metrics import MethodScores
from spt.scoring import score
from spt.spec import METHODS, Method, RunSpec
from spt.store import RunFolder, Store


def finished_run(spec: RunSpec, respond: Callable[[Method, int, Example], str]) -> RunFolder:
    """A run of the items of `spec` with these responses."""
    benchmark = for_spec(spec)
    items = list(benchmark.load().test)[: spec.items]
    folder = Store().create(spec)
    folder.append(RunStarted(run=folder.id))
    scores, answers = {}, {}
    for method in METHODS:
        rows = tuple(
            score(benchmark.format, item, respond(method, i, item), "eos", (0.0,) * len(item.options))
            for i, item in enumerate(items)
        )
        folder.append(Predictions(method, rows))
        scores[method], answers[method] = MethodScores.of(rows, benchmark.closed), rows
        folder.append(MethodScored(method=method, scores=scores[method]))
    analysis = analyse(answers, benchmark.closed, spec.arms)
    folder.append(RunFinished(result=result(spec, scores).model_copy(update={"analysis": analysis})))
    return folder


def result(spec: RunSpec, scores: dict[Method, MethodScores]) -> Result:
    return Result(
        schema=SCHEMA, run=spec.run_id, spec=spec, methods=scores,
        tuning=TuningSummary(steps=1, seconds=1, trainable_parameters=1, trainable_share=0.1, final_loss=0.25),
        model={"name": "m", "precision": "fp32"}, benchmark={"name": spec.benchmark}, device="CPU",
        seconds={"load": 1.0}, peak_memory_mb=10.0, versions={"torch": "2"},
    )  # fmt: skip

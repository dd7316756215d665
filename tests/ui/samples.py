"""A finished run folder with hostile and ordinary answers, written through the store; no model is loaded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from spt import events as ev
from spt.metrics import MethodScores, Prediction, Rate
from spt.spec import METHODS, Method, RunSpec
from spt.store import RunFolder, Store
from spt.ui.access import OPERATOR, Visitor

HOSTILE = "<script>alert(1)</script><img src=x onerror=\"document.title='hacked'\"> ${alert(2)} {{value}} `x`"


def prediction(number: int, method: Method, closed: bool = False) -> Prediction:
    """Zero-shot knows half and writes none of it in form; few-shot and soft prompt write all in form."""
    in_format, knows = method != "zero_shot", number % 2 == 0
    options = ("A. Oslo", "B. Rome", "C. Lima", "D. Bern") if closed else ()
    response = HOSTILE if not in_format else "C. Lima" if closed else "#### Rome"
    return Prediction(
        id=f"item{number}",
        question=f"Question {number}? {HOSTILE}",
        options=options,
        topic="Europe",
        target="B. Rome" if closed else "#### Rome",
        answer="Rome",
        response=response,
        in_format=in_format,
        knows=knows,
        exact_match=in_format and knows,
        stopped_by="eos",
    )


def predictions(items: int = 45, closed: bool = False) -> dict[Method, list[Prediction]]:
    return {method: [prediction(i, method, closed) for i in range(items)] for method in METHODS}


def scores(items: int = 45, closed: bool = False) -> dict[Method, MethodScores]:
    return {method: MethodScores.of(rows, closed) for method, rows in predictions(items, closed).items()}


def losses(steps: int) -> list[ev.StepLoss]:
    return [
        ev.StepLoss(step=s, loss=4 / s, learning_rate=0.01, grad_norm=1.0, seconds=0.1) for s in range(1, steps + 1)
    ]


def probes(*steps: int) -> list[ev.Probe]:
    """The answer to item0 changes at step 10 and stays."""
    answers = [
        ev.ProbeAnswer(id="item0", response=HOSTILE if s < 10 else "#### Rome", in_format=s >= 10, right=True)
        for s in steps
    ]
    return [
        ev.Probe(
            step=step,
            format=Rate.of([a.in_format]),
            knowledge=Rate.of([True]),
            exact_match=Rate.of([a.in_format]),
            answers=(a,),
        )
        for step, a in zip(steps, answers, strict=True)
    ]


def request(visitor: Visitor = OPERATOR) -> Any:
    """As the gate passes it on."""
    return SimpleNamespace(state=SimpleNamespace(visitor=visitor))


def finished(store: Store, closed: bool = False) -> RunFolder:
    """A finished run of 45 items."""
    spec = RunSpec(benchmark="capitals-mc" if closed else "capitals", steps=20)
    folder = store.create(spec)
    folder.append(ev.RunStarted(run=spec.run_id))
    folder.append(ev.PhaseStarted(phase="load"))
    folder.append(
        ev.ModelLoaded(
            model="bundled",
            parameters=134_515_008,
            device="CPU, 2 threads",
            precision="fp32",
            chat_template=False,
            embedding_rms=0.13,
            seconds=1.0,
        )
    )
    first = prediction(0, "zero_shot", closed)
    question = ev.Question(id=first.id, question=first.question, options=first.options, target=first.target)
    folder.append(
        ev.DataLoaded(
            benchmark=spec.benchmark, format="x", closed=closed, train=100, test=60, items=45, probed=(question,)
        )
    )
    for event in (*losses(20), *probes(0, 10, 20)):
        folder.append(event)
    found = scores(closed=closed)
    for method, rows in predictions(closed=closed).items():
        folder.append(ev.Predictions(method, tuple(rows)))
        folder.append(ev.MethodScored(method=method, scores=found[method]))
    tuning = ev.TuningSummary(
        steps=20, seconds=96.1, trainable_parameters=5760, trainable_share=5760 / 134_515_008, final_loss=0.2
    )
    result = ev.Result(
        schema=1,
        run=spec.run_id,
        spec=spec,
        methods=found,
        tuning=tuning,
        model={},
        benchmark={},
        device="CPU",
        seconds={"load": 1.0, "tuning": 96.1},
        peak_memory_mb=1710,
        versions={},
    )
    folder.append(ev.RunFinished(result=result))
    return folder

"""A finished run with all that a run can have, without a model: curves, seeds, controls, a judge, prompt files."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
from safetensors.numpy import save

from spt.analysis import analyse
from spt.benchmarks import for_spec
from spt.benchmarks.base import Example
from spt.events import (
    DataLoaded,
    MethodScored,
    ModelLoaded,
    Predictions,
    Probe,
    ProbeScores,
    PromptFiles,
    RunFinished,
    RunStarted,
    StepLoss,
    TuningSummary,
)
from spt.metrics import Agreement, JudgeInfo, JudgeScores, MethodScores, Rate, Verdict
from spt.scoring import score
from spt.spec import TUNED_ITEMS, Method, RunSpec
from spt.store import RunFolder, Store
from tests.finished import result

Respond = Callable[[Method, int, Example], str]


def plainly(method: Method, number: int, item: Example) -> str:
    """Right in the form by tuned prompts, in prose by the baselines, and wrong at every third item."""
    answer = item.answer if number % 3 else "Atlantis"
    if item.options:
        return item.options[number % len(item.options)] if number % 3 else item.target
    return f"It is {answer}, I think." if method in ("zero_shot", "few_shot") else f"#### {answer}"


def whole_run(spec: RunSpec, respond: Respond = plainly, judged: bool = False, curves: bool = True) -> RunFolder:
    """A run of `spec.items` items with these responses; the tuned items are rows of the training set."""
    benchmark = for_spec(spec)
    split = benchmark.load()
    folder = Store().create(spec)
    folder.append(RunStarted(run=folder.id, time=1.7e9))
    folder.append(
        ModelLoaded(
            model="m",
            parameters=1000,
            device="CPU",
            precision="fp32",
            chat_template=False,
            embedding_rms=0.1,
            seconds=1,
        )
    )
    further = [arm.name for arm in spec.arms[1:]]
    items = list(split.test)[: spec.items]
    folder.append(
        DataLoaded(
            benchmark=spec.benchmark, format=benchmark.format.name, closed=benchmark.closed, train=len(split.train),
            test=len(split.test), items=len(items),
        )
    )  # fmt: skip
    for step in range(1, spec.steps + 1) if curves else ():
        arms = dict.fromkeys(further, 3 / step + 0.5)
        folder.append(StepLoss(step=step, loss=3 / step, learning_rate=0.1, grad_norm=1, seconds=1, arms=arms))
    for step in range(0, spec.steps + 1, spec.probe_every) if curves and spec.probe_every else ():
        rate = Rate.of(i < 8 * step / spec.steps for i in range(8))
        scores = {"format": rate, "knowledge": rate, "exact_match": rate}
        folder.append(Probe(step=step, answers=(), arms={name: ProbeScores(**scores) for name in further}, **scores))
    methods, answers = {}, {}
    for method in spec.methods:
        rows = tuple(
            score(
                benchmark.format,
                item,
                respond(method, i, item),
                "eos",
                tuple(-1.5 - j for j in range(len(item.options))),
            )
            for i, item in enumerate(list(split.train)[: spec.items] if method == TUNED_ITEMS else items)
        )
        folder.append(Predictions(method, rows))
        answers[method], methods[method] = rows, MethodScores.of(rows, benchmark.closed)
        folder.append(MethodScored(method=method, scores=methods[method]))
        if judged:
            verdicts = [
                Verdict(
                    id=r.id, key="k", correct=bool(i % 2) if i else None, in_format=True if i else None, reply="=1+1"
                )
                for i, r in enumerate(rows)
            ]
            folder.write_verdicts(method, verdicts)
            rate, agreement = (
                Rate.of(bool(v.correct) for v in verdicts),
                Agreement(kappa=0.5, agree=0.8, n=len(rows) - 1),
            )
            methods[method] = methods[method].model_copy(
                update={
                    "judge": JudgeScores(
                        knowledge=rate, in_format=rate, exact=rate, unparsed=1,
                        agreement_knowledge=agreement, agreement_format=agreement,
                    )
                }
            )  # fmt: skip
    for arm in spec.arms:
        folder.append(PromptFiles(prompt_files(spec), arm.name))
    if "lora" in spec.method:
        folder.append(PromptFiles(prompt_files(spec), "lora"))
    judge = (
        JudgeInfo(model="judge/model", prompt_version=1, prompt_sha256="ab" * 32, items=8, time=0) if judged else None
    )
    lora = TuningSummary(
        steps=spec.steps, seconds=81, trainable_parameters=2_442_240, trainable_share=0.018, final_loss=0.3
    )  # fmt: skip
    update = {
        "analysis": analyse(answers, benchmark.closed, spec.arms), "judge": judge, "lora": lora if spec.method else None
    }  # fmt: skip
    folder.append(RunFinished(result=result(spec, methods).model_copy(update=update)))
    return folder


def prompt_files(spec: RunSpec) -> dict[str, bytes]:
    provenance = {
        "model": spec.model, "revision": None, "benchmark": spec.benchmark, "position": "[BOS] [S] question",
        "chat_template": False, "spec": spec.model_dump(), "versions": {},
    }  # fmt: skip
    return {
        "adapter_config.json": json.dumps({"base_model_name_or_path": spec.model, "revision": None}).encode(),
        "adapter_model.safetensors": save({"prompt_embeddings": np.zeros((2, 4), np.float32)}),
        "spt.json": json.dumps(provenance).encode(),
    }

"""Calibrate the learning rate: soft-prompt scores by model, benchmark, rate and seed.

    python -m perf.calibrate                       # the whole grid; goes on where it was cut off
    python -m perf.calibrate --rates 0.1 --models bundled --benchmarks capitals

One line a run is appended to docs/calibration.jsonl, and docs/calibration.md is written anew from all lines after each.
Runs are those of `python -m spt run` without probes; zero- and few-shot answers, which no rate changes, are made once
a model, benchmark and seed.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from pathlib import Path
from statistics import mean

import typer

from spt import experiment
from spt.events import Predictions, ResumeState, RunFinished, StepLoss
from spt.metrics import Prediction
from spt.spec import Method, RunSpec

DOCS = Path(__file__).parent.parent / "docs"
LINES = DOCS / "calibration.jsonl"
MODELS = ("bundled", "gemma-3-270m")
BENCHMARKS = ("capitals", "trivia", "capitals-mc", "arithmetic")
RATES = (0.03, 0.1, 0.3)
SEEDS = (0, 1, 2)
METRICS = ("format", "knowledge", "exact_match")

Baselines = dict[Method, tuple[Prediction, ...]]


def main(
    models: str = ",".join(MODELS),
    benchmarks: str = ",".join(BENCHMARKS),
    rates: str = ",".join(map(str, RATES)),
    seeds: str = ",".join(map(str, SEEDS)),
    items: int = 64,
) -> None:
    """Run what is missing of the grid."""
    cache = experiment.ModelCache()
    baselines: dict[tuple[str, str, int], Baselines] = {}
    grid = itertools.product(models.split(","), map(int, seeds.split(",")), benchmarks.split(","), rates.split(","))
    for model, seed, benchmark, rate in grid:
        spec = RunSpec(
            model=model, benchmark=benchmark, learning_rate=float(rate), seed=seed, items=items, probe_every=0
        )
        if spec.run_id in {line["run"] for line in read()}:
            continue
        key = (model, benchmark, seed)
        line, baselines[key] = run(spec, baselines.get(key, {}), cache)
        with LINES.open("a") as out:
            out.write(json.dumps(line) + "\n")
        print(line, flush=True)
        (DOCS / "calibration.md").write_text(table(read()))


def run(spec: RunSpec, baselines: Baselines, cache: experiment.ModelCache) -> tuple[dict[str, object], Baselines]:
    """One run from given zero- and few-shot answers; returns its line and those answers."""
    answers: dict[Method, list[Prediction]] = defaultdict(list, {m: list(rows) for m, rows in baselines.items()})
    losses: list[float] = []
    for message in experiment.run(spec, ResumeState(predictions=baselines), cache):
        if isinstance(message, Predictions):
            answers[message.method] += message.rows
        elif isinstance(message, StepLoss):
            losses.append(message.loss)
        elif isinstance(message, RunFinished):
            result = message.result
    letters = sorted((p.response[:1] for p in answers["soft_prompt"]), key=str)
    line: dict[str, object] = {
        "run": spec.run_id,
        "model": spec.model,
        "benchmark": spec.benchmark,
        "rate": spec.learning_rate,
        "seed": spec.seed,
        "items": spec.items,
        "chat_template": result.model["chat_template"],
        "loss": round(mean(losses[-10:]), 4),
        "most_common_first_letter": round(max(letters.count(x) for x in set(letters)) / len(letters), 3),
    }
    for method, scores in result.methods.items():
        line |= {f"{method}.{metric}": round(getattr(scores, metric).rate, 4) for metric in METRICS}
    return line, {m: tuple(answers[m]) for m in ("zero_shot", "few_shot")}


def read() -> list[dict]:
    """All lines so far."""
    return [json.loads(line) for line in LINES.read_text().splitlines()] if LINES.exists() else []


def table(lines: list[dict]) -> str:
    """The page: one row a model, benchmark and rate, with the mean over seeds and its range."""
    groups: dict[tuple[str, str, float], list[dict]] = defaultdict(list)
    for line in lines:
        groups[line["model"], line["benchmark"], line["rate"]].append(line)
    rows = [
        "# Calibration of the learning rate",
        "",
        "Made by `python -m perf.calibrate`, which goes on where it was cut off; the lines behind it are in "
        "`calibration.jsonl`.",
        "Rates are in units of the RMS of the model's embeddings; 80 steps × 8 rows, 10 vectors, chat template auto.",
        "Percent, mean over seeds (lowest–highest). *Loss*: mean of the last ten steps, nats a token. *One letter*: "
        "share of the soft-prompt answers that begin with the commonest character: on multiple choice it tells a "
        "prompt that has settled on one option from one that answers.",
        "Rows with fewer than three seeds are unfinished; the command above completes them.",
        "",
        "| model | benchmark | rate | seeds | loss | zero-shot F / K / E | few-shot F / K / E | soft format | "
        "soft knowledge | soft exact match | one letter |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (model, benchmark, rate), group in sorted(groups.items()):
        base = [
            " / ".join(f"{100 * mean(x[f'{method}.{metric}'] for x in group):.0f}" for metric in METRICS)
            for method in ("zero_shot", "few_shot")
        ]
        soft = [spread([100 * x[f"soft_prompt.{k}"] for x in group]) for k in METRICS]
        letter = spread([100 * x["most_common_first_letter"] for x in group]) if benchmark.endswith("-mc") else "–"
        loss = f"{mean(x['loss'] for x in group):.2f}"
        rows.append(f"| {' | '.join([model, benchmark, str(rate), str(len(group)), loss, *base, *soft, letter])} |")
    return "\n".join(rows) + "\n"


def spread(values: list[float]) -> str:
    return f"{mean(values):.0f} ({min(values):.0f}–{max(values):.0f})"


if __name__ == "__main__":
    typer.run(main)

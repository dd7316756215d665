"""A finished run as one HTML file that can be mailed, kept and printed. Imports no torch.

It holds everything it shows: no script, no font, no picture from elsewhere; a content policy in its head forbids them.
The template is `assets/report.html.j2`, with autoescape on: text of a benchmark or a model can become no markup.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from spt import report_charts as charts
from spt.analysis import METRICS, REFERENCE, Analysis, Comparison, Metric, analyse
from spt.events import Result
from spt.findings import percent
from spt.metrics import MethodScores, Prediction, Rate, Verdict
from spt.spec import LORA, METHODS, TUNED_ITEMS, Method, RunSpec, UserError
from spt.store import RunFolder
from spt.ui.scores import headline
from spt.view import Levels, RunView, count, duration, method_title, probed_levels

ASSETS = Path(__file__).resolve().parents[1] / "assets"
MOST_ITEMS = 200  # answers side by side; the ZIP has all
LONGEST_ANSWER, LONGEST_QUESTION, LONGEST_OPTION = 700, 1500, 160  # characters that are shown
TITLES: dict[Metric, str] = {"format": "Format following", "knowledge": "Knowledge", "exact_match": "Exact match"}
BY = {
    "likelihood": "the option of highest log-likelihood is the right one",
    "rule": "the reference or an alias occurs in the answer, by a written rule",
    "judge": "a judge model says that the answer is right",
}
ENDS = {"length": "cut off at the length limit", "loop": "stopped: repeats itself"}
TONES = {"good": ("✓", "good"), "bad": ("!", "mind this"), "neutral": ("·", "note")}  # sign, and the word for it


def html_report(folder: RunFolder) -> str:
    """The report of a finished run. Raises UserError for any other, or where its answers are gone."""
    result = folder.result()
    if result is None:
        raise UserError(f"Run {folder.id} is not finished, so there is nothing to report yet.")
    methods = [method for method in folder.spec.methods if method in result.methods]
    answers = {method: rows for method in methods if (rows := folder.predictions(method))}
    if not answers:
        raise UserError(f"The answers of run {folder.id} are gone: run it anew with --again.")
    view = RunView.of(folder.events(), folder.spec)
    closed = any(row.options for rows in answers.values() for row in rows[:1])
    analysis = result.analysis or analyse(answers, closed, folder.spec.arms)  # None in a run of an older version
    judged = {method: folder.verdicts(method) for method in (*METHODS, LORA)} if result.judge else {}
    items = _items(answers, judged)
    return _template().render(
        run=folder.id,
        spec=folder.spec,
        result=result,
        analysis=analysis,
        title=f"{short(folder.spec.model)} on {short(folder.spec.benchmark)}",
        lead=headline({method: _as_shown(scores) for method, scores in result.methods.items()}),
        date="" if view.started is None else _date(view.started),
        items=items[:MOST_ITEMS],
        total=len(items),
        closed=closed,
        methods=methods,
        titles=TITLES,
        metrics=METRICS,
        by=BY[next(iter(result.methods.values())).shown.knowledge_by],
        tones=TONES,
        ends=ENDS,
        label=lambda method: label(method, folder.spec.shots),
        **_charts(view, result, analysis, probed_levels(answers, view.data)),
        pairs=_pairs(analysis),
        reach=charts.reach(bound for each in analysis.equivalence for bound in (each.result.low, each.result.high)),
        facts=_facts(folder.spec, result, view),
        command=folder.spec.command(),
        main=METHODS,
        tuned=TUNED_ITEMS,
    )


@cache
def _template() -> Any:
    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": percent, "interval": interval, "points": points, "p": p_value, "count": count, "clip": clip,
        "tax": lambda scores: points(tax(scores)), "bar": charts.range_bar, "colour": charts.colour,
        "key": charts.key, "forest": lambda r, reach: charts.forest(r.difference, r.low, r.high, r.margin, reach),
    }  # fmt: skip
    environment.globals |= {
        "LONGEST_ANSWER": LONGEST_ANSWER, "LONGEST_QUESTION": LONGEST_QUESTION, "LONGEST_OPTION": LONGEST_OPTION,
    }  # fmt: skip
    return environment.get_template("report.html.j2")


# ---- wording


def label(method: Method, shots: int) -> str:
    """How a method is called in a report."""
    return f"{shots}-shot" if method == "few_shot" else method_title(method)


def interval(rate: Rate) -> str:
    """`51–72 %`."""
    return f"{rate.low * 100:.0f}–{rate.high * 100:.0f}\u202f%"


def points(share: float, sign: bool = False) -> str:
    """A difference of shares in percentage points, with a real minus."""
    value = round(share * 100)
    return f"{'−' if value < 0 else '+' if sign and value else ''}{abs(value)}"


def p_value(p: float) -> str:
    if p < 0.001:
        return "< 0.001"
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def tax(scores: MethodScores) -> float:
    """Knowledge, as it is shown, minus exact match."""
    return scores.shown.knowledge.rate - scores.shown.exact_match.rate


def _as_shown(scores: MethodScores) -> MethodScores:
    """With the judge's knowledge, where there was one: what the table says, the lead says too."""
    return scores.model_copy(update={"knowledge": scores.shown.knowledge, "judge": None})


def clip(text: str, most: int) -> tuple[str, int]:
    """The beginning of a text, and how many characters are left out; a few more are shown rather than left out."""
    return (text, 0) if len(text) <= most + 40 else (text[:most].rstrip(), len(text) - most)


def short(name: str) -> str:
    """The last part of a hub id or path: a report that is mailed need not show where someone keeps their files."""
    return name.rstrip("/\\").replace("\\", "/").split("/")[-1] or name


def _date(seconds: float) -> str:
    day = time.gmtime(seconds)
    return f"{day.tm_mday} {time.strftime('%B %Y', day)}"


def _time(seconds: float) -> str:
    return duration(seconds).replace(" ", "\u00a0")


# ---- parts


@dataclass(frozen=True)
class Item:
    """One test item with the answers of the three methods and of LoRA, and what a judge said of them, if one did."""

    any: Prediction
    by: Mapping[Method, Prediction]
    verdicts: Mapping[Method, Verdict]


def _items(answers: Mapping[Method, Sequence[Prediction]], judged: Mapping[Method, Sequence[Verdict]]) -> list[Item]:
    verdicts: dict[str, dict[Method, Verdict]] = {}
    for method, given in judged.items():
        for verdict in given:
            verdicts.setdefault(verdict.id, {})[method] = verdict
    by_id: dict[str, dict[Method, Prediction]] = {}
    for method in (*METHODS, LORA):
        for row in answers.get(method, ()):
            by_id.setdefault(row.id, {})[method] = row
    return [Item(next(iter(by.values())), by, verdicts.get(name, {})) for name, by in by_id.items()]


def _charts(view: RunView, result: Result, analysis: Analysis, levels: Levels) -> dict[str, Any]:
    probes, losses, spec = list(view.probes.values()), list(view.losses.values()), result.spec
    panels: list[tuple[str, str, Markup]] = []
    if probes:
        unit = f"% of {count(probes[0].format.n, 'followed item')}"
        for metric, title in TITLES.items():
            panels.append((title, unit, charts.probe_chart(metric, title, probes, levels, spec)))
    if losses:
        panels.append(("Loss", "nats a token", charts.loss_chart(losses, spec)))
    lines = [method for method in METHODS if probes or method == "soft_prompt"]
    further = [arm for arm in spec.arms[1:] if any(arm.name in step.arms for step in losses)]
    legend = [(method, label(method, spec.shots)) for method in lines]
    if any(arm.control is None for arm in further):
        legend.append((next(arm.name for arm in further if arm.control is None), "Further seeds"))
    legend += [(arm.name, method_title(arm.name)) for arm in further if arm.control is not None]
    letters = []
    for name, counts in analysis.letters.items():
        title = "Right answers" if name == REFERENCE else label(name, spec.shots)
        tone = "reference" if name == REFERENCE else charts.colour(name)
        letters.append((title, tone, charts.letter_chart(title, counts)))
    return {"panels": panels, "legend": legend, "letters": letters}


def _pairs(analysis: Analysis) -> list[list[Comparison]]:
    """The comparisons, those of the same two methods together."""
    pairs: dict[tuple[Method, Method], list[Comparison]] = {}
    for each in analysis.comparisons:
        pairs.setdefault((each.a, each.b), []).append(each)
    return list(pairs.values())


def _facts(spec: RunSpec, result: Result, view: RunView) -> list[tuple[str, str]]:
    """What the numbers were made with. Parts that an older or broken run lacks are left out."""
    model, tuning, loaded, data = result.model, result.tuning, view.model, view.data
    facts: list[tuple[str, Any]] = [
        ("Model", model.get("name") or spec.model),
        ("Revision", model.get("revision")),
        ("Parameters", f"{model['parameters']:,}" if model.get("parameters") else None),
        ("Precision", model.get("precision")),
        ("Chat template", {True: "on", False: "off"}.get(model.get("chat_template"))),  # type: ignore[arg-type]
        ("Benchmark", result.benchmark.get("name")),
        ("Answer form", result.benchmark.get("format")),
        ("Rows", f"{data.train:,} train, {data.test:,} test, {data.items:,} scored" if data else None),
        ("Rows' fingerprint", data.fingerprint[:16] if data else None),
        ("Held-out topic", spec.holdout_topic),
        ("Soft prompt", f"{count(spec.virtual_tokens, 'vector')}, {tuning.trainable_parameters:,} trained numbers"),
        ("Share of the model", f"{tuning.trainable_share * 100:.2g}\u202f%"),
        ("LoRA", f"{result.lora.trainable_parameters:,} trained numbers, {_time(result.lora.seconds)}"
         if result.lora else None),
        ("Tuning", f"{count(tuning.steps, 'step')} of {count(spec.batch_size, 'row')}, {_time(tuning.seconds)}"),
        ("Learning rate", f"{spec.learning_rate:g}{f' × RMS {loaded.embedding_rms:.3g}' if loaded else ''}"),
        ("Seed", f"{spec.seed}" if spec.seeds == 1 else f"{spec.seed} to {spec.seed + spec.seeds - 1}"),
        ("Final loss", f"{tuning.final_loss:.3f}"),
        ("Device", result.device),
        ("Whole run", _time(sum(result.seconds.values()))),
        ("Peak memory", f"{result.peak_memory_mb:,.0f} MB"),
        ("Judge", result.judge.model if result.judge else None),
        ("Judge's prompt", f"version {result.judge.prompt_version}, {result.judge.prompt_sha256[:12]}"
         if result.judge else None),
        ("Versions", ", ".join(f"{name} {version}" for name, version in result.versions.items())),
    ]  # fmt: skip
    return [(name, str(value)) for name, value in facts if value]

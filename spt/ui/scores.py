"""The result in words, and the strip of facts under its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from spt.events import ModelLoaded, Result
from spt.findings import FEW, SMALL_TAX, percent, too_few
from spt.metrics import MethodScores, Prediction
from spt.spec import METHODS, Method, RunSpec
from spt.ui.rates import tax
from spt.ui.text import esc, points
from spt.view import count, duration

MAX_ROWS = 1500  # answers of a run that a page carries for download; of more, the run folder has them


def headline(scores: Mapping[Method, MethodScores]) -> str:
    """The result in one or two plain sentences; empty before the zero-shot baseline is scored."""
    zero, few, soft = (scores.get(method) for method in METHODS)
    if zero is None:
        return ""
    known, lost = zero.shown.knowledge, tax(zero)
    score, knows = percent(zero.exact_match.rate), percent(known.rate)
    if zero.format.n < FEW:
        then = f", with the soft prompt {percent(soft.exact_match.rate)}" if soft else ""
        return f"{too_few(zero.format.n)}: zero-shot scored {score}{then}."
    if lost >= SMALL_TAX:
        words = f"Zero-shot scored {score} but knew {knows}: format cost {points(lost)} points."
    elif lost <= -SMALL_TAX:
        # Closed questions only: a written answer can hit where the ranking of the options misses.
        words = f"Zero-shot scored {score}, more than the {knows} it ranked right: format was not what held it back."
    elif few is not None and few.shown.knowledge.low > known.high:
        # Then a small tax says nothing of format: the zero-shot answers never came to the point.
        more_known = percent(few.shown.knowledge.rate)
        words = f"Zero-shot scored {score} and knew {knows}, with examples the same model knew {more_known}."
    elif not zero.format.rate and not known.rate:
        words = f"Zero-shot scored {score}: its answers were neither in format nor right."
    else:
        words = f"Zero-shot scored {score} and knew {knows}: format cost almost nothing."
    if soft is None:
        return words
    left = f", {points(tax(soft))} points below what it knows" if tax(soft) >= SMALL_TAX else ""
    more = ""
    if soft.shown.knowledge.low > known.high:
        more = f" Right answers, in any form, rose from {knows} to {percent(soft.shown.knowledge.rate)}."
    return (
        f"{words} With the soft prompt {percent(soft.format.rate)} of answers are in format "
        f"and the score is {percent(soft.exact_match.rate)}{left}.{more}"
    )


def _download(name: str, shown: str, text: str) -> str:
    """A link that carries its file in the page itself, so that no folder has to be served."""
    kind = "application/json" if name.endswith(".json") else "application/jsonl"
    return f'<a download="{esc(name)}" href="data:{kind};charset=utf-8,{quote(text)}">{esc(shown)}</a>'


def downloads(result: Result, predictions: Mapping[Method, Sequence[Prediction]]) -> str:
    """Links to the result and to the answers of each method, one a line as in the run folder."""
    links = [_download(f"{result.run}.json", "result.json", result.model_dump_json(by_alias=True, indent=1))]
    if sum(map(len, predictions.values())) <= MAX_ROWS:
        for method in result.spec.methods:
            if rows := predictions.get(method):
                lines = "".join(f"{row.model_dump_json()}\n" for row in rows)
                links.append(_download(f"{result.run}-{method}.jsonl", f"{method}.jsonl", lines))
    return ", ".join(links)


def facts(
    spec: RunSpec,
    loaded: ModelLoaded | None,
    result: Result | None,
    predictions: Mapping[Method, Sequence[Prediction]] | None = None,
) -> str:
    """What the numbers were made with: model, device, precision, and once finished the cost of tuning."""
    pairs: list[tuple[str, str]] = []
    if result:
        share = f"{result.tuning.trainable_share * 100:.2g}\u202f%"
        pairs += [
            ("Trained", f"{result.tuning.trainable_parameters:,} numbers, {share} of the model"),
            ("Tuning", f"{count(result.tuning.steps, 'step')} in {duration(result.tuning.seconds)}"),
        ]
        if lora := result.lora:
            share = f"{lora.trainable_share * 100:.2g} % of the model"
            pairs += [
                ("LoRA trained", f"{lora.trainable_parameters:,} numbers, {share}"),
                ("LoRA tuning", f"{count(lora.steps, 'step')} in {duration(lora.seconds)}"),
            ]
        pairs += [
            ("Whole run", duration(sum(result.seconds.values()))),
            ("Peak memory", f"{result.peak_memory_mb / 1024:.1f} GB"),
        ]
    if loaded:
        pairs += [
            ("Device", loaded.device),
            ("Precision", loaded.precision),
            ("Parameters", f"{loaded.parameters / 1e6:,.0f} M"),
            ("Chat template", "on" if loaded.chat_template else "off"),
            ("Learning rate", f"{spec.learning_rate:g} × RMS {loaded.embedding_rms:.3g}"),
        ]
    if not pairs:
        return ""
    cells = "".join(f"<div><dt>{esc(name)}</dt><dd>{esc(value)}</dd></div>" for name, value in pairs)
    if result:
        cells += f"<div><dt>Download</dt><dd>{downloads(result, predictions or {})}</dd></div>"
    return f'<dl class="facts">{cells}</dl>'

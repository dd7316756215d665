"""The result in words, and the strip of facts under its numbers."""

from __future__ import annotations

from collections.abc import Mapping

from spt.events import ModelLoaded, Result
from spt.findings import FEW, SMALL_TAX, percent, too_few
from spt.metrics import MethodScores
from spt.spec import METHODS, Method, RunSpec
from spt.ui.rates import tax
from spt.ui.text import esc, points
from spt.view import count, duration


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


def _link(path: str, shown: str, name: str = "") -> str:
    """A link to a file that `spt.ui.downloads` gives; without a name it opens in a new tab."""
    how = f'download="{esc(name)}"' if name else 'target="_blank" rel="noopener"'
    return f'<a href="{esc(path)}" {how}>{esc(shown)}</a>'  # relative, since a proxy may serve the page under a path


def exports(run: str) -> str:
    """The whole run to look at, to mail and to keep."""
    return f'<span>{_link(f"report/{run}.html", "Report")}{_link(f"export/{run}.zip", "ZIP", f"{run}.zip")}</span>'


def downloads(result: Result) -> str:
    """Links to the result and to the answers of each method, one a line as in the run folder."""
    run = result.run
    links = [_link(f"result/{run}.json", "result.json", f"{run}.json")]
    links += [
        _link(f"answers/{run}/{method}.jsonl", f"{method}.jsonl", f"{run}-{method}.jsonl")
        for method in result.spec.methods
        if method in result.methods
    ]
    return ", ".join(links)


def facts(spec: RunSpec, loaded: ModelLoaded | None, result: Result | None) -> str:
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
        cells += f"<div><dt>Download</dt><dd>{downloads(result)}</dd></div>"
        push = f"python -m spt push {result.run} --repo USER/NAME"
        cells += f"<div><dt>The prompt to the hub, on the command line</dt><dd><code>{esc(push)}</code></dd></div>"
    return f'<dl class="facts">{cells}</dl>'

"""The result in numbers: headline sentence, table of rates, letter histogram and the strip of facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from spt.analysis import first_letter
from spt.events import ModelLoaded, Result
from spt.metrics import MethodScores, Prediction, Rate
from spt.spec import METHODS, Method, RunSpec
from spt.ui.text import METRICS, esc, interval, method_title, percent, points
from spt.view import count, duration

COLOUR: dict[Method, str] = {"zero_shot": "zero", "few_shot": "few", "soft_prompt": "soft"}
BY = {
    "likelihood": "the option of highest likelihood is the right one",
    "rule": "the right answer occurs in the text, by rule",
    "judge": "a judge model says that the text is right",
}
MAX_ROWS = 500  # answers of a method that a page carries for download; of more, the run folder has them
SMALL_TAX = 0.03  # a smaller format tax is called "almost nothing"


def headline(scores: Mapping[Method, MethodScores]) -> str:
    """The result in one or two plain sentences; empty before the zero-shot baseline is scored."""
    zero, few, soft = (scores.get(method) for method in METHODS)
    if zero is None:
        return ""
    score, knows, tax = percent(zero.exact_match.rate), percent(zero.knowledge.rate), zero.format_tax
    if tax >= SMALL_TAX:
        words = f"Zero-shot scored {score} but knew {knows}: format cost {points(tax)} points."
    elif tax <= -SMALL_TAX:
        # Closed questions only: a written answer can hit where the ranking of the options misses.
        words = f"Zero-shot scored {score}, more than the {knows} it ranked right: format was not what held it back."
    elif few is not None and few.knowledge.low > zero.knowledge.high:
        # Then a small tax says nothing of format: the zero-shot answers never came to the point.
        more_known = percent(few.knowledge.rate)
        words = f"Zero-shot scored {score} and knew {knows}, with examples the same model knew {more_known}."
    elif not zero.format.rate and not zero.knowledge.rate:
        words = f"Zero-shot scored {score}: its answers were neither in format nor right."
    else:
        words = f"Zero-shot scored {score} and knew {knows}: format cost almost nothing."
    if soft is None:
        return words
    left = f", {points(soft.format_tax)} points below what it knows" if soft.format_tax >= SMALL_TAX else ""
    more = ""
    if soft.knowledge.low > zero.knowledge.high:
        more = f" Right answers, in any form, rose from {knows} to {percent(soft.knowledge.rate)}."
    return (
        f"{words} With the soft prompt {percent(soft.format.rate)} of answers are in format "
        f"and the score is {percent(soft.exact_match.rate)}{left}.{more}"
    )


def _rate_cell(rate: Rate, title: str) -> str:
    """Number, interval drawn to scale, interval written out."""
    low, high, at = rate.low * 100, rate.high * 100, rate.rate * 100
    return (
        f'<td data-title="{esc(title)}"><b>{percent(rate.rate)}</b>'
        f'<span class="range" aria-hidden="true"><i class="band" style="left:{low:.1f}%;width:{high - low:.1f}%"></i>'
        f'<i class="dot" style="left:{at:.1f}%"></i></span>'
        f"<small>{interval(rate)}</small></td>"
    )


def table(scores: Mapping[Method, MethodScores], shots: int) -> str:
    """Rows are methods, columns metrics. Methods that are not scored yet stay as empty rows, so nothing jumps."""
    rows = []
    for method in METHODS:
        name = f'<th scope="row"><i class="swatch {COLOUR[method]}"></i>{esc(method_title(method, shots))}</th>'
        score = scores.get(method)
        if score is None:
            rows.append(f'<tr class="{COLOUR[method]} pending">{name}' + "<td>–</td>" * 4 + "</tr>")
            continue
        cells = "".join(_rate_cell(getattr(score, key), title) for key, title in METRICS.items())
        unit = "point" if points(score.format_tax) in ("1", "−1") else "points"
        tax = f'<td data-title="Format tax"><b>{points(score.format_tax)}</b> <small>{unit}</small></td>'
        rows.append(f'<tr class="{COLOUR[method]}">{name}{cells}{tax}</tr>')
    heads = "".join(f'<th scope="col">{title}</th>' for title in (*METRICS.values(), "Format tax"))
    notes = ""
    if scores:
        first = next(iter(scores.values()))
        notes = (
            f"{count(first.format.n, 'test item')}, 95 % Wilson intervals. "
            f"Knowledge: {BY[first.knowledge_by]}. Exact match: right and in format. "
            "Format tax: knowledge − exact match."
        )
    return (
        f'<div class="card scores"><table><thead><tr><td></td>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
        f'<p class="note">{notes}</p></div>'
    )


def _download(name: str, shown: str, text: str) -> str:
    """A link that carries its file in the page itself, so that no folder has to be served."""
    kind = "application/json" if name.endswith(".json") else "application/jsonl"
    return f'<a download="{esc(name)}" href="data:{kind};charset=utf-8,{quote(text)}">{esc(shown)}</a>'


def downloads(result: Result, predictions: Mapping[Method, Sequence[Prediction]]) -> str:
    """Links to the result and to the answers of each method, one a line as in the run folder."""
    links = [_download(f"{result.run}.json", "result.json", result.model_dump_json(by_alias=True, indent=1))]
    if all(len(rows) <= MAX_ROWS for rows in predictions.values()):
        for method in METHODS:
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


def letters(predictions: Mapping[Method, Sequence[Prediction]], shots: int) -> str:
    """Closed questions: how often each method begins with each letter. Small models settle on one; this shows it."""
    present = {method: rows for method in METHODS if (rows := predictions.get(method))}
    if not present:
        return ""
    counts = {method: Counter(first_letter(row.response) for row in rows) for method, rows in present.items()}
    most = max(len(row.options) for rows in present.values() for row in rows)
    names = [*"ABCDEFGH"[: max(most, 2)], "other"]
    key = Counter(first_letter(row.target) for row in next(iter(present.values())))
    groups = [("Reference", "ref", key), *((method_title(m, shots), COLOUR[m], c) for m, c in counts.items())]
    blocks = []
    for title, colour, counter in groups:
        total = max(1, sum(counter.values()))
        bars = "".join(
            f'<div class="letter"><span class="stick"><i style="height:{100 * counter[name] / total:.1f}%"></i></span>'
            f"<b>{name}</b><small>{counter[name]}</small></div>"
            for name in names
        )
        top, times = counter.most_common(1)[0]
        settled = colour != "ref" and top != "other" and times / total >= 0.8
        words = f"{percent(times / total)} begin with {top}" if settled else ""
        blocks.append(
            f'<figure class="letters {colour}"><figcaption>{esc(title)}<em>{words}</em></figcaption>'
            f'<div class="sticks">{bars}</div></figure>'
        )
    return (
        '<section class="card"><h3>First letter of the answers</h3><p class="note">A model that cannot tie letters to '
        "options settles on one of them: in format, and at chance.</p>"
        f'<div class="letter-row">{"".join(blocks)}</div></section>'
    )

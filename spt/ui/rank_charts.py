"""The charts of the rankings as Plotly figures: plain dicts, drawn by `assets/charts.js` like those of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spt.findings import percent
from spt.rank_curves import CURVES, Course
from spt.ranking import Average, Order, Ranked, Span
from spt.spec import Method
from spt.ui.charts import Figure
from spt.ui.text import METRICS, benchmark_title, colour, method_title

# Shapes beside colours, for readers who cannot tell these.
_SYMBOLS = {"zero_shot": "circle", "few_shot": "square", "soft_prompt": "diamond"}


def tone(method: Method) -> str:
    """The CSS variable of a method's colour."""
    return {"zero": "--zero", "few": "--few", "soft": "--soft"}.get(colour(method), "--valid")


def _layout(name: str, height: int, **more: Any) -> Figure:
    return {
        "uirevision": name,
        "height": height,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "--sans", "color": "--ink", "size": 14},
        "hoverlabel": {"bgcolor": "--surface", "bordercolor": "--line", "font": {"color": "--ink", "family": "--sans"}},
        "hovermode": "closest",
        "showlegend": False,
        **more,
    }


def _axis(title: str = "", **more: Any) -> Figure:
    return {
        "zeroline": False, "gridcolor": "--line", "linecolor": "--line-strong", "fixedrange": True,
        "title": {"text": title, "standoff": 8, "font": {"size": 13, "color": "--soft-ink"}}, **more,
    }  # fmt: skip


def _heading(text: str, x: float, y: float) -> Figure:
    return {
        "text": text, "x": x, "y": y, "xref": "paper", "yref": "paper", "showarrow": False, "xanchor": "left",
        "yanchor": "bottom", "font": {"size": 15, "color": "--ink"},
    }  # fmt: skip


def scatter(ranked: Ranked, against: str) -> Figure:
    """A panel for each method: base score across, the reference up, the line on which they are the same."""
    orders = ranked.orders
    gap = 0.07
    width = (1 - gap * (len(orders) - 1)) / len(orders)
    tall = (1 - 0.1 * (len(orders) - 1)) / len(orders)  # on a phone they stand one above the other
    layout = _layout(f"scatter {ranked.benchmark} {against}", 330, margin={"l": 56, "r": 10, "t": 40, "b": 50})
    narrow: Figure = {"height": 320 * len(orders), "margin": {"l": 54, "r": 8, "t": 34, "b": 46}}
    data: list[Figure] = []
    heads: list[Figure] = []
    small: list[Figure] = []
    for i, order in enumerate(orders):
        axis = str(i + 1) if i else ""
        left, top = i * (width + gap), 1 - i * (tall + 0.1)
        scale = {"range": [-0.03, 1.03], "tickformat": ".0%", "tickvals": [0, 0.25, 0.5, 0.75, 1]}
        layout[f"xaxis{axis}"] = _axis("Base", domain=[left, min(1, left + width)], anchor=f"y{axis}", **scale)
        layout[f"yaxis{axis}"] = _axis("" if i else "Post-trained", anchor=f"x{axis}", **scale)
        narrow[f"xaxis{axis}"] = {"domain": [0, 1]}
        narrow[f"yaxis{axis}"] = {"domain": [max(0, top - tall), top], "title": {"text": "Post-trained"}}
        heads.append(_heading(f"<b>{method_title(order.method)}</b>", left, 1.02))
        small.append({**heads[-1], "x": 0, "y": top + 0.008})
        axes = {"xaxis": f"x{axis}", "yaxis": f"y{axis}"}
        data.append(
            {
                "type": "scatter", "mode": "lines", "x": [0, 1], "y": [0, 1], "hoverinfo": "skip", **axes,
                "line": {"color": "--line-strong", "width": 1.5, "dash": "dot"},
            }
        )  # fmt: skip
        data.append(
            {
                "type": "scatter", "mode": "markers", **axes, "name": method_title(order.method),
                "x": [score.value for score in order.base],
                "y": [score.value for score in order.reference],
                "text": list(order.twins),
                "marker": {
                    "color": tone(order.method), "size": 12, "opacity": 0.85,
                    "symbol": _SYMBOLS.get(order.method, "triangle-up"), "line": {"color": "--surface", "width": 1},
                },
                "hovertemplate": "<b>%{text}</b><br>base %{x:.1%}, post-trained %{y:.1%}<extra></extra>",
            }
        )  # fmt: skip
    layout["annotations"], narrow["annotations"] = heads, small
    return {
        "data": data, "layout": layout, "narrow": narrow, "label": "Post-trained score against base score, by method",
    }  # fmt: skip


def by_method(averages: Sequence[Average], benchmarks: Sequence[Ranked], what: str) -> Figure:
    """A line for each method: the mean over benchmarks with its interval, and a faint mark for each benchmark.

    `what`: "distance", with the line of chance, or "gap", in points.
    """
    distance = what == "distance"
    factor = 1 if distance else 100
    shown = [average for average in averages if distance or average.gap is not None]
    names = [method_title(average.method) for average in shown]
    data: list[Figure] = []
    for average in shown:
        spans = [
            (benchmark.benchmark, span.value * factor)
            for benchmark in benchmarks
            if (order := benchmark.order(average.method)) and (span := order.distance if distance else order.gap)
        ]
        name = method_title(average.method)
        if len(benchmarks) > 1:
            data.append(
                {
                    "type": "scatter", "mode": "markers", "x": [x for _, x in spans], "y": [name] * len(spans),
                    "text": [benchmark_title(benchmark) for benchmark, _ in spans],
                    "marker": {"color": tone(average.method), "size": 8, "opacity": 0.35},
                    "hovertemplate": "%{text}: %{x:.3g}<extra></extra>",
                }
            )  # fmt: skip
        span = average.distance if distance else average.gap
        assert span is not None
        data.append(_mean(name, average, span, factor))
    most = max((average.pairs for average in shown), default=1)
    layout = _layout(
        what, 90 + 54 * len(shown), margin={"l": 96, "r": 16, "t": 22, "b": 48},
        xaxis=_axis(
            f"Swap distance, of {most:g}" if distance else "Post-trained − base (points)",
            **({"range": [-0.02 * most, most * 1.02]} if distance else {"rangemode": "tozero"}),
        ),
        yaxis=_axis(
            categoryorder="array", categoryarray=names[::-1], showgrid=False, range=[-0.6, len(names) - 0.4],
            ticklabelstandoff=6,
        ),
        shapes=[_rule(shown[0].chance if distance and shown else 0)],
    )  # fmt: skip
    if distance and shown:
        layout["annotations"] = [
            {
                "text": f"chance {shown[0].chance:g}", "x": shown[0].chance, "y": 1, "yref": "paper",
                "showarrow": False, "yanchor": "bottom", "font": {"size": 12.5, "color": "--soft-ink"},
            }
        ]  # fmt: skip
    label = "Swap distance by method" if distance else "Score gap by method"
    return {"data": data, "layout": layout, "narrow": {"margin": {"l": 104}}, "label": label}


def _rule(x: float) -> Figure:
    return {
        "type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "layer": "below",
        "line": {"color": "--soft-ink", "width": 1.5, "dash": "dash"},
    }  # fmt: skip


def _mean(name: str, average: Average, span: Span, factor: int) -> Figure:
    value = span.value * factor
    figure: Figure = {
        "type": "scatter", "mode": "markers", "x": [value], "y": [name],
        "marker": {
            "color": tone(average.method), "size": 15, "symbol": _SYMBOLS.get(average.method, "triangle-up"),
            "line": {"color": "--surface", "width": 1.5},
        },
        "hovertemplate": f"<b>{name}</b>: %{{x:.3g}}<extra></extra>",
    }  # fmt: skip
    if span.low is not None and span.high is not None:
        # The middle of resampled values need not lie around the value itself.
        figure["error_x"] = {
            "type": "data", "symmetric": False, "array": [max(0.0, span.high * factor - value)],
            "arrayminus": [max(0.0, value - span.low * factor)], "color": tone(average.method), "thickness": 2.5,
            "width": 0,
        }  # fmt: skip
        figure["hovertemplate"] = (
            f"<b>{name}</b>: %{{x:.3g}} ({span.low * factor:.3g} to {span.high * factor:.3g})<extra></extra>"
        )
    return figure


def curves(found: Mapping[bool, Course]) -> Figure:
    """A panel for closed- and one for open-ended benchmarks: format as a line, knowledge dashed."""
    gap, number = 0.09, len(found)
    width = (1 - gap * (number - 1)) / max(1, number)
    layout = _layout("curves", 330, margin={"l": 52, "r": 12, "t": 40, "b": 48}, hovermode="x unified", shapes=[])
    narrow: Figure = {"height": 310 * max(1, number), "margin": {"l": 48, "r": 8, "t": 34, "b": 44}}
    data: list[Figure] = []
    heads: list[Figure] = []
    small: list[Figure] = []
    for i, (closed, course) in enumerate(found.items()):
        axis = str(i + 1) if i else ""
        left, top = i * (width + gap), 1 - i * 0.56
        last = course.steps[-1]
        layout[f"xaxis{axis}"] = _axis(
            "Tuning step", domain=[left, min(1, left + width)], anchor=f"y{axis}", range=[0, last * 1.02],
            showgrid=False,
        )  # fmt: skip
        layout[f"yaxis{axis}"] = _axis(
            anchor=f"x{axis}", range=[-0.03, 1.05], tickformat=".0%", tickvals=[0, 0.25, 0.5, 0.75, 1]
        )
        narrow[f"xaxis{axis}"] = {"domain": [0, 1]}
        narrow[f"yaxis{axis}"] = {"domain": [max(0, top - (0.42 if number > 1 else 1)), top]}
        head = f"<b>{'Closed-ended' if closed else 'Open-ended'}</b>"
        heads.append(_heading(head, left, 1.02))
        small.append({**heads[-1], "x": 0, "y": top + 0.008})
        axes = {"xaxis": f"x{axis}", "yaxis": f"y{axis}"}
        for name in CURVES:
            data += _curve(course, name, axes)
    layout["annotations"], narrow["annotations"] = heads, small
    return {
        "data": data, "layout": layout, "narrow": narrow,
        "label": "Format and knowledge by tuning step, mean over models",
    }  # fmt: skip


def _curve(course: Course, name: str, axes: Figure) -> list[Figure]:
    curve, steps = getattr(course, name), list(course.steps)
    band: list[Figure] = []
    if curve.low:
        band = [
            {
                "type": "scatter", "mode": "lines", "fill": "toself", "hoverinfo": "skip", "line": {"width": 0}, **axes,
                "opacity": 0.16, "fillcolor": "--soft" if name == "format" else "--ink",
                "x": steps + steps[::-1], "y": [*curve.high, *curve.low[::-1]],
            }
        ]  # fmt: skip
    line = {"color": "--soft", "width": 3.5} if name == "format" else {"color": "--ink", "width": 3, "dash": "dash"}
    title = METRICS[name]
    return [
        *band,
        {
            "type": "scatter", "mode": "lines", "name": title, "x": steps, "y": list(curve.mean), "line": line, **axes,
            "hovertemplate": "%{y:.0%}",
        },
    ]  # fmt: skip


def spoken(order: Order) -> str:
    """An order in words, for readers who cannot see the picture."""
    pairs = zip(order.twins, order.base, order.reference, strict=True)
    return "; ".join(f"{name}: base {percent(b.value)}, post-trained {percent(r.value)}" for name, b, r in pairs)

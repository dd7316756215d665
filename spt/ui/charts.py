"""The two live charts as Plotly figures: plain dicts, drawn in place by `assets/charts.js`.

Colours are names (`--soft`), not values: the browser looks them up in the page's CSS, so that one palette serves
light and dark, tables and charts. A figure carries a second layout, `narrow`, for phones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from spt.events import Probe, StepLoss
from spt.metrics import MethodScores, Rate
from spt.spec import Method
from spt.ui.text import METRICS, colour, method_title

Figure = dict[str, Any]
_T = TypeVar("_T")

# How further arms are drawn: thin, so that the real prompt stays the one that is read first. Seeds are one family.
_LINES: dict[str, Figure] = {
    "seed": {"color": "--soft", "width": 1.5},
    "shuffled": {"color": "--shuffled", "width": 2, "dash": "dashdot"},
    "valid": {"color": "--valid", "width": 2, "dash": "2px,5px"},
}

CURVE, BAND = "curve", "band"  # what grows with the steps: so the tour knows what to draw up to one of them
_LEVELS: dict[Method, tuple[str, str]] = {"zero_shot": ("--zero", "dot"), "few_shot": ("--few", "dash")}

MAX_POINTS, MAX_PROBES = 160, 40  # a longer curve is thinned: no chart here shows more, and every update travels
GAP = 0.08  # between the three panels, in shares of the width

# Where tasks of each kind stopped to improve for the authors of the method: their observation, not a result of the run.
SATURATION = (("closed", 40), ("open", 80))
CROWDED = 500  # steps; in a longer run both marks stand too close together for two labels


def thin(values: Sequence[_T], most: int = MAX_POINTS) -> list[_T]:
    """At most about `most` values, evenly picked, the last one always among them."""
    if len(values) <= most:
        return list(values)
    stride = -(-len(values) // most)
    kept = list(values[::stride])
    return kept if kept[-1] is values[-1] else [*kept, values[-1]]


def smooth(values: Sequence[float], weight: float = 0.6) -> list[float]:
    """Exponential moving average without start-up bias (Adam's correction)."""
    total, norm, out = 0.0, 0.0, []
    for value in values:
        total = weight * total + (1 - weight) * value
        norm = weight * norm + (1 - weight)
        out.append(total / norm)
    return out


def _axis(title: str = "", **more: Any) -> Figure:
    axis: Figure = {"zeroline": False, "gridcolor": "--line", "linecolor": "--line-strong", **more}
    axis["title"] = {"text": title, "standoff": 8, "font": {"size": 14, "color": "--soft-ink"}}
    return axis


def _layout(run: str, **more: Any) -> dict[str, Any]:
    return {
        # Same run, same revision: Plotly then keeps the reader's zoom from one update to the next.
        "uirevision": run,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "--sans", "color": "--ink", "size": 15},
        "hoverlabel": {"bgcolor": "--surface", "bordercolor": "--line", "font": {"color": "--ink", "family": "--sans"}},
        "hovermode": "x unified",
        "showlegend": False,
        # What all shapes and annotations share: said once, since a figure travels with every update.
        "template": {
            "layout": {
                "shapedefaults": {"layer": "below"},
                "annotationdefaults": {"showarrow": False, "yanchor": "bottom"},
            }
        },
        **more,
    }


def marks(steps: int, closed: bool, panels: int = 1) -> tuple[list[Figure], list[Figure]]:
    """Lines at the steps where tasks saturate for the authors, and their labels, in every panel; those in range only.

    The one that holds for the run's own kind of task is emphasised. Labels stand above the panel: no curve is there.
    """
    lines: list[Figure] = []
    labels: list[Figure] = []
    for kind, step in SATURATION:
        own = (kind == "closed") == closed
        meaning = f"Step {step}: {kind}-ended tasks saturated for the authors"
        if step > steps:
            continue
        for index in range(panels):
            axis = str(index + 1) if index else ""
            where = {"xref": f"x{axis}", "yref": f"y{axis} domain"}
            line = {"color": "--ink" if own else "--soft-ink", "width": 1.5 if own else 1, "dash": "4px,3px"}
            lines.append({"type": "line", "x0": step, "x1": step, "y0": 0, "y1": 1, "line": line, **where})
            if own or steps <= CROWDED:
                labels.append(
                    {
                        "text": f"<b>{kind}</b>" if own else kind,
                        "hovertext": meaning,
                        "x": step,
                        "y": 1,
                        # At the right edge of the panel a centred label would leave it.
                        "xanchor": "right" if step > 0.9 * steps else "center",
                        "font": {"size": 13, "color": line["color"]},
                        **where,
                    }
                )
    return lines, labels


def _arm(name: Method, **more: Any) -> Figure:
    """A thin curve of a further seed or a control."""
    kind = colour(name)
    return {
        "type": "scatter",
        "mode": "lines",
        "meta": CURVE,
        "name": method_title(name),
        "line": dict(_LINES[kind]),
        "opacity": 0.6 if kind == "seed" else 1,
        **more,
    }


def loss_figure(run: str, losses: Sequence[StepLoss], steps: int, closed: bool = False) -> Figure:
    """Training loss: every step as a faint dot, the moving average as the line."""
    average = {loss.step: value for loss, value in zip(losses, smooth([x.loss for x in losses]), strict=True)}
    shown = thin(losses)
    x = [loss.step for loss in shown]
    arms = list(losses[-1].arms) if losses else []
    data: list[Figure] = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "step",
            "x": x,
            "y": [round(s.loss, 3) for s in shown],
            "marker": {"color": "--soft", "size": 5, "opacity": 0.35},
            "hovertemplate": "%{y:.3f}",
        },
        {
            "type": "scatter",
            "mode": "lines",
            "name": "average",
            "x": x,
            "y": [round(average[s.step], 3) for s in shown],
            "line": {"color": "--soft", "width": 3},
            "hovertemplate": "%{y:.3f}",
        },
    ]
    if arms:
        data[0]["hoverinfo"] = "skip"  # the box would be taller than the chart
    for name in arms:
        values = smooth([step.arms.get(name, step.loss) for step in losses])
        by_step = {step.step: value for step, value in zip(losses, values, strict=True)}
        data.append(_arm(name, x=x, y=[round(by_step[s], 3) for s in x], hovertemplate="%{y:.3f}"))
    data.append(data.pop(1))  # the real prompt over the others
    lines, labels = marks(steps, closed)
    layout = _layout(
        run,
        height=250,
        margin={"l": 60, "r": 12, "t": 26, "b": 48},
        shapes=lines,
        annotations=labels,
        xaxis=_axis("Tuning step", range=[0, max(steps, 1)], showgrid=False),
        yaxis=_axis("Loss (nats a token)", rangemode="tozero"),
    )
    return {"data": data, "layout": layout, "label": f"Training loss over {len(losses)} of {steps} steps"}


def _band(probes: Sequence[Probe], metric: str, axis: str) -> Figure:
    """The 95 % interval of a curve, as one closed outline."""
    rates: list[Rate] = [getattr(p, metric) for p in probes]
    steps = [p.step for p in probes]
    return {
        "type": "scatter",
        "mode": "lines",
        "fill": "toself",
        "meta": BAND,
        "hoverinfo": "skip",
        "opacity": 0.18,
        "x": steps + steps[::-1],
        "y": [round(y, 3) for y in [r.high for r in rates] + [r.low for r in rates][::-1]],
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
        "line": {"width": 0},
        "fillcolor": "--soft",
    }


def _level(method: Method, rate: Rate, steps: int, axis: str, shots: int) -> tuple[Figure, Figure]:
    """A baseline: its line, and its interval as a faint band."""
    tone, dash = _LEVELS[method]
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": method_title(method, shots),
        "x": [0, steps],
        "y": [round(rate.rate, 3)] * 2,
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
        "line": {"color": tone, "width": 3, "dash": dash},
        "hoverinfo": "skip",  # the box of the curve says it at every step
    }
    band = {
        "type": "rect",
        "xref": f"x{axis}",
        "yref": f"y{axis}",
        "x0": 0,
        "x1": steps,
        "y0": round(rate.low, 3),
        "y1": round(rate.high, 3),
        "fillcolor": tone,
        "opacity": 0.08,
        "line": {"width": 0},
    }
    return line, band


def probe_figure(
    run: str,
    probes: Sequence[Probe],
    scores: Mapping[Method, MethodScores],
    steps: int,
    shots: int,
    closed: bool = False,
) -> Figure:
    """Three panels, one a metric: the soft prompt's curve with its interval, and the baselines as level lines.

    `scores` of the baselines are those of the probed items, so that curve and level speak of the same questions.
    """
    probes = thin(probes, MAX_PROBES)
    data: list[Figure] = []
    titles: list[Figure] = []
    shapes: list[Figure] = []
    # Above each panel two lines of text: its title, and below that the labels of the marks.
    layout = _layout(run, height=350, margin={"l": 56, "r": 12, "t": 62, "b": 50})
    narrow: Figure = {"height": 900, "margin": {"l": 52, "r": 8, "t": 58, "b": 46}}
    width = (1 - 2 * GAP) / 3
    for index, (metric, title) in enumerate(METRICS.items()):
        axis = str(index + 1) if index else ""
        left, top = index * (width + GAP), 1 - 0.375 * index
        across, up = [left, min(1.0, left + width)], [top - 0.25, top]
        layout[f"xaxis{axis}"] = _axis(
            "Tuning step", domain=across, anchor=f"y{axis}", range=[-0.02 * steps, steps * 1.02], showgrid=False
        )
        layout[f"yaxis{axis}"] = _axis(
            domain=[0, 1], anchor=f"x{axis}", range=[-0.03, 1.05], tickformat=".0%", tickvals=[0, 0.25, 0.5, 0.75, 1]
        )
        narrow[f"xaxis{axis}"] = {"domain": [0, 1], "title": {"text": "Tuning step" if index == 2 else ""}}
        narrow[f"yaxis{axis}"] = {"domain": up}
        titles.append(
            {
                "text": f"<b>{title}</b>",
                "x": across[0],
                "y": 1,
                "yshift": 22,
                "xref": "paper",
                "yref": "paper",
                "xanchor": "left",
                "font": {"size": 17, "color": "--ink"},
            }
        )
        hover = "%{y:.0%} (%{customdata[0]:.0%}–%{customdata[1]:.0%})"
        for method in _LEVELS:
            if method in scores:
                rate: Rate = getattr(scores[method], metric)
                line, band = _level(method, rate, steps, axis, shots)
                data.append(line)
                shapes.append(band)
                hover += f"<br>{line['name']}: {rate.rate:.0%} ({rate.low:.0%}–{rate.high:.0%})"
        if probes:
            data.append(_band(probes, metric, axis))
            for name in probes[0].arms:
                seen = [probe for probe in probes if name in probe.arms]
                data.append(
                    _arm(
                        name,
                        x=[probe.step for probe in seen],
                        y=[round(getattr(probe.arms[name], metric).rate, 3) for probe in seen],
                        xaxis=f"x{axis}",
                        yaxis=f"y{axis}",
                        hovertemplate="%{y:.0%}",
                    )
                )
            rates = [getattr(p, metric) for p in probes]
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "meta": CURVE,
                    "name": method_title("soft_prompt"),
                    "x": [p.step for p in probes],
                    "y": [round(r.rate, 3) for r in rates],
                    "xaxis": f"x{axis}",
                    "yaxis": f"y{axis}",
                    "line": {"color": "--soft", "width": 3.5},
                    "marker": {"color": "--soft", "size": 8},
                    "customdata": [[round(r.low, 3), round(r.high, 3)] for r in rates],
                    "hovertemplate": f"{hover}<br>n = {rates[0].n}",
                }
            )
    lines, labels = marks(steps, closed, len(METRICS))
    layout["shapes"] = [*shapes, *lines]
    layout["annotations"] = [*titles, *labels]
    # By place in the list of the wide layout: the titles move, the labels stand over their panels by themselves.
    narrow["annotations"] = {
        str(index): {"x": 0, "y": narrow[f"yaxis{index + 1 if index else ''}"]["domain"][1]}
        for index in range(len(titles))
    }
    return {
        "data": data,
        "layout": layout,
        "narrow": narrow,
        "label": "Format following, knowledge and exact match by step",
    }

"""The two live charts as Plotly figures: plain dicts, drawn in place by `assets/charts.js`.

Colours are names (`--soft`), not values: the browser looks them up in the page's CSS, so that one palette serves
light and dark, tables and charts. A figure carries a second layout, `narrow`, for phones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spt.events import Probe, StepLoss
from spt.metrics import MethodScores, Rate
from spt.spec import Method
from spt.ui.text import METRICS, colour, method_title

Figure = dict[str, Any]

# How further arms are drawn: thin, so that the real prompt stays the one that is read first. Seeds are one family.
_LINES: dict[str, Figure] = {
    "seed": {"color": "--soft", "width": 1.5},
    "shuffled": {"color": "--shuffled", "width": 2, "dash": "dashdot"},
    "valid": {"color": "--valid", "width": 2, "dash": "2px,5px"},
}

MAX_POINTS = 600  # a longer curve is thinned: no screen shows more, and every update travels
GAP = 0.06  # between the three panels, in shares of the width


def thin(values: Sequence[StepLoss], most: int = MAX_POINTS) -> list[StepLoss]:
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
    axis["title"] = {"text": title, "standoff": 8, "font": {"size": 13, "color": "--soft-ink"}}
    return axis


def _layout(run: str, **more: Any) -> dict[str, Any]:
    return {
        # Same run, same revision: Plotly then keeps the reader's zoom from one update to the next.
        "uirevision": run,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "--sans", "color": "--ink", "size": 14},
        "hoverlabel": {"bgcolor": "--surface", "bordercolor": "--line", "font": {"color": "--ink", "family": "--sans"}},
        "hovermode": "x unified",
        "showlegend": False,
        **more,
    }


def _arm(name: Method, **more: Any) -> Figure:
    """A thin curve of a further seed or a control."""
    kind = colour(name)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": method_title(name),
        "line": dict(_LINES[kind]),
        "opacity": 0.6 if kind == "seed" else 1,
        **more,
    }


def loss_figure(run: str, losses: Sequence[StepLoss], steps: int) -> Figure:
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
            "y": [round(s.loss, 4) for s in shown],
            "marker": {"color": "--soft", "size": 5, "opacity": 0.35},
            "hovertemplate": "%{y:.3f}",
        },
        {
            "type": "scatter",
            "mode": "lines",
            "name": "average",
            "x": x,
            "y": [round(average[s.step], 4) for s in shown],
            "line": {"color": "--soft", "width": 3},
            "hovertemplate": "%{y:.3f}",
        },
    ]
    if arms:
        data[0]["hoverinfo"] = "skip"  # the box would be taller than the chart
    for name in arms:
        values = smooth([step.arms.get(name, step.loss) for step in losses])
        by_step = {step.step: value for step, value in zip(losses, values, strict=True)}
        data.append(_arm(name, x=x, y=[round(by_step[s], 4) for s in x], hovertemplate="%{y:.3f}"))
    data.append(data.pop(1))  # the real prompt over the others
    layout = _layout(
        run,
        height=230,
        margin={"l": 56, "r": 12, "t": 8, "b": 44},
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
        "hoverinfo": "skip",
        "opacity": 0.18,
        "x": steps + steps[::-1],
        "y": [r.high for r in rates] + [r.low for r in rates][::-1],
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
        "line": {"width": 0},
        "fillcolor": "--soft",
    }


def probe_figure(
    run: str, probes: Sequence[Probe], scores: Mapping[Method, MethodScores], steps: int, shots: int
) -> Figure:
    """Three panels, one a metric: the soft prompt's curve with its interval, and the baselines as level lines.

    `scores` of the baselines are those of the probed items, so that curve and level speak of the same questions.
    """
    data: list[Figure] = []
    annotations: list[Figure] = []
    layout = _layout(run, height=320, margin={"l": 52, "r": 12, "t": 40, "b": 48})
    narrow: Figure = {"height": 840, "margin": {"l": 48, "r": 8, "t": 34, "b": 44}}
    width = (1 - 2 * GAP) / 3
    for index, (metric, title) in enumerate(METRICS.items()):
        axis = str(index + 1) if index else ""
        left, top = index * (width + GAP), 1 - 0.37 * index
        across, up = [left, min(1.0, left + width)], [top - 0.26, top]
        layout[f"xaxis{axis}"] = _axis(
            "Tuning step", domain=across, anchor=f"y{axis}", range=[-0.02 * steps, steps * 1.02], showgrid=False
        )
        layout[f"yaxis{axis}"] = _axis(
            domain=[0, 1], anchor=f"x{axis}", range=[-0.03, 1.05], tickformat=".0%", tickvals=[0, 0.25, 0.5, 0.75, 1]
        )
        narrow[f"xaxis{axis}"] = {"domain": [0, 1], "title": {"text": "Tuning step" if index == 2 else ""}}
        narrow[f"yaxis{axis}"] = {"domain": up}
        annotations.append(
            {
                "text": f"<b>{title}</b>",
                "x": across[0],
                "y": 1.02,
                "xref": "paper",
                "yref": "paper",
                "showarrow": False,
                "xanchor": "left",
                "yanchor": "bottom",
                "font": {"size": 15, "color": "--ink"},
            }
        )
        levels: tuple[tuple[Method, str, str], ...] = (("zero_shot", "dot", "--zero"), ("few_shot", "dash", "--few"))
        for method, dash, tone in levels:
            if method in scores:
                rate: Rate = getattr(scores[method], metric)
                data.append(
                    {
                        "type": "scatter",
                        "mode": "lines",
                        "name": method_title(method, shots),
                        "x": [0, steps],
                        "y": [rate.rate, rate.rate],
                        "xaxis": f"x{axis}",
                        "yaxis": f"y{axis}",
                        "line": {"color": tone, "width": 3, "dash": dash},
                        "hovertemplate": f"%{{y:.0%}} (n = {rate.n})",
                    }
                )
        if probes:
            data.append(_band(probes, metric, axis))
            for name in probes[0].arms:
                seen = [probe for probe in probes if name in probe.arms]
                data.append(
                    _arm(
                        name,
                        x=[probe.step for probe in seen],
                        y=[getattr(probe.arms[name], metric).rate for probe in seen],
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
                    "name": method_title("soft_prompt"),
                    "x": [p.step for p in probes],
                    "y": [r.rate for r in rates],
                    "xaxis": f"x{axis}",
                    "yaxis": f"y{axis}",
                    "line": {"color": "--soft", "width": 3.5},
                    "marker": {"color": "--soft", "size": 8},
                    "customdata": [[r.low, r.high, r.n] for r in rates],
                    "hovertemplate": "%{y:.0%} (%{customdata[0]:.0%}–%{customdata[1]:.0%}, n = %{customdata[2]})",
                }
            )
    layout["annotations"] = annotations
    narrow["annotations"] = [
        {**a, "x": 0, "y": narrow[f"yaxis{i + 1 if i else ''}"]["domain"][1] + 0.008} for i, a in enumerate(annotations)
    ]
    return {
        "data": data,
        "layout": layout,
        "narrow": narrow,
        "label": "Format following, knowledge and exact match by step",
    }

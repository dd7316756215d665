"""The curves of several runs over each other: three metrics and the loss, as one Plotly figure.

Every run has its own colour, dash and marker, none of them a method's: all the curves here are of the soft prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spt.events import Probe, StepLoss
from spt.ui.charts import Figure, _axis, _layout, smooth, thin
from spt.ui.text import METRICS

MAX_POINTS = 200  # of a loss curve: six of them travel together
BANDS = 3  # runs; the intervals of more cover each other
GAP_X, GAP_Y = 0.08, 0.17  # between the panels, in shares of the figure
_STYLES: dict[str, tuple[str, str]] = {  # by letter: dash and marker
    "A": ("solid", "circle"), "B": ("8px,3px", "square"), "C": ("3px,3px", "diamond"), "D": ("12px,3px,3px,3px", "x"),
    "E": ("solid", "triangle-up"), "F": ("5px,4px", "star"),
}  # fmt: skip


@dataclass(frozen=True)
class Curve:
    """What one run has to draw."""

    letter: str
    label: str
    steps: int
    losses: Sequence[StepLoss]
    probes: Sequence[Probe]

    @property
    def tone(self) -> str:
        return f"--run-{self.letter.lower()}"

    def trace(self, panel: int, marked: bool, **more: Any) -> Figure:
        """A line in a panel, in the run's own style."""
        dash, symbol = _STYLES[self.letter]
        name = f"{self.letter} {self.label}"
        return {
            "type": "scatter",
            "mode": "lines+markers" if marked else "lines",
            "name": name if len(name) <= 44 else f"{name[:42]} …",
            "line": {"color": self.tone, "width": 2.5, "dash": dash},
            **({"marker": {"color": self.tone, "size": 8, "symbol": symbol}} if marked else {}),
            **_where(panel),
            **more,
        }


def swatch(letter: str) -> str:
    """A piece of a run's curve, for keys: its colour, dash and marker."""
    dash, symbol = _STYLES[letter]
    shapes = {
        "circle": '<circle cx="17" cy="7" r="4"/>',
        "square": '<rect x="13.5" y="3.5" width="7" height="7"/>',
        "diamond": '<path d="M17 2l5 5-5 5-5-5z"/>',
        "x": '<path d="M13.5 3.5l7 7m0-7l-7 7" class="bare"/>',
        "triangle-up": '<path d="M17 2l4.5 8.5h-9z"/>',
        "star": '<path d="M17 1.5l1.6 3.8 4 .3-3.1 2.6 1 4-3.5-2.2-3.5 2.2 1-4-3.1-2.6 4-.3z"/>',
    }
    dashes = "" if dash == "solid" else f' stroke-dasharray="{dash.replace("px", "")}"'
    return (
        f'<svg class="line run-{letter.lower()}" width="34" height="14" aria-hidden="true">'
        f'<path d="M0 7h34" class="bare"{dashes}/>{shapes[symbol]}</svg>'
    )


def _where(panel: int) -> dict[str, str]:
    name = str(panel + 1) if panel else ""
    return {"xaxis": f"x{name}", "yaxis": f"y{name}"}


def _band(curve: Curve, metric: str, panel: int) -> Figure:
    rates = [getattr(probe, metric) for probe in curve.probes]
    steps = [probe.step for probe in curve.probes]
    return {
        "type": "scatter", "mode": "lines", "fill": "toself", "hoverinfo": "skip", "opacity": 0.1,
        "x": steps + steps[::-1], "y": [r.high for r in rates] + [r.low for r in rates][::-1],
        "line": {"width": 0}, "fillcolor": curve.tone, **_where(panel),
    }  # fmt: skip


def _metric(curve: Curve, metric: str, panel: int) -> Figure:
    rates = [getattr(probe, metric) for probe in curve.probes]
    return curve.trace(
        panel,
        marked=True,
        x=[probe.step for probe in curve.probes],
        y=[rate.rate for rate in rates],
        customdata=[[rate.low, rate.high, rate.n] for rate in rates],
        hovertemplate="%{y:.0%} (%{customdata[0]:.0%}–%{customdata[1]:.0%}, n = %{customdata[2]})",
    )


def _loss(curve: Curve, panel: int) -> Figure:
    average = smooth([loss.loss for loss in curve.losses])
    values = {loss.step: round(value, 4) for loss, value in zip(curve.losses, average, strict=True)}
    steps = [loss.step for loss in thin(curve.losses, MAX_POINTS)]
    return curve.trace(panel, marked=False, x=steps, y=[values[step] for step in steps], hovertemplate="%{y:.3f}")


def figure(name: str, curves: Sequence[Curve]) -> Figure | None:
    """All curves that there are; None for none. `name` stays while the comparison does, and with it the zoom."""
    if not any(curve.losses or curve.probes for curve in curves):
        return None
    steps = max(curve.steps for curve in curves)
    probed = any(curve.probes for curve in curves)
    titles = [*(METRICS.values() if probed else ()), "Training loss, averaged"]
    data: list[Figure] = []
    for panel, metric in enumerate(METRICS if probed else ()):
        drawn = [curve for curve in curves if curve.probes]
        data += [_band(curve, metric, panel) for curve in drawn] if len(drawn) <= BANDS else []
        data += [_metric(curve, metric, panel) for curve in drawn]
    data += [_loss(curve, len(titles) - 1) for curve in curves if curve.losses]
    layout = _layout(name, height=640 if probed else 300, margin={"l": 56, "r": 12, "t": 36, "b": 48})
    narrow: Figure = {"height": 270 * len(titles), "margin": {"l": 48, "r": 8, "t": 32, "b": 44}}
    layout["annotations"], narrow["annotations"] = [], []
    for panel, title in enumerate(titles):
        _panel(layout, narrow, panel, len(titles), title, steps)
    what = "Format following, knowledge, exact match and training loss" if probed else "Training loss"
    label = f"{what} by tuning step, of {' and '.join(curve.letter for curve in curves)}"
    # still: the line of the playback belongs to the charts of its own run.
    return {"data": data, "layout": layout, "narrow": narrow, "label": label, "still": True}


def _panel(layout: Figure, narrow: Figure, panel: int, panels: int, title: str, steps: int) -> None:
    """One panel of a grid with two columns, and of a single column on a phone."""
    column, row = panel % 2, panel // 2
    width, height = ((1 - GAP_X) / 2, (1 - GAP_Y) / 2) if panels > 1 else (1.0, 1.0)
    left, top = column * (width + GAP_X), 1 - row * (height + GAP_Y)
    name, last = str(panel + 1) if panel else "", panel == panels - 1
    below = panel >= panels - 2
    layout[f"xaxis{name}"] = _axis(
        "Tuning step" if below else "", domain=[left, min(1.0, left + width)], anchor=f"y{name}",
        range=[-0.02 * steps, steps * 1.02], showgrid=False,
    )  # fmt: skip
    across: Figure = {"domain": [max(0.0, top - height), top], "anchor": f"x{name}"}
    if last:
        layout[f"yaxis{name}"] = _axis(rangemode="tozero", **across)
    else:
        layout[f"yaxis{name}"] = _axis(
            range=[-0.03, 1.05], tickformat=".0%", tickvals=[0, 0.25, 0.5, 0.75, 1], **across
        )
    share = 1 / panels
    high = 1 - panel * share
    narrow[f"xaxis{name}"] = {"domain": [0, 1], "title": {"text": "Tuning step" if last else ""}}
    narrow[f"yaxis{name}"] = {"domain": [max(0.0, high - share * (0.72 if panels > 1 else 1)), high]}
    words: Figure = {
        "text": f"<b>{title}</b>", "xref": "paper", "yref": "paper", "showarrow": False, "xanchor": "left",
        "yanchor": "bottom", "font": {"size": 15, "color": "--ink"},
    }  # fmt: skip
    layout["annotations"].append({**words, "x": left, "y": top + 0.01})
    narrow["annotations"].append({**words, "x": 0, "y": high + 0.006})

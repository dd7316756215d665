"""The charts of a report, drawn here as small SVGs: no script, no library, legible on paper. Imports no torch.

Colours are classes (`soft` …) that `assets/report.css` gives a tone, the same one a method has on the page. Text from
outside is escaped by `svg`; everything else is a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10

from markupsafe import Markup, escape

from spt.events import Probe, ProbeScores, StepLoss
from spt.metrics import MethodScores, Rate
from spt.spec import Method, RunSpec

WIDTH, HEIGHT = 400, 236  # of a panel, in the units of its view box: about the pixels it is shown at
LEFT, RIGHT, TOP, BOTTOM = 40, 390, 12, 200  # of its plot
MOST = 300  # points of a loss curve; paper shows no more
AVERAGE = 0.6  # weight of the past in the moving average of the loss

Point = tuple[float, float]


def colour(method: Method) -> str:
    """The class that carries a method's colour: further seeds share that of the soft prompt."""
    known = {
        "zero_shot": "zero", "few_shot": "few", "soft_prompt": "soft", "shuffled": "shuffled", "valid-format": "valid",
        "tuned_items": "tuned", "lora": "lora",
    }  # fmt: skip
    return known.get(method, "seed")


def svg(width: float, height: float, label: str, body: Sequence[str], kind: str = "") -> Markup:
    """An image with a text in its place for those who do not see it."""
    return Markup('<svg class="{}" viewBox="0 0 {:g} {:g}" role="img" aria-label="{}">{}</svg>').format(
        kind, width, height, label, Markup("".join(body))
    )


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _path(points: Sequence[Point], name: str, closed: bool = False) -> str:
    line = "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
    return f'<path class="{name}" d="M{line}{"Z" if closed else ""}"/>'


def _text(x: float, y: float, text: object, name: str = "") -> str:
    return f'<text x="{_n(x)}" y="{_n(y)}" class="{name}">{escape(str(text))}</text>'


def ticks(most: float, wanted: int = 4) -> list[float]:
    """Round numbers from 0 to `most` or just above, about `wanted` steps."""
    if most <= 0:
        return [0.0, 1.0]
    unit = 10 ** floor(log10(most / wanted))
    step = next(unit * size for size in (1, 2, 2.5, 5, 10) if most / (unit * size) <= wanted + 1)
    return [round(step * i, 10) for i in range(ceil(most / step - 1e-9) + 1)]


class _Panel:
    """Axes, and the way from values to places."""

    def __init__(self, steps: int, top: float) -> None:
        self.steps, self.top = max(1, steps), top
        self.body: list[str] = []

    def at(self, step: float, value: float) -> Point:
        x = LEFT + (RIGHT - LEFT) * step / self.steps
        return x, BOTTOM - (BOTTOM - TOP) * value / self.top

    def axes(self, values: Sequence[float], written: Sequence[str]) -> None:
        for value, text in zip(values, written, strict=True):
            y = self.at(0, value)[1]
            self.body.append(_path([(LEFT, y), (RIGHT, y)], "axis" if not value else "grid"))
            self.body.append(_text(LEFT - 6, y + 4, text, "end"))
        for step in ticks(self.steps):
            if step <= self.steps:
                self.body.append(_text(self.at(step, 0)[0], BOTTOM + 16, f"{step:g}", "middle"))
        self.body.append(_text((LEFT + RIGHT) / 2, BOTTOM + 32, "tuning step", "middle"))

    def line(self, points: Sequence[Point], name: str) -> None:
        self.body.append(_path([self.at(*point) for point in points], f"line {name}"))

    def dots(self, points: Sequence[Point], name: str, radius: float) -> None:
        for x, y in (self.at(*point) for point in points):
            self.body.append(f'<circle class="{name}" cx="{_n(x)}" cy="{_n(y)}" r="{radius}"/>')

    def band(self, points: Sequence[tuple[float, Rate]], name: str) -> None:
        upper = [self.at(step, rate.high) for step, rate in points]
        lower = [self.at(step, rate.low) for step, rate in reversed(points)]
        self.body.append(_path([*upper, *lower], f"band {name}", closed=True))


def _rate(scores: MethodScores | Probe | ProbeScores, metric: str) -> Rate:
    rate: Rate = getattr(scores.shown if isinstance(scores, MethodScores) else scores, metric)
    return rate


def probe_chart(
    metric: str, title: str, probes: Sequence[Probe], scores: Mapping[Method, MethodScores], spec: RunSpec
) -> Markup:
    """One metric from step to step: the soft prompt with its interval, further arms as thin lines, baselines level.

    The probes are scored by rule, so the levels are those of the rule as well.
    """
    panel = _Panel(spec.steps, 1.0)
    shares = (0.0, 0.25, 0.5, 0.75, 1.0)
    panel.axes(shares, [f"{share * 100:.0f}" for share in shares])
    said = []
    for method in ("zero_shot", "few_shot"):
        if method in scores:
            level: Rate = getattr(scores[method], metric)
            panel.line([(0, level.rate), (spec.steps, level.rate)], colour(method))
            said.append(f"{method.replace('_', '-')} level {level.rate:.0%}")
    if probes:
        panel.band([(p.step, _rate(p, metric)) for p in probes], "soft")
        for arm in spec.arms[1:]:
            curve = [(p.step, _rate(p.arms[arm.name], metric).rate) for p in probes if arm.name in p.arms]
            if curve:
                panel.line(curve, colour(arm.name))
        curve = [(p.step, _rate(p, metric).rate) for p in probes]
        panel.line(curve, "soft")
        panel.dots(curve, "dot soft", 3.2)
        said.append(f"soft prompt from {curve[0][1]:.0%} at step {curve[0][0]:g} to {curve[-1][1]:.0%}")
    return svg(WIDTH, HEIGHT, f"{title}, percent, by tuning step: {'; '.join(said)}", panel.body, "chart")


def _thin(values: Sequence[Point]) -> list[Point]:
    stride = max(1, ceil(len(values) / MOST))
    kept = list(values[::stride])
    return kept if not values or kept[-1] == values[-1] else [*kept, values[-1]]


def _average(values: Sequence[Point]) -> list[Point]:
    """Moving average, exponential, without a bias towards zero at its start."""
    total, norm, out = 0.0, 0.0, []
    for step, value in values:
        total = AVERAGE * total + (1 - AVERAGE) * value
        norm = AVERAGE * norm + (1 - AVERAGE)
        out.append((step, total / norm))
    return out


def loss_chart(losses: Sequence[StepLoss], spec: RunSpec) -> Markup:
    """The loss of every step as a dot, its moving average as a line; further arms by their average alone."""
    own: list[Point] = [(loss.step, loss.loss) for loss in losses]
    arms: dict[Method, list[Point]]
    arms = {arm.name: [(x.step, x.arms[arm.name]) for x in losses if arm.name in x.arms] for arm in spec.arms[1:]}
    values = ticks(max(value for curve in (own, *arms.values()) for _, value in curve))
    panel = _Panel(spec.steps, values[-1])
    panel.axes(values, [f"{value:g}" for value in values])
    for name, curve in arms.items():
        if curve:
            panel.line(_thin(_average(curve)), colour(name))
    panel.dots(_thin(own), "speck soft", 1.8)
    panel.line(_thin(_average(own)), "soft")
    label = f"Loss in nats a token by tuning step: from {own[0][1]:.2f} to {own[-1][1]:.2f}"
    return svg(WIDTH, HEIGHT, label, panel.body, "chart")


def key(method: Method) -> Markup:
    """A stroke of a method's line, for the legend."""
    return Markup(
        '<svg class="key" viewBox="0 0 30 10" aria-hidden="true"><path class="line {}" d="M1 5L29 5"/></svg>'
    ).format(colour(method))


def range_bar(rate: Rate) -> Markup:
    """A rate and its interval on a line from 0 to 100 %. The numbers stand beside it, so it is hidden from readers."""
    low, high, at = (f"{2 + 96 * share:.1f}" for share in (rate.low, rate.high, rate.rate))
    return Markup(
        '<svg class="range" viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">'
        '<path class="grid" d="M2 6L98 6"/><path class="bar" d="M{} 6L{} 6"/><path class="tip" d="M{} 1L{} 11"/></svg>'
    ).format(low, high, at, at)


def reach(bounds: Iterable[float]) -> float:
    """How far a picture of differences goes to both sides: to the furthest bound, and 15 points at least."""
    return max((0.15, *map(abs, bounds)))


def forest(difference: float, low: float, high: float, margin: float, reach: float) -> Markup:
    """A difference with its interval over the margin within which nothing changed; 0 stands in the middle."""

    def x(value: float) -> str:
        return f"{100 + 95 * value / reach:.1f}"

    return Markup(
        '<svg class="forest" viewBox="0 0 200 22" aria-hidden="true"><rect class="margin" x="{}" y="1" width="{:.1f}" '
        'height="20"/><path class="zero-line" d="M100 1L100 21"/><path class="interval" d="M{} 11L{} 11"/>'
        '<circle class="point" cx="{}" cy="11" r="4"/></svg>'
    ).format(x(-margin), 190 * margin / reach, x(low), x(high), x(difference))


def letter_chart(title: str, counts: Mapping[str, int]) -> Markup:
    """How many answers begin with each letter."""
    total = max(1, sum(counts.values()))
    wide = 150 / max(1, len(counts))
    body = []
    for index, (name, number) in enumerate(counts.items()):
        left, tall = 5 + index * wide, 70 * number / total
        rest = f'x="{_n(left)}" width="{_n(wide - 5)}"'
        body.append(f'<rect class="stick" y="{_n(88 - tall)}" height="{_n(tall)}" {rest}/>')
        middle = left + (wide - 5) / 2
        body.append(_text(middle, 83 - tall, number, "middle"))
        body.append(_text(middle, 102, name, "middle strong" if len(name) == 1 else "middle"))
    body.append(_path([(3, 88.5), (157, 88.5)], "axis"))
    said = ", ".join(f"{name} {number}" for name, number in counts.items())
    return svg(160, 108, f"{title}: {said}", body, "letters")

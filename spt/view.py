"""What a run looks like now: its events folded into phase, progress, time left, curves and scores. Imports no torch.

The command line and the page both draw from this, so they say the same. Feed it events as they come:

    view = RunView(folder.spec)
    events, offset = folder.read_events(offset)
    view.update(events)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from spt.events import (
    PHASES,
    DataLoaded,
    Event,
    LoraStep,
    MemoryReduced,
    MethodScored,
    ModelLoaded,
    Phase,
    PhaseStarted,
    Probe,
    Progress,
    Result,
    RunFailed,
    RunFinished,
    RunStarted,
    RunStopped,
    StepLoss,
    last_method,
    phases_of,
)
from spt.metrics import MethodScores, Prediction
from spt.spec import LORA, TUNED_ITEMS, Method, RunSpec

PHASE_TITLES: dict[Phase, str] = {
    "load": "Loading model and benchmark",
    "zero_shot": "Zero-shot answers",
    "few_shot": "Few-shot answers",
    "tuning": "Tuning the soft prompt",
    "soft_prompt": "Soft-prompt answers",
    "controls": "Answers with seeds and controls",
    "lora_tuning": "Tuning LoRA",
    "lora": "LoRA answers",
}
METHOD_TITLES: dict[Method, str] = {
    "zero_shot": "Zero-shot",
    "few_shot": "Few-shot",
    "soft_prompt": "Soft prompt",
    "shuffled": "Control: shuffled",
    "valid-format": "Control: valid form",
    TUNED_ITEMS: "On tuned items",
    LORA: "LoRA",
}

TUNINGS: tuple[Phase, ...] = ("tuning", "lora_tuning")
BASELINES: tuple[Method, ...] = ("zero_shot", "few_shot")
Levels = dict[Method, MethodScores]

# Shares of a whole run, for the bar only. Fixed, since shares that follow the clock make a bar run backwards.
_WEIGHTS: dict[Phase, float] = {
    "load": 0.05, "zero_shot": 0.15, "few_shot": 0.2, "tuning": 0.45, "soft_prompt": 0.15, "controls": 0.4,
    "lora_tuning": 0.45, "lora": 0.15,
}  # fmt: skip


def method_title(method: Method) -> str:
    """`Zero-shot`; a further seed is `Soft prompt, seed 2`."""
    return METHOD_TITLES.get(method) or f"Soft prompt, seed {method.removeprefix('seed-')}"


State = Literal["new", "running", "stopped", "failed", "finished"]


@dataclass
class _Pace:
    """How fast a phase goes: seconds and units, of all attempts, without the time between attempts."""

    done: int = 0
    ahead: float = 0.0  # units in work that are surely behind
    total: int | None = None
    detail: str = ""
    complete: bool = False
    seconds: float = 0.0
    paced: float = 0.0  # of them, up to the last unit that was done
    measured: int = 0  # units that were done within `paced`

    @property
    def rate(self) -> float | None:
        """Seconds a unit; None before one was measured. What is in work does not count: it would seem slow."""
        return self.paced / self.measured if self.measured and self.paced > 0 else None

    @property
    def fraction(self) -> float:
        if self.complete:
            return 1.0
        return min((self.done + self.ahead) / self.total, 1.0) if self.total else 0.0


@dataclass
class RunView:
    """A fold of the events of one run. The state is what they say; whether a process is alive, the folder knows."""

    spec: RunSpec
    state: State = "new"
    resumed: bool = False
    started: float | None = None  # Unix time of the first attempt
    phase: Phase | None = None
    model: ModelLoaded | None = None
    data: DataLoaded | None = None
    losses: dict[int, StepLoss] = field(default_factory=dict)  # by step, in order
    lora_losses: dict[int, LoraStep] = field(default_factory=dict)  # by step, in order
    probes: dict[int, Probe] = field(default_factory=dict)  # by step, in order
    scores: dict[Method, MethodScores] = field(default_factory=dict)
    result: Result | None = None
    message: str = ""  # why it failed, or that it was stopped
    notices: list[str] = field(default_factory=list)  # what was changed on the way, the last one last
    _paces: dict[Phase, _Pace] = field(default_factory=lambda: {phase: _Pace() for phase in PHASES})
    _clock: float | None = None  # time of the previous event of this attempt

    @classmethod
    def of(cls, events: Iterable[Event], spec: RunSpec) -> RunView:
        """The view after these events."""
        view = cls(spec)
        view.update(events)
        return view

    def update(self, events: Iterable[Event]) -> None:
        """Take in further events, in order."""
        for event in events:
            if isinstance(event, RunStarted):
                self._begin(event)
            elif self.phase is not None and self._clock is not None and self.state == "running":
                self._paces[self.phase].seconds += max(0.0, event.time - self._clock)
            self._clock = event.time
            self._take(event)

    # ---- what a view shows

    @property
    def phase_done(self) -> int:
        """Units done in the current phase (items or steps)."""
        return self._paces[self.phase].done if self.phase else 0

    @property
    def phase_total(self) -> int | None:
        return self._total(self.phase) if self.phase else None

    @property
    def phase_detail(self) -> str:
        """What the phase is doing, in a few words; may be empty."""
        return self._paces[self.phase].detail if self.phase else ""

    @property
    def phase_fraction(self) -> float:
        return self._fraction(self.phase) if self.phase else 0.0

    @property
    def fraction(self) -> float:
        """Progress of the whole run from 0 to 1. It never goes back, also not when a run is resumed."""
        if self.state == "finished":
            return 1.0
        weights = {phase: _WEIGHTS[phase] for phase in phases_of(self.spec)}
        return sum(weight * self._fraction(phase) for phase, weight in weights.items()) / sum(weights.values())

    @property
    def phase_seconds_left(self) -> float | None:
        """Time left in the current phase, from the pace measured in it; None = not known yet."""
        return self._seconds_left(self.phase) if self.phase and self.state == "running" else None

    @property
    def seconds_left(self) -> float | None:
        """Time left in the whole run; None while the pace of a phase that is still to come is not known."""
        if self.state == "finished":
            return 0.0
        if self.state != "running":
            return None
        left = [self._seconds_left(phase) for phase in phases_of(self.spec)]
        return None if None in left else sum(seconds for seconds in left if seconds is not None)

    @property
    def phase_seconds(self) -> dict[Phase, float]:
        """Seconds spent in each phase that has begun, all attempts together, without the time between them."""
        return {phase: pace.seconds for phase, pace in self._paces.items() if pace.seconds}

    @property
    def headline(self) -> str:
        """One line for the state: `Tuning the soft prompt: 24 of 80`."""
        if self.state in ("stopped", "failed"):
            return self.message
        if self.state == "finished":
            return "Finished"
        if self.phase is None:
            return "Starting" if self.state == "running" else "Not started"
        if not self.phase_total and self.phase_detail:
            return self.phase_detail
        count = f": {self.phase_done} of {self.phase_total}" if self.phase_total else ""
        return PHASE_TITLES[self.phase] + count + (f", {self.phase_detail}" if self.phase_detail else "")

    # ---- the fold

    def _begin(self, event: RunStarted) -> None:
        if not event.resumed:
            # A run made anew: a page that followed the old one must forget it.
            fresh = type(self)(self.spec)
            self.__dict__.update(fresh.__dict__)
            self.started = event.time
        self.state, self.resumed, self.phase = "running", event.resumed, None
        self.message = ""
        if self.started is None:
            self.started = event.time

    def _take(self, event: Event) -> None:
        match event:
            case PhaseStarted():
                self.phase = event.phase
                pace = self._paces[event.phase]
                pace.total, pace.detail = event.total, event.detail
            case Progress():
                pace = self._paces[event.phase]
                pace.total, pace.detail = event.total, event.detail
                if event.ahead is None:
                    self._advance(event.phase, event.done)
                else:  # a batch that begins again in halves does not set the bar back
                    pace.ahead = max(pace.ahead, event.ahead)
            case ModelLoaded():
                self.model = event
            case DataLoaded():
                self.data = event
            case StepLoss():
                self.losses[event.step] = event
                self._paces["tuning"].detail = ""
                self._advance("tuning", event.step)
            case LoraStep():
                self.lora_losses[event.step] = event
                self._advance("lora_tuning", event.step)
            case Probe():
                self.probes[event.step] = event
            case MethodScored():
                self.scores[event.method] = event.scores
                for phase in PHASES:
                    self._paces[phase].complete |= event.method == last_method(phase)
            case MemoryReduced():
                self.notices.append(event.detail)
            case RunStopped():
                self.state, self.message = "stopped", "Stopped; it can be resumed"
            case RunFailed():
                self.state, self.message = "failed", event.message
            case RunFinished():
                self.state, self.result = "finished", event.result

    def _advance(self, phase: Phase, done: int) -> None:
        pace = self._paces[phase]
        # After a resume a step or batch can come a second time: it took time again but adds nothing to what is done.
        pace.measured += max(0, done - pace.done)
        pace.paced = pace.seconds
        if done > pace.done:
            pace.done, pace.ahead = done, 0.0

    def _total(self, phase: Phase) -> int | None:
        pace = self._paces[phase]
        if phase in TUNINGS:
            return self.spec.steps
        if phase == "load" or pace.total is not None:
            return pace.total
        if self.data and phase == "controls":
            return self.data.items * (len(self.spec.arms) - 1) + self.data.tuned_items
        return self.data.items if self.data else None

    def _fraction(self, phase: Phase) -> float:
        if phase == "load":
            return 1.0 if self.model and self.data else self._paces["load"].fraction
        if phase in TUNINGS:
            return min(self._paces[phase].done / self.spec.steps, 1.0)
        return self._paces[phase].fraction

    def _seconds_left(self, phase: Phase) -> float | None:
        pace, total = self._paces[phase], self._total(phase)
        if phase == "load":
            return None if self.phase in (None, "load") else 0.0
        if pace.complete:
            return 0.0
        if total is None:
            return None
        rate = pace.rate
        if rate is None and phase == "lora_tuning":  # a step is much like one of the soft prompt alone
            tuning = self._paces["tuning"].rate
            rate = None if tuning is None else tuning / len(self.spec.arms)
        elif rate is None and phase != "tuning":
            # Answers of another method, of the same items by the same model, are a fair guess until this one has begun.
            rates = [self._paces[other].rate for other in ("zero_shot", "few_shot")]
            rate = next((known for known in rates if known is not None), None)
        return None if rate is None else max(0.0, rate * (total - pace.done) - (pace.seconds - pace.paced))


def probed_levels(predictions: Mapping[Method, Sequence[Prediction]], data: DataLoaded | None) -> Levels:
    """The baselines over the probed items alone, to stand beside the curves; of those that are answered so far."""
    ids = {question.id for question in data.probed} if data else set()
    rows = ((method, predictions.get(method, ())) for method in BASELINES)
    levels = {method: MethodScores.of_items(answers, data is not None and data.closed, ids) for method, answers in rows}
    return {method: scores for method, scores in levels.items() if scores is not None}


def duration(seconds: float | None) -> str:
    """`48 s`, `2 min 05 s`, `1 h 12 min`; `unknown` for None."""
    if seconds is None:
        return "unknown"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 item`, `64 items`, `12,000 items`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"

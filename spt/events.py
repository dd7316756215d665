"""What a run says while it goes: typed events, in the order they happen. Imports no torch.

`experiment.run` yields them, `store` writes them, every view reads them back from the run folder. Three kinds:
events that become one line of `events.jsonl` (`Event`); `Predictions`, whose rows go to `predictions/<method>.jsonl`;
and `Checkpoint` / `PromptFiles`, which are tensors and files.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from spt.analysis import Analysis
from spt.metrics import JudgeInfo, MethodScores, Prediction, Rate
from spt.spec import LORA, TUNED_ITEMS, Method, RunSpec

SCHEMA = 1  # of a run folder

Phase = Literal["load", "zero_shot", "few_shot", "tuning", "soft_prompt", "controls", "lora_tuning", "lora"]
PHASES: tuple[Phase, ...] = get_args(Phase)


def phases_of(spec: RunSpec) -> tuple[Phase, ...]:
    """The phases of a run, in order. `controls` answers with the further arms, where there are any."""
    left_out: set[Phase] = set()
    if len(spec.arms) == 1:
        left_out.add("controls")
    if LORA not in spec.method:
        left_out |= {"lora_tuning", "lora"}
    return tuple(phase for phase in PHASES if phase not in left_out)


def last_method(phase: Phase) -> Method:
    """The method whose score ends a phase of answers."""
    return TUNED_ITEMS if phase == "controls" else phase


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True)
    time: float = Field(default_factory=time.time, description="Unix seconds")


class RunStarted(_Event):
    """First event of a run, and of each time it is resumed (`resumed` is then true)."""

    type: Literal["run_started"] = "run_started"
    run: str
    resumed: bool = False


class PhaseStarted(_Event):
    type: Literal["phase_started"] = "phase_started"
    phase: Phase
    total: int | None = Field(None, description="units of work (items or steps); None = not known")
    detail: str = ""


class Progress(_Event):
    """`done` of `total` units of the phase are finished; with `ahead`, a sign of life from within the next ones."""

    type: Literal["progress"] = "progress"
    phase: Phase
    done: int
    total: int
    detail: str = ""
    ahead: float | None = Field(None, description="units beyond `done` that are surely behind; None = none in work")


class ModelLoaded(_Event):
    type: Literal["model_loaded"] = "model_loaded"
    model: str
    revision: str | None = None
    parameters: int
    device: str
    precision: str
    chat_template: bool
    embedding_rms: float
    seconds: float


class Question(BaseModel):
    """A test item as a view shows it."""

    id: str
    question: str
    options: tuple[str, ...] = ()
    target: str
    topic: str = ""


class DataLoaded(_Event):
    type: Literal["data_loaded"] = "data_loaded"
    benchmark: str
    format: str
    closed: bool
    train: int
    test: int
    items: int = Field(description="test items scored in this run")
    dropped: dict[str, int] = Field(default_factory=dict, description="reason -> rows left out")
    fingerprint: str = Field("", description="hash of all rows; a run goes on with the same rows only")
    tuned_items: int = Field(0, description="training rows that the soft prompt answers too")
    probed: tuple[Question, ...] = Field((), description="the items whose answers are followed from step to step")


class MethodScored(_Event):
    type: Literal["method_scored"] = "method_scored"
    method: Method
    scores: MethodScores


class StepLoss(_Event):
    """One optimizer step. `step` counts from 1. `loss` is the mean cross-entropy a target token, in nats."""

    type: Literal["step_loss"] = "step_loss"
    step: int
    loss: float
    learning_rate: float
    grad_norm: float
    seconds: float
    arms: dict[Method, float] = Field(default_factory=dict, description="losses of the further arms")


class LoraStep(_Event):
    """One optimizer step of LoRA; as `StepLoss`, on the same rows."""

    type: Literal["lora_step"] = "lora_step"
    step: int
    loss: float
    learning_rate: float
    grad_norm: float
    seconds: float


class ProbeScores(BaseModel):
    """What an arm reaches on the probed items."""

    format: Rate
    knowledge: Rate
    exact_match: Rate


class ProbeAnswer(BaseModel):
    id: str
    response: str
    in_format: bool
    right: bool = Field(description="knowledge: right, in the form or not")


class Probe(_Event):
    """Scores on the probed items after `step` steps (0 = the untrained prompt)."""

    type: Literal["probe"] = "probe"
    step: int
    format: Rate
    knowledge: Rate
    exact_match: Rate
    answers: tuple[ProbeAnswer, ...]
    arms: dict[Method, ProbeScores] = Field(default_factory=dict, description="the further arms, same items")


class MemoryReduced(_Event):
    """The device ran out of memory, and from here on the same work is done in smaller portions.

    `at_once` is the new limit: tokens of a forward pass in tuning (LoRA, which needs more, has its own), items of a
    batch in evaluation. `detail` is one sentence for the user. A resumed run begins with the last limits, so that it
    computes what an unbroken one would.
    """

    type: Literal["memory_reduced"] = "memory_reduced"
    what: Literal["tuning", "lora_tuning", "evaluation"]
    at_once: int
    detail: str


class RunStopped(_Event):
    type: Literal["run_stopped"] = "run_stopped"


class RunFailed(_Event):
    """`message` is one sentence for the user; `detail` a traceback where the fault is ours, else empty."""

    type: Literal["run_failed"] = "run_failed"
    message: str
    detail: str = ""


class TuningSummary(BaseModel):
    steps: int
    seconds: float
    trainable_parameters: int
    trainable_share: float
    final_loss: float


class Result(BaseModel):
    """`result.json`: written last; its presence means that the run is finished."""

    schema_: int = Field(SCHEMA, alias="schema")
    run: str
    spec: RunSpec
    methods: dict[Method, MethodScores]
    analysis: Analysis | None = Field(None, description="comparisons, controls and findings; None = of an older run")
    tuning: TuningSummary
    lora: TuningSummary | None = Field(None, description="LoRA's tuning, where the run has it")
    model: dict[str, Any]
    benchmark: dict[str, Any]
    device: str
    seconds: dict[str, float] = Field(description="wall seconds by phase")
    peak_memory_mb: float
    versions: dict[str, str]
    judge: JudgeInfo | None = Field(None, description="who judged the answers, where a judge was asked")

    model_config = ConfigDict(populate_by_name=True)


class RunFinished(_Event):
    type: Literal["run_finished"] = "run_finished"
    result: Result


Event = Annotated[
    RunStarted | PhaseStarted | Progress | ModelLoaded | DataLoaded | MethodScored | StepLoss | LoraStep | Probe
    | MemoryReduced | RunStopped | RunFailed | RunFinished,
    Field(discriminator="type"),
]
event_adapter: TypeAdapter[Event] = TypeAdapter(Event)


@dataclass(frozen=True)
class Predictions:
    """A batch of scored answers of one method; appended to `predictions/<method>.jsonl`."""

    method: Method
    rows: tuple[Prediction, ...]


@dataclass(frozen=True)
class Checkpoint:
    """Everything tuning needs to go on after `step`: what is tuned and its two moments, float32.

    A run has one for its soft prompts (all arms) and one for LoRA, the last of each.
    """

    step: int
    tensors: Mapping[str, np.ndarray]
    method: Method = "soft_prompt"


@dataclass(frozen=True)
class PromptFiles:
    """A tuned prompt, or LoRA's weights, as a PEFT adapter folder: file name -> bytes."""

    files: Mapping[str, bytes]
    arm: Method = "soft_prompt"


@dataclass(frozen=True)
class ResumeState:
    """What earlier attempts at the run left: nothing for a new run."""

    checkpoint: Checkpoint | None = None
    lora_checkpoint: Checkpoint | None = None
    predictions: Mapping[Method, tuple[Prediction, ...]] = field(default_factory=dict)
    events: tuple[Event, ...] = ()

    def limit(self, what: str) -> int | None:
        """How much at once those attempts found to fit, where memory ran out (`MemoryReduced`); else None."""
        found = [e.at_once for e in self.events if isinstance(e, MemoryReduced) and e.what == what]
        return found[-1] if found else None

    def seconds(self) -> dict[str, float]:
        """Wall seconds by phase of those attempts, read from the times of their events."""
        seconds: dict[str, float] = {}
        phase: str | None = None
        before = 0.0
        for event in self.events:
            if isinstance(event, RunStarted):
                phase = None  # the gap since the last attempt is nobody's time
            elif phase is not None:
                seconds[phase] = seconds.get(phase, 0.0) + event.time - before
            if isinstance(event, PhaseStarted):
                phase = event.phase
            before = event.time
        return seconds


Message = Event | Predictions | Checkpoint | PromptFiles

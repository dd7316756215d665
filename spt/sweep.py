"""Sweeps: models × benchmarks × seeds, as the runs that they are. Imports no torch.

    models:
      - pair: {base: Qwen/Qwen3-0.6B-Base, post_trained: Qwen/Qwen3-0.6B}
      - HuggingFaceTB/SmolLM2-135M
      - {model: meta-llama/Llama-3.2-1B, precision: 4bit}      # any setting of a run, for this model alone
    benchmarks: [arc_easy, gsm8k]
    seeds: [0, 1, 2]
    methods: [lora]                                            # to compare with, in every run
    settings: {items: 256}                                     # of all runs

Each combination is one RunSpec, so one run folder: what is finished is never run again, whoever ran it, and a sweep
that was killed goes on where it was. Runs of one model stand together and share one load.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spt.benchmarks import canonical
from spt.events import Message, phases_of
from spt.home import make_home
from spt.preflight import preflight
from spt.spec import RunSpec, UserError
from spt.store import RunFolder, Store

if TYPE_CHECKING:
    from spt.experiment import ModelCache

Settings = dict[str, Any]
_STRICT = ConfigDict(frozen=True, extra="forbid")


class Pair(BaseModel):
    """A base model and what was made of it by post-training."""

    model_config = _STRICT
    base: str = Field(min_length=1)
    post_trained: str = Field(min_length=1)


class Grid(BaseModel):
    """A sweep file as it is written."""

    model_config = _STRICT
    models: list[str | Settings] = Field(min_length=1)
    benchmarks: list[str] = Field(min_length=1)
    seeds: list[int] = Field(default=[0], min_length=1)
    methods: list[str] = []
    settings: Settings = {}


class ModelKey(NamedTuple):
    """What has to be loaded for a run."""

    model: str
    revision: str | None
    precision: str


def by_model(specs: Iterable[RunSpec]) -> dict[ModelKey, list[RunSpec]]:
    """The runs of each model: what one process does in turn."""
    groups: dict[ModelKey, list[RunSpec]] = {}
    for spec in specs:
        groups.setdefault(ModelKey(spec.model, spec.revision, spec.precision), []).append(spec)
    return groups


@dataclass(frozen=True)
class Sweep:
    """The runs of a sweep, those of one model together, and which models are pairs."""

    specs: tuple[RunSpec, ...]
    pairs: tuple[Pair, ...] = ()


def read(path: Path) -> Sweep:
    """The sweep of a YAML file. Raises UserError, with one sentence, for the first thing that is wrong with it."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UserError(f"{path} cannot be read: {reason}.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "unreadable"
        raise UserError(f"{path}{where}: this is no YAML ({problem}).") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: a sweep is a mapping with `models` and `benchmarks`.")
    try:
        grid = Grid.model_validate(content)
    except ValidationError as error:
        raise UserError(f"{path}: {_complaint(error)}") from None
    try:
        return _sweep(grid)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _complaint(error: ValidationError) -> str:
    first = error.errors()[0]
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return f"there is no field {name!r}; a sweep has {', '.join(Grid.model_fields)}."
    if first["type"] == "missing":
        return f"{name} is missing."
    if first["type"] == "too_short":
        return f"{name} is empty, so there is nothing to run."
    place = "".join(f"[{part}]" for part in first["loc"][1:] if isinstance(part, int))
    return f"{name}{place} = {first['input']!r} is not possible: {first['msg'].lower()}."


def _sweep(grid: Grid) -> Sweep:
    models, pairs = _models(grid.models)
    for name, values in (("benchmarks", grid.benchmarks), ("seeds", grid.seeds)):
        twice = [value for i, value in enumerate(values) if value in values[:i]]
        if twice:
            raise UserError(f"{name} has {twice[0]!r} twice.")
    for name in ("model", "benchmark", "seed"):
        if name in grid.settings:
            raise UserError(f"settings hold no {name!r}: it is listed under `{name}s`.")
    if grid.methods and "method" in grid.settings:
        raise UserError("give `methods`, or `method` among the settings, not both.")
    common = {**grid.settings, "method": grid.methods} if grid.methods else grid.settings
    specs = [
        canonical(RunSpec.parse(**{**common, **model, "benchmark": benchmark, "seed": seed}))
        for model in models
        for benchmark in grid.benchmarks
        for seed in grid.seeds
    ]
    return Sweep(tuple(specs), tuple(pairs))


def _models(entries: Sequence[str | Settings]) -> tuple[list[Settings], list[Pair]]:
    models: list[Settings] = []
    pairs: list[Pair] = []
    for entry in entries:
        settings = {"model": entry} if isinstance(entry, str) else dict(entry)
        if "pair" in settings:
            try:
                pair = Pair.model_validate(settings.pop("pair"))
            except ValidationError:
                raise UserError(f"{entry}: a pair is {{base: MODEL, post_trained: MODEL}}, both of them.") from None
            if "model" in settings:
                raise UserError(f"{entry}: give `pair` or `model`, not both.")
            pairs.append(pair)
            models += [{**settings, "model": name} for name in (pair.base, pair.post_trained)]
        elif "model" in settings:
            models.append(settings)
        else:
            raise UserError(f"{entry}: a model is a name, or a mapping with `model` or `pair`.")
    for i, model in enumerate(models):
        if model in models[:i]:
            raise UserError(f"the model {model['model']} is listed twice.")
        for name in ("benchmark", "seed"):
            if name in model:
                raise UserError(f"{model['model']}: a model has no {name!r} of its own; list it under `{name}s`.")
    return models, pairs


def check(sweep: Sweep, store: Store) -> None:
    """Raises UserError for what can be known to fail before anything starts, and without the network."""
    make_home()
    try:
        store.root.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=store.root):
            pass
    except OSError as error:
        why = f"{store.root} cannot be written ({error.strerror})"
        raise UserError(f"{why}: set SPT_HOME to a folder that can.") from None
    models = {key: specs[0] for key, specs in by_model(sweep.specs).items()}
    benchmarks = {spec.benchmark: spec for spec in sweep.specs}
    for spec in {*models.values(), *benchmarks.values()}:  # rows do not depend on the model, nor a model on rows
        try:
            preflight(spec)
        except UserError as error:
            raise UserError(f"{spec.model} on {spec.benchmark}: {error}") from None


# ---- what there is to do


class Planned(NamedTuple):
    """A run of a sweep, and what is known of it before it begins."""

    spec: RunSpec
    done: bool
    seconds: float | None  # reckoned from earlier runs; None = there is none like it
    memory_mb: float | None


def plan(sweep: Sweep, store: Store, estimate: bool = True) -> list[Planned]:
    """The runs in their order; with `estimate` what they will take, from earlier runs of the same model."""
    done = [store.has_result(spec.run_id) for spec in sweep.specs]
    wanted = {spec.model for spec, is_done in zip(sweep.specs, done, strict=True) if not is_done}
    known = _History.of(store, wanted if estimate else ())
    return [
        Planned(spec, is_done, *((None, None) if is_done else known.estimate(spec)))
        for spec, is_done in zip(sweep.specs, done, strict=True)
    ]


@dataclass
class _History:
    """What finished runs took, by model."""

    runs: dict[str, list[tuple[RunSpec, dict[str, float], float]]] = field(default_factory=dict)

    @classmethod
    def of(cls, store: Store, models: Iterable[str]) -> _History:
        history, wanted = cls(), set(models)
        for folder in store.runs() if wanted else ():
            if folder.spec.model in wanted and folder.finished():
                result = folder.result()
                if result is not None:
                    taken = (folder.spec, result.seconds, result.peak_memory_mb)
                    history.runs.setdefault(folder.spec.model, []).append(taken)
        return history

    def estimate(self, spec: RunSpec) -> tuple[float | None, float | None]:
        """Seconds and peak MB: of the last run of this model and precision, best on the same benchmark."""
        like = [run for run in self.runs.get(spec.model, ()) if run[0].precision == spec.precision]
        same = [run for run in like if run[0].benchmark == spec.benchmark]
        if not (same or like):
            return None, None
        earlier, seconds, memory = (same or like)[0]
        steps = spec.steps * spec.batch_size * len(spec.arms) / (earlier.steps * earlier.batch_size * len(earlier.arms))
        items = spec.items / earlier.items
        arms = max(1, len(spec.arms) - 1) / max(1, len(earlier.arms) - 1)
        scale = {"load": 1.0, "tuning": steps, "controls": items * arms}
        # LoRA, as far as the earlier run had none: as one more prompt.
        seconds = {
            "lora_tuning": seconds.get("tuning", 0.0) / len(earlier.arms),
            "lora": seconds.get("soft_prompt", 0.0),
            **seconds,
        }
        scale["lora_tuning"] = spec.steps * spec.batch_size / (earlier.steps * earlier.batch_size)
        return sum(seconds.get(phase, 0.0) * scale.get(phase, items) for phase in phases_of(spec)), memory


# ---- doing it

State = Literal["done before", "finished", "failed", "stopped"]


class Outcome(NamedTuple):
    """How one run of a sweep ended."""

    spec: RunSpec
    state: State
    message: str = ""  # why it failed, in a sentence
    where: str = ""  # the machine, where there are several
    seconds: float = 0.0


Listen = Callable[[RunFolder, Message], None]


def in_turn(groups: Iterable[Sequence[RunSpec]], store: Store, listen: Listen | None = None) -> Iterator[Outcome]:
    """Run all specs here, one after the other. One that fails is noted, and the rest goes on; one that is stopped is
    the last: whoever stops a run of a sweep wants the device."""
    from spt.experiment import ModelCache  # torch: seconds

    for specs in groups:
        cache = ModelCache()  # lets the model before it go
        for spec in specs:
            outcome = one(spec, store, cache, listen)
            yield outcome
            if outcome.state == "stopped":
                return


def one(
    spec: RunSpec, store: Store, cache: ModelCache, listen: Listen | None = None, device_is_ours: bool = False
) -> Outcome:
    """Run one spec to its end, or go on with it, once the device is free. On Ctrl-C it is `stopped`.

    `device_is_ours`: see `runner.execute`.
    """
    from spt.runner import execute

    start = time.monotonic()
    folder = store.create(spec)
    folder.clear_stop()
    hear = None if listen is None else lambda message: listen(folder, message)
    try:
        status = execute(folder, cache, hear, wait=True, device_is_ours=device_is_ours)
    except UserError as error:
        return Outcome(spec, "failed", str(error), seconds=time.monotonic() - start)
    except Exception as error:  # noted in the run folder, with its traceback, by `execute`
        return Outcome(spec, "failed", f"{type(error).__name__}: {error}", seconds=time.monotonic() - start)
    seconds = time.monotonic() - start
    return Outcome(spec, "finished" if status == "finished" else "stopped", seconds=seconds)

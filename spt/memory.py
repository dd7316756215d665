"""How much memory a run will need, and whether the device has it, from the model's config alone. Imports no torch.

    estimate = ask(spec)                      # page: one subprocess, kept for the next time
    estimate = of_spec(spec)                  # a process that may import torch, such as the command line
    estimate.total, estimate.verdict, estimate.sentence

No weights are read or downloaded. What counts is the peak: weights, and on top of them the larger of a tuning step and
a batch of answers, which do not happen at once. How the parts are found is in `spt.memory_parts`.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Literal

import psutil
from pydantic import BaseModel, Field, ValidationError

from spt.benchmarks import canonical, for_spec, load
from spt.files import write_atomic
from spt.home import home
from spt.spec import RunSpec, UserError, local_path

Verdict = Literal["fits", "tight", "does not fit"]

VERSION = 1  # raised when the same question would get another answer
TIGHT = 0.85  # of the free memory: above it, other programs or one long row decide
GPU_AGE = 120.0  # seconds; then an estimate for a GPU is made anew, as its free memory is not known without torch
CHARACTERS = 3  # a token, at least, in English text and in numbers; most tokenizers need fewer tokens
CHAT_TOKENS = 16  # what a chat template puts around a question, or an example
# Characters of a long question and of its target, where the rows are not here: questions with options, short answers,
# worked answers.
_ASSUMED = {"closed": (600, 120), "short": (300, 40), "worked": (800, 800)}
_ASKED = (
    "model", "revision", "benchmark", "precision", "shots", "virtual_tokens", "batch_size", "seeds", "control",
    "method", "holdout_topic", "data_dir", "answer_format", "template", "pattern",
)  # fmt: skip


class Workload(BaseModel):
    """The sizes of a run that decide on its memory. Tokens are those of the longest row, counted high."""

    rows: int = Field(description="training rows of a step, all prompts together")
    row_tokens: int = Field(description="of a training row: soft prompt, question and target")
    target_tokens: int
    context_tokens: int = Field(description="of a few-shot prompt")
    answer_tokens: int = Field(description="an answer may have")
    options: int = Field(1, description="of a closed question, ranked together; 1 = an open one")
    assumed: bool = Field(False, description="the benchmark's rows are not here, so the lengths are typical ones")

    @classmethod
    def of(cls, spec: RunSpec) -> Workload:
        """Of a run; the rows are read where that needs no download. Raises UserError where they are unusable."""
        if spec.benchmark.startswith("lm_eval:"):  # to know more of it, its data would be downloaded
            return cls._typical(spec, "worked", instruction=0, answer_tokens=256, options=4)
        benchmark = for_spec(spec)
        form = benchmark.format
        if benchmark.hub is not None and not spec.data_dir:
            kind = "closed" if form.closed else "worked" if form.max_new_tokens > 100 else "short"
            options = 4 if form.closed else 1
            return cls._typical(spec, kind, len(benchmark.instruction), form.max_new_tokens, options)
        benchmark, split = load(spec)
        layout = benchmark.layout
        # The longest examples that can be drawn; a file of very unlike rows is told high.
        shots = sorted(len(layout.prompt(row, [row])) - len(layout.prompt(row)) for row in split.train)[-spec.shots :]
        asked = max(len(layout.prompt(row)) for row in split.test)
        return cls._counted(
            spec,
            question=max(len(layout.prompt(row)) for row in split.train),
            target=max(len(row.target) for row in split.train),
            context=len(layout.instruction(benchmark)) + sum(shots) + asked,
            answer_tokens=form.max_new_tokens,
            options=max(len(row.options) for row in split.test),
        )

    @classmethod
    def _typical(cls, spec: RunSpec, kind: str, instruction: int, answer_tokens: int, options: int) -> Workload:
        question, target = _ASSUMED[kind]
        context = instruction + spec.shots * (question + target) + question
        found = cls._counted(spec, question, target, context, answer_tokens, options)
        return found.model_copy(update={"assumed": True})

    @classmethod
    def _counted(
        cls, spec: RunSpec, question: int, target: int, context: int, answer_tokens: int, options: int
    ) -> Workload:
        """From lengths in characters."""
        return cls(
            rows=spec.batch_size * len(spec.arms),
            row_tokens=spec.virtual_tokens + _tokens(question + target) + CHAT_TOKENS,
            target_tokens=_tokens(target) + 1,
            context_tokens=_tokens(context) + CHAT_TOKENS * (1 + spec.shots),
            answer_tokens=answer_tokens,
            options=max(1, options),
        )


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS)


class Suggestion(BaseModel):
    """Something to change so that a run fits."""

    text: str
    change: dict[str, Any] = Field(default_factory=dict, description="settings to change; empty = choose for yourself")
    total: int | None = Field(None, description="bytes that it then needs")
    fits: bool = False


class Estimate(BaseModel):
    """What a run needs and what the device has; all sizes in bytes."""

    model: str
    revision: str | None
    precision: str = Field(description="fp32, bf16, 4bit, or `stored` for a model that is quantised already")
    device: str = Field(description="`CPU`, or the name of the GPU")
    cuda: bool
    parameters: int
    weights: int
    tuning: dict[str, int] = Field(description="a tuning step: activations, logits")
    answers: dict[str, int] = Field(description="a batch of answers: keys and values, work")
    libraries: int = Field(description="Python and its libraries, or CUDA's context and buffers")
    work: Workload
    free: int = Field(description="of the device now")
    capacity: int = Field(description="of the device")
    suggestions: tuple[Suggestion, ...] = ()
    rough: bool = Field(False, description="the model could not be tried without data: activations by a rule of thumb")
    made: float = Field(default_factory=time.time, description="Unix seconds")

    @property
    def total(self) -> int:
        """The peak. Tuning and answering do not happen at once, so the larger of them counts."""
        return self.weights + self.libraries + max(sum(self.tuning.values()), sum(self.answers.values()))

    @property
    def verdict(self) -> Verdict:
        return verdict(self.total, self.free)

    @property
    def parts(self) -> dict[str, int]:
        """The parts by name, in the order of a table."""
        return {
            "weights": self.weights,
            **{f"tuning: {name}": size for name, size in self.tuning.items()},
            **{f"answers: {name}": size for name, size in self.answers.items()},
            "libraries": self.libraries,
        }

    @property
    def sentence(self) -> str:
        """One sentence for the user."""
        sizes = f"{self.model} in {self.precision} needs about {gigabytes(self.total)}"
        has = f"{gigabytes(self.free)} of {gigabytes(self.capacity)} are free on the {self.device}"
        if self.verdict == "fits":
            return f"{sizes} and {has}: it fits."
        what = "it is tight" if self.verdict == "tight" else "it does not fit"
        advice = "; or ".join(suggestion.text for suggestion in self.suggestions)
        return f"{sizes} and {has}: {what}" + (f"; try {advice}." if advice else ".")

    def facts(self) -> dict[str, Any]:
        """All of it, with what follows from it, ready to be written as JSON."""
        derived = {"total": self.total, "verdict": self.verdict, "sentence": self.sentence}
        return {**self.model_dump(), **derived}


def verdict(total: int, free: int) -> Verdict:
    """Whether `total` bytes fit into `free` ones."""
    return "fits" if total <= TIGHT * free else "tight" if total <= free else "does not fit"


def gigabytes(size: int) -> str:
    """`1.5 GB`, `12 GB`, `850 MB`."""
    if size < 995e6:
        return f"{size / 1e6:.0f} MB"
    return f"{size / 1e9:.1f} GB" if size < 99.5e9 else f"{size / 1e9:.0f} GB"


def free_ram() -> int:
    """Free bytes of the machine's memory. In a container with a memory limit, what is left of the limit counts."""
    free = psutil.virtual_memory().available
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text().strip()
        used = int((group / "memory.current").read_text())
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # no cgroup v2: not Linux, or no container
        return free
    # Cached files count as used, and make room when it is needed.
    return free if limit == "max" else min(free, int(limit) - used + int(stat.get("inactive_file", 0)))


def of_spec(spec: RunSpec) -> Estimate:
    """The estimate of a run on this machine's best device. Imports torch; of a hub model the config is fetched alone.

    Raises UserError where the model's config or the benchmark cannot be had.
    """
    from spt.memory_parts import of_spec

    return of_spec(spec)


def warning(spec: RunSpec) -> str | None:
    """One sentence where a run does not fit by the estimate, for before it loads; else None. Imports torch.

    A warning and no refusal: it is an estimate, and a run halves its work where memory runs out. Of a model or a
    benchmark that cannot be had nothing is said here, since loading says it.
    """
    from spt.memory_parts import of_spec

    try:
        estimate = of_spec(spec, timeout=1.0)
    except UserError:
        return None
    return estimate.sentence if estimate.verdict == "does not fit" else None


def ask(spec: RunSpec, timeout: float = 180.0) -> Estimate:
    """The same for a process that must not import torch: made by `python -m spt memory`, once for the same question.

    It is kept under `home()/estimates`; the free memory in it is that of now. Takes seconds the first time and
    milliseconds then. Raises UserError as `of_spec` does, and where the answer takes longer than `timeout` seconds.
    """
    spec = canonical(spec)
    known = kept(spec)
    if known is not None:
        return known
    command = [sys.executable, "-m", "spt", "memory", *shlex.split(spec.command())[4:], "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise UserError(f"The memory of {spec.model} could not be estimated within {timeout:.0f} seconds.") from None
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"])[-1]
        raise UserError(said if done.returncode == 2 else f"The memory of {spec.model} could not be estimated: {said}")
    estimate = Estimate.model_validate(json.loads(done.stdout))
    write_atomic(_file(spec), estimate.model_dump_json().encode())
    return estimate


def _file(spec: RunSpec) -> Path:
    return home() / "estimates" / f"{key(spec)}.json"


def kept(spec: RunSpec) -> Estimate | None:
    """What `ask` knows already, in milliseconds; None = it would have to reckon."""
    try:
        estimate = Estimate.model_validate_json(_file(spec).read_bytes())
    except (OSError, ValidationError):
        return None
    if not estimate.cuda:
        free = free_ram()
        same = verdict(estimate.total, free) == estimate.verdict
        return estimate.model_copy(update={"free": free}) if same else None  # with other suggestions
    return estimate if 0 <= time.time() - estimate.made < GPU_AGE else None


def key(spec: RunSpec) -> str:
    """Hash of all that the answer depends on, local files included."""
    asked: dict[str, Any] = {name: getattr(spec, name) for name in _ASKED}
    path = local_path(spec.model)
    files = [] if path is None else [path / "config.json", *path.glob("*.gguf")] if path.is_dir() else [path]
    files.append(Path(spec.benchmark.rpartition(":")[2]))
    asked["files"] = [(str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in files if f.is_file()]
    return hashlib.sha256(json.dumps([VERSION, asked], sort_keys=True).encode()).hexdigest()[:16]

"""RunSpec: every setting of a run, validated, frozen and hashed into the run id.

The same settings have the same run id everywhere: running them again shows the stored result, or goes on where it
stopped.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

Precision = Literal["auto", "fp32", "bf16", "4bit"]
ChatTemplate = Literal["auto", "on", "off"]
Control = Literal["shuffled", "valid-format"]
Further = Literal["lora"]
Method = str  # one of METHODS, or the name of a further arm of the run (`RunSpec.arms`)
METHODS: tuple[Method, ...] = ("zero_shot", "few_shot", "soft_prompt")
TUNED_ITEMS: Method = "tuned_items"  # the soft prompt's answers to rows that it was tuned on
LORA: Method = "lora"

# Part of the hash: raised whenever the same settings would give other numbers than before.
PROTOCOL = 1
# Settings that came later. At their defaults they are no part of the hash, so older runs keep their ids.
_LATER = ("seeds", "control", "method", "holdout_topic", "data_dir", "answer_format", "template", "pattern")


class Arm(NamedTuple):
    """One soft prompt of a run. All arms of a run are tuned together, each with its own vectors."""

    name: Method
    seed: int
    control: Control | None = None


class UserError(Exception):
    """Something the user can mend. The message, shown without traceback, says what is wrong and what to do."""


class BadSetting(UserError):
    """A setting that cannot be, called as the command line calls it; `named` calls it otherwise."""

    def __init__(self, name: str, value: Any, why: str) -> None:
        self.name, self._said = name, f"{value!r} is not possible: {why}."
        super().__init__(f"{option(name)} {self._said}")

    def named(self, label: str) -> UserError:
        """The same for a view with labels of its own."""
        return UserError(f"{label} = {self._said}")


def option(name: str) -> str:
    """How a setting is written on the command line: `learning_rate` is `--learning-rate`."""
    return f"--{name.replace('_', '-')}"


def local_path(model: str) -> Path | None:
    """The absolute path of a model that is a local folder or file; None for presets and hub ids."""
    from spt.presets import PRESETS

    if model in PRESETS:
        return None
    try:
        path = Path(model).expanduser()
        return path.resolve() if path.exists() else None
    except (OSError, RuntimeError):  # no such home, or longer than a path may be
        return None


def _resolved(path: str) -> str:
    try:
        return str(Path(path).expanduser().resolve())
    except (OSError, RuntimeError):  # no such home; whoever reads it says so
        return path


class RunSpec(BaseModel):
    """All settings of one run. The values are spt's documented defaults (README, "Protocol"), not the authors'."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    model: str = Field("bundled", min_length=1, description="preset, hub id, local folder of safetensors, or GGUF file")
    revision: str | None = Field(None, description="branch, tag or commit of a hub model")
    benchmark: str = Field(
        "capitals", min_length=1, description="name of a benchmark, a .jsonl or .csv file, or lm_eval:<task or .yaml>"
    )
    precision: Precision = Field("auto", description="auto = bf16 on CUDA, fp32 on a CPU")
    chat_template: ChatTemplate = Field("auto", description="auto = on for post-trained models")
    shots: int = Field(3, ge=1, le=32, description="worked examples in the few-shot prompt")
    virtual_tokens: int = Field(10, ge=1, le=1000, description="vectors in the soft prompt")
    steps: int = Field(80, ge=1, le=10_000, description="optimizer steps")
    batch_size: int = Field(8, ge=1, le=1024, description="training rows a step")
    learning_rate: float = Field(0.1, gt=0, le=10, description="AdamW step size in units of the RMS of the embeddings")
    seed: int = Field(0, ge=0, le=2**31 - 1, description="initial vectors, order of training rows, few-shot examples")
    items: int = Field(64, ge=1, le=1_000_000, description="test items to score, at most")
    probe_every: int = Field(10, ge=0, le=10_000, description="score a few test items every k steps; 0 = never")
    probe_items: int = Field(16, ge=1, le=10_000, description="how many test items a probe scores")
    seeds: int = Field(1, ge=1, le=16, description="soft prompts tuned together, from --seed on")
    control: tuple[Control, ...] = Field(
        (), description="tuned along: shuffled = on answers permuted among rows, valid-format = on any in the form"
    )
    method: tuple[Further, ...] = Field(
        (), description="further method to compare with: lora, an adapter tuned on the same rows with the same steps"
    )
    holdout_topic: str | None = Field(None, description="tune on all other topics and test on this one alone")
    data_dir: str | None = Field(None, description="folder of <hub id>/<config>/<split>.jsonl in place of the hub")
    answer_format: str | None = Field(None, description="own file: option-copy, hash, phrase, boxed or pattern")
    template: str | None = Field(None, description="own file: the target, with {answer} in it")
    pattern: str | None = Field(None, description="own file: regular expression of an answer, its group 1 the answer")

    @field_validator("model")
    @classmethod
    def _absolute(cls, model: str) -> str:
        """A local path means the same from every folder."""
        path = local_path(model)
        return model if path is None else str(path)

    @field_validator("benchmark")
    @classmethod
    def _absolute_file(cls, benchmark: str) -> str:
        """So does a file of questions, or of an lm-evaluation-harness task."""
        kind, colon, path = benchmark.rpartition(":")
        if not path.endswith((".jsonl", ".csv", ".yaml", ".yml")):
            return benchmark
        return f"{kind}{colon}{_resolved(path)}"

    @field_validator("data_dir")
    @classmethod
    def _absolute_folder(cls, folder: str | None) -> str | None:
        return None if not folder else _resolved(folder)

    @field_validator("control", "method")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted(set(names)))

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The soft prompts of this run: the one that is reported as `soft_prompt`, further seeds, controls."""
        seeds = [Arm(f"seed-{self.seed + i}", self.seed + i) for i in range(1, self.seeds)]
        return (Arm("soft_prompt", self.seed), *seeds, *(Arm(name, self.seed, name) for name in self.control))

    @property
    def methods(self) -> tuple[Method, ...]:
        """All that this run answers with: the three methods, further arms with the tuned items, and further methods."""
        further = [arm.name for arm in self.arms[1:]]
        return (*METHODS, *further, *([TUNED_ITEMS] if further else []), *self.method)

    @classmethod
    def parse(cls, **settings: Any) -> RunSpec:
        """Build a spec from user input. Raises BadSetting, a UserError, for the first setting that cannot be."""
        try:
            return cls(**settings)
        except ValidationError as error:
            first = error.errors()[0]
            raise BadSetting(str(first["loc"][0]), first["input"], first["msg"].lower()) from None

    @property
    def run_id(self) -> str:
        """Stable content hash of the settings: 12 hex digits behind a readable stem, safe as a folder name."""
        unused = {name for name in _LATER if getattr(self, name) == type(self).model_fields[name].default}
        canonical = json.dumps({"protocol": PROTOCOL, **self.model_dump(exclude=unused)}, sort_keys=True)
        readable = "-".join(text.rstrip("/").split("/")[-1] for text in (self.benchmark, self.model)).lower()
        stem = "".join(c if c.isascii() and c.isalnum() else "-" for c in readable).strip("-")[:40]
        return f"{stem}-{hashlib.sha256(canonical.encode()).hexdigest()[:12]}"

    def command(self) -> str:
        """The command line that starts this very run; only settings that differ from the defaults are written."""
        import shlex

        words = ["python", "-m", "spt", "run"]
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if isinstance(value, tuple):
                for each in value:
                    words += [option(name), str(each)]
            elif value != field.default or name in ("model", "benchmark"):
                words += [option(name), str(value)]
        return shlex.join(words)

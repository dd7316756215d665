"""RunSpec: every setting of a run, validated, frozen and hashed into the run id.

The same settings have the same run id everywhere: running them again shows the stored result, or goes on where it
stopped.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

Precision = Literal["auto", "fp32", "bf16", "4bit"]
ChatTemplate = Literal["auto", "on", "off"]
Method = Literal["zero_shot", "few_shot", "soft_prompt"]
METHODS: tuple[Method, ...] = get_args(Method)

# Part of the hash: raised whenever the same settings would give other numbers than before.
PROTOCOL = 1


class UserError(Exception):
    """Something the user can mend. The message, shown without traceback, says what is wrong and what to do."""


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


class RunSpec(BaseModel):
    """All settings of one run. The values are spt's documented defaults (README, "Protocol"), not the authors'."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    model: str = Field("bundled", min_length=1, description="preset, hub id, or local folder of safetensors")
    revision: str | None = Field(None, description="branch, tag or commit of a hub model")
    benchmark: str = Field("capitals", min_length=1, description="name of a benchmark")
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

    @field_validator("model")
    @classmethod
    def _absolute(cls, model: str) -> str:
        """A local path means the same from every folder."""
        path = local_path(model)
        return model if path is None else str(path)

    @classmethod
    def parse(cls, **settings: Any) -> RunSpec:
        """Build a spec from user input. Raises UserError with one sentence naming the first bad setting."""
        try:
            return cls(**settings)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"]) or "spec"
            raise UserError(f"{name} = {first['input']!r} is not possible: {first['msg'].lower()}.") from None

    @property
    def run_id(self) -> str:
        """Stable content hash of the settings: 12 hex digits behind a readable stem, safe as a folder name."""
        canonical = json.dumps({"protocol": PROTOCOL, **self.model_dump()}, sort_keys=True)
        readable = f"{self.benchmark}-{self.model.rstrip('/').split('/')[-1]}".lower()
        stem = "".join(c if c.isascii() and c.isalnum() else "-" for c in readable).strip("-")[:40]
        return f"{stem}-{hashlib.sha256(canonical.encode()).hexdigest()[:12]}"

    def command(self) -> str:
        """The command line that starts this very run; only settings that differ from the defaults are written."""
        import shlex

        words = ["python", "-m", "spt", "run"]
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if value != field.default or name in ("model", "benchmark"):
                words += [f"--{name.replace('_', '-')}", str(value)]
        return shlex.join(words)

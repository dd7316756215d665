"""The soft prompt as virtual tokens: L trainable vectors behind L token ids just above the vocabulary.

A prompt is then a plain list of ids, `[BOS] [V … V+L-1] question`, and left padding, position ids, cached generation
and likelihood scoring are the library's ordinary paths. Soft prompts: Lester et al. 2021 (arXiv:2104.08691); their use
for evaluation: arXiv:2606.12117.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from pydantic import BaseModel, Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as save_tensors
from torch import Tensor, nn
from transformers import PreTrainedModel

from spt.spec import UserError

if TYPE_CHECKING:
    from peft import PeftConfig

ADAPTER_WEIGHTS = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
PROVENANCE = "spt.json"
TENSOR_NAME = "prompt_embeddings"  # PEFT's name for it


class VirtualTokens(nn.Module):
    """Input embedding that looks ids >= V up in the soft prompt and passes all others on to the model's own module.

    V is the number of rows of the model's embedding table. The vectors are float32 whatever the model's precision
    (an update of 2e-5 vanishes in bfloat16) and are cast where they are looked up. They stand in for the *output* of
    the embedding module, behind any scaling it does (Gemma multiplies by √D).
    """

    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.first_id = embedding.num_embeddings
        self.vectors: nn.Parameter | None = None

    @classmethod
    def attach(cls, model: PreTrainedModel) -> VirtualTokens:
        """Put virtual tokens under a model; a second call returns the ones that are there. Freezes the model."""
        embedding: Any = model.get_input_embeddings()
        if isinstance(embedding, cls):
            return embedding
        model.requires_grad_(False)
        virtual = cls(embedding)
        model.set_input_embeddings(virtual)
        return virtual

    @property
    def weight(self) -> Tensor:
        """The model's own table, (V, D), for library code that asks an embedding for it."""
        return self.embedding.weight

    @property
    def ids(self) -> list[int]:
        """The virtual token ids, V … V+L-1. Empty without a prompt."""
        return [] if self.vectors is None else list(range(self.first_id, self.first_id + len(self.vectors)))

    def set(self, vectors: Tensor | None) -> None:
        """Take (L, D) float32 vectors as the trainable prompt, copied to the model's device; None takes it out."""
        if vectors is None:
            self.vectors = None
        else:
            self.vectors = nn.Parameter(vectors.detach().to(self.weight.device, torch.float32, copy=True))

    def forward(self, input_ids: Tensor) -> Tensor:
        """(B, T) ids -> (B, T, D) in the model's dtype."""
        if self.vectors is None:
            return self.embedding(input_ids)
        is_virtual = input_ids >= self.first_id
        embedded = self.embedding(input_ids.masked_fill(is_virtual, 0))
        looked_up = self.vectors[(input_ids - self.first_id).clamp(min=0)]
        return torch.where(is_virtual.unsqueeze(-1), looked_up.to(embedded.dtype), embedded)

    @torch.no_grad()
    def rms(self) -> float:
        """Root mean square of the elements of all embeddings the vocabulary has, as the model sees them.

        The unit of the learning rate: a vector of SmolLM2 has norm 3, one of Gemma 3 norm 26.
        """
        total, count = 0.0, 0
        for ids in torch.arange(self.first_id, device=self.weight.device).split(8192):
            embedded = self.embedding(ids).float()
            total += embedded.square().sum(dtype=torch.float64).item()
            count += embedded.numel()
        return (total / count) ** 0.5


def adapter_config(config: PeftConfig) -> bytes:
    """`adapter_config.json` as PEFT writes it, which it does to a folder only."""
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        return (Path(folder) / ADAPTER_CONFIG).read_bytes()


class Provenance(BaseModel):
    """Where an adapter comes from; kept beside it as `spt.json`."""

    model: str
    revision: str | None = None
    benchmark: str
    position: str = Field(description="where the vectors stand, e.g. `[BOS] [S] question`")
    chat_template: bool
    spec: dict[str, Any]
    versions: dict[str, str]


@dataclass(frozen=True)
class SoftPrompt:
    """Tuned vectors, (L, D) float32 on the CPU, and their provenance."""

    vectors: Tensor
    provenance: Provenance

    def files(self) -> dict[str, bytes]:
        """The prompt as a PEFT adapter folder: `adapter_config.json`, `adapter_model.safetensors`, and `spt.json`.

        PEFT puts the vectors before the whole input; see `provenance.position` for where they were tuned to stand.
        """
        from peft import PromptTuningConfig, TaskType

        length, width = self.vectors.shape
        config = PromptTuningConfig(
            task_type=TaskType.CAUSAL_LM,
            base_model_name_or_path=self.provenance.model,
            revision=self.provenance.revision,
            inference_mode=True,
            num_virtual_tokens=length,
            token_dim=width,
            num_transformer_submodules=1,
        )
        return {
            ADAPTER_CONFIG: adapter_config(config),
            ADAPTER_WEIGHTS: save_tensors({TENSOR_NAME: self.vectors.contiguous()}, metadata={"format": "pt"}),
            PROVENANCE: self.provenance.model_dump_json(indent=2).encode(),
        }

    def save(self, folder: Path) -> None:
        """Write the files into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files().items():
            (folder / name).write_bytes(content)

    @classmethod
    def load(cls, folder: Path) -> SoftPrompt:
        """Read a saved prompt. Raises UserError where the folder is not one."""
        try:
            vectors = load_file(folder / ADAPTER_WEIGHTS)[TENSOR_NAME]
            provenance = Provenance.model_validate(json.loads((folder / PROVENANCE).read_text()))
        except (OSError, KeyError, ValueError, ValidationError, SafetensorError) as error:
            raise UserError(f"{folder} holds no soft prompt that spt saved ({type(error).__name__}).") from None
        return cls(vectors.float(), provenance)

    def check_fits(self, model: str, revision: str | None, width: int, force: bool = False) -> bool:
        """Raise UserError unless this prompt was tuned for that model: vectors mean nothing in another one's space.

        With `force` another model or revision of the same width passes, and False says that this is a transfer.
        """
        tuned = self.provenance
        if self.vectors.shape[1] != width:
            raise UserError(
                f"This prompt was tuned for {tuned.model} (width {self.vectors.shape[1]}) and cannot be used "
                f"with {model} (width {width}); tune one for this model."
            )
        fits = (tuned.model, tuned.revision) == (model, revision)
        if not fits and not force:
            raise UserError(
                f"This prompt was tuned for {tuned.model} at revision {tuned.revision or 'default'}, not for {model} "
                f"at revision {revision or 'default'}; tune one for this model, or score it all the "
                "same with `spt eval --force-transfer`."
            )
        return fits

"""LoRA as a comparison arm: an adapter in all linear layers, tuned with the soft prompt's steps on the same rows.

Hu et al. 2021 (arXiv:2106.09685), through PEFT. The settings are spt's own defaults, and nobody else's: see
docs/calibration.md for how the learning rate was chosen. There are no virtual tokens here, so the prompt is that of
zero-shot answers. The model is the run's own, with the adapter put in for a while; `remove` gives it back as it was.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
from peft import LoraConfig, PeftModel, TaskType, get_peft_model, get_peft_model_state_dict
from peft.tuners.tuners_utils import BaseTunerLayer
from safetensors.torch import save as save_tensors
from torch import nn
from transformers import PreTrainedModel

from spt.events import LoraStep, Message, PhaseStarted, PromptFiles
from spt.models import LoadedModel
from spt.prompt import ADAPTER_CONFIG, ADAPTER_WEIGHTS, PROVENANCE, Provenance, adapter_config
from spt.spec import LORA, RunSpec, UserError
from spt.tuning import MAX_GRAD_NORM, Steps, TrainingRow

RANK = 8
ALPHA = 16  # the adapter is scaled by ALPHA / RANK
LEARNING_RATE = 1e-3
CHECKPOINT_SECONDS = 10.0
# Modules that PEFT refuses by name, since Mamba's fused kernels read their weights past any adapter.
_MAMBA = ("mamba", "mamba2", "falcon_mamba", "falcon_h1", "nemotron_h")


def config(model: PreTrainedModel) -> LoraConfig:
    """Every linear layer but the head, without dropout."""
    fused = getattr(model.config, "model_type", None) in _MAMBA
    return LoraConfig(
        task_type=TaskType.CAUSAL_LM,
        r=RANK,
        lora_alpha=ALPHA,
        lora_dropout=0.0,
        target_modules="all-linear",
        exclude_modules=r".*\.(out_proj|conv1d)" if fused else None,
    )


def attach(model: PreTrainedModel, seed: int) -> PeftModel:
    """Put a fresh adapter into a model, in place: as long as it is there, the model answers with it.

    Its weights are float32 and come from the seed; at first they change nothing. Raises UserError for a model without
    a place for them, which is then as it was.
    """
    try:
        with torch.random.fork_rng([model.device] if model.device.type == "cuda" else []):
            torch.manual_seed(seed)
            return get_peft_model(model, config(model))
    except ValueError as error:
        remove(model)
        reason = str(error).splitlines()[0].rstrip(".")
        raise UserError(f"LoRA cannot be put into this model ({reason}): run without --method lora.") from error
    except BaseException:  # out of memory half way
        remove(model)
        raise


def remove(model: PreTrainedModel) -> None:
    """Take the adapter out: the model's own layers stand where they stood, untouched."""
    for name, module in list(model.named_modules()):
        if isinstance(module, BaseTunerLayer):
            model.set_submodule(name, module.get_base_layer())
    if hasattr(model, "peft_config"):
        del model.peft_config


class LoraTuner(Steps):
    """Tunes an adapter on the training rows of the real prompt, one optimizer step a call."""

    method, what = LORA, "lora_tuning"

    def __init__(
        self,
        loaded: LoadedModel,
        rows: dict[int, TrainingRow],
        train_size: int,
        spec: RunSpec,
        tokens_at_once: int | None = None,
    ) -> None:
        """Puts a fresh adapter into the model. No prefix is shared: it changes the keys and values of every token."""
        self.adapter = attach(loaded.model, spec.seed)
        tuned = [parameter for parameter in self.adapter.parameters() if parameter.requires_grad]
        super().__init__(loaded, tuned, [rows], train_size, spec, LEARNING_RATE, None, tokens_at_once)

    @property
    def trainable(self) -> int:
        """How many numbers are tuned."""
        return sum(parameter.numel() for parameter in self.parameters)

    def remove(self) -> None:
        """Take the adapter out of the model."""
        remove(self.loaded.model)

    def step(self) -> LoraStep:
        """One update."""
        (loss,), (norm,), rate, seconds = self._update()
        return LoraStep(step=self.step_done, loss=loss, learning_rate=rate, grad_norm=norm, seconds=seconds)

    def _clip(self) -> list[float]:
        return [nn.utils.clip_grad_norm_(self.parameters, MAX_GRAD_NORM).item()]


def tune(tuner: LoraTuner, provenance: Provenance) -> Iterator[Message]:
    """The steps that are left, and the adapter as files.

    A checkpoint is as large as the adapter three times over, so it is written every few seconds and not at each step.
    """
    steps = tuner.spec.steps
    yield PhaseStarted(phase="lora_tuning", total=steps)
    kept = time.monotonic()
    while tuner.step_done < steps:
        step = tuner.step()
        yield from tuner.notices
        tuner.notices.clear()
        yield step
        if tuner.step_done == steps or time.monotonic() - kept >= CHECKPOINT_SECONDS:
            yield tuner.checkpoint()
            kept = time.monotonic()
    yield PromptFiles(files(tuner.adapter, provenance), LORA)


def files(adapter: PeftModel, provenance: Provenance) -> dict[str, bytes]:
    """The adapter as a PEFT folder; the same weights give the same bytes."""
    tuned = adapter.peft_config["default"]
    assert isinstance(tuned, LoraConfig)
    tuned.target_modules = sorted(tuned.target_modules or ())  # a set, whose order changes from process to process
    tuned.base_model_name_or_path, tuned.revision = provenance.model, provenance.revision  # not a path of this machine
    tuned.inference_mode = True
    weights = get_peft_model_state_dict(adapter, save_embedding_layers=False)
    return {
        ADAPTER_CONFIG: adapter_config(tuned),
        ADAPTER_WEIGHTS: save_tensors({n: t.cpu().contiguous() for n, t in weights.items()}, metadata={"format": "pt"}),
        PROVENANCE: provenance.model_dump_json(indent=2).encode(),
    }

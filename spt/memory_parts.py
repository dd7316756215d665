"""The parts of a memory estimate, from a model's config: weights, a tuning step, a batch of answers.

The model is built on torch's meta device, where tensors have shapes and no data, and is run there once with the
gradient and once without. `LiveBytes` adds up what is alive meanwhile. So any architecture that transformers has is
counted as it is, without a formula for each, in some tenths of a second.
"""

from __future__ import annotations

import copy
import inspect
import weakref
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel

from spt import bundled, hub
from spt.batching import plain_logits
from spt.benchmarks import canonical
from spt.evaluation import EVAL_BATCH
from spt.machine import device_name
from spt.memory import Estimate, Suggestion, Workload, free_ram, gigabytes, verdict
from spt.model_checks import NF4_BYTES, read_config, skeleton, weight_bytes
from spt.models import device, resolve_precision
from spt.quiet import quiet
from spt.spec import LORA, RunSpec, UserError, local_path
from spt.tuning import TOKENS_AT_ONCE

# Bytes beside the model's: Python, torch and transformers on a CPU; CUDA's context and its libraries' buffers on a GPU.
LIBRARIES = {"cpu": 550 << 20, "cuda": 800 << 20}
# Bytes of all copies of a logit while its loss is made and its gradient flows back: the logit as selected, as float32,
# its log-softmax and the gradient of that. The head's own output is counted apart.
LOGIT_COPIES = 14
# The same where options are ranked: as the head made it, behind the context's, as float32, and its log-softmax.
RANKED_COPIES = 12
# The configs of models that come as packages, for a machine that has not fetched them yet.
PACKAGED: dict[str, dict[str, Any]] = {
    "bundled": {
        "model_type": "llama", "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
        "num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 64, "vocab_size": 49152,
        "max_position_embeddings": 8192, "tie_word_embeddings": True,
    },
    "gemma-3-270m": {
        "model_type": "gemma3_text", "hidden_size": 640, "intermediate_size": 2048, "num_hidden_layers": 18,
        "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 262144,
        "max_position_embeddings": 32768, "sliding_window": 512, "tie_word_embeddings": True,
    },
}  # fmt: skip


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of tensors that are made under it and are still alive, as an allocator would."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._sizes = {t.untyped_storage()._cdata: 0 for t in (*model.parameters(), *model.buffers())}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default and args[0].is_meta:
            return False  # "is the mask full?" and the like: the answer that needs more memory
        made = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, Tensor):
                self._add(tensor.untyped_storage())
        return made

    def _add(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key not in self._sizes:
            self._sizes[key] = storage.nbytes()
            self.now += storage.nbytes()
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._drop, key)

    def _drop(self, key: int) -> None:
        self.now -= self._sizes.pop(key)


class _Attention(torch.autograd.Function):
    """Attention as memory sees it on a real device: what the fused kernels keep is linear in the length."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        out = query.new_empty(*query.shape[:-1], value.shape[-1])
        ctx.save_for_backward(query, key, value, out, query.new_empty(query.shape[:-1], dtype=torch.float32))
        return out


class _FusedAttention(TorchFunctionMode):
    """On the meta device torch would take the plain attention, which keeps a matrix of length × length."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is scaled_dot_product_attention:
            return _Attention.apply(*(args[:3] or (kwargs[name] for name in ("query", "key", "value"))))
        return func(*args, **(kwargs or {}))


@dataclass(frozen=True)
class Parts:
    """Bytes; see `memory.Estimate`."""

    parameters: int
    weights: int
    tuning: dict[str, int]
    answers: dict[str, int]
    rough: bool = False


def estimate(config: PreTrainedConfig, precision: str, work: Workload, cuda: bool, lora: bool = False) -> Parts:
    """What a model needs in a precision ("fp32", "bf16", "4bit") for a workload, without its weights.

    lora: whether LoRA is tuned as well, after the prompt; the larger of the two counts.
    """
    model = skeleton(config, precision, cuda)
    linear = [m.weight for m in model.modules() if isinstance(m, nn.Linear) and m is not model.get_output_embeddings()]
    # A quantised matrix is unpacked where it is multiplied, one at a time.
    bits = 8 * NF4_BYTES if precision == "4bit" else _stored_bits(config)
    unpacked = max((weight.nbytes for weight in linear), default=0) if bits else 0
    rough = False
    try:
        with quiet():
            tuning, answers = _tuning(model, work, cuda), _answers(model, work)
    except Exception:  # an architecture whose forward pass needs real numbers, whatever it raises then
        tuning, answers = _by_rule(config, model, work, cuda)
        rough = True
    parameters, weights = model.num_parameters(), weight_bytes(model, bits)
    if lora and not rough:
        with quiet():
            tuning = max(tuning, _lora_tuning(model, work, cuda), key=lambda parts: sum(parts.values()))
    tuning["activations"] += unpacked
    answers["work"] += unpacked
    return Parts(parameters, weights, tuning, answers, rough)


def _stored_bits(config: PreTrainedConfig) -> float | None:
    """Bits a weight of a model that is stored quantised, scales included; None for one that is not."""
    stored = getattr(config, "quantization_config", None)
    if not stored:
        return None
    facts: dict[str, Any] = stored if isinstance(stored, dict) else stored.to_dict()
    named = {"mxfp4": 4, "fp8": 8, "fbgemm_fp8": 8}.get(str(facts.get("quant_method")))
    four = facts.get("load_in_4bit") or facts.get("_load_in_4bit")
    return float(named or facts.get("bits") or (4 if four else 8)) + 0.5


def part_of_step(work: Workload, cuda: bool) -> int:
    """Training rows that go through the model together."""
    return min(work.rows, max(1, TOKENS_AT_ONCE["cuda" if cuda else "cpu"] // work.row_tokens))


def _tuning(model: PreTrainedModel, work: Workload, cuda: bool) -> dict[str, int]:
    ids = torch.zeros(part_of_step(work, cuda), work.row_tokens, dtype=torch.long, device="meta")
    live = LiveBytes(model)
    embedding: Any = model.get_input_embeddings()
    with ExitStack() as stack:
        # As with soft-prompt vectors: the gradient has to reach the output of the embedding.
        hook = embedding.register_forward_hook(lambda module, arguments, out: out.detach().requires_grad_())
        stack.callback(hook.remove)
        stack.enter_context(_FusedAttention())
        stack.enter_context(live)
        logits = plain_logits(model, ids, torch.ones_like(ids), work.target_tokens + 1)
    head = logits.untyped_storage().nbytes()
    losses = ids.shape[0] * work.target_tokens * logits.shape[-1] * LOGIT_COPIES
    return {"activations": live.peak - head, "logits": head + losses}


def _lora_tuning(model: PreTrainedModel, work: Workload, cuda: bool) -> dict[str, int]:
    """The same step with an adapter in the model, which is left there: its copies of every layer's input count too."""
    from spt import lora  # PEFT: seconds, for the estimates that need it

    adapter = lora.attach(model, seed=0)
    trained = sum(parameter.numel() for parameter in adapter.parameters() if parameter.requires_grad)
    # Weight, gradient and Adam's two moments of each, float32.
    return {"LoRA and its optimizer": 16 * trained, **_tuning(model, work, cuda)}


def _answers(model: PreTrainedModel, work: Workload) -> dict[str, int]:
    length = work.context_tokens + work.answer_tokens
    ids = torch.zeros(EVAL_BATCH, length, dtype=torch.long, device="meta")
    keep = {"logits_to_keep": 1} if "logits_to_keep" in inspect.signature(model.forward).parameters else {}
    live = LiveBytes(model)
    with torch.no_grad(), _FusedAttention(), live:
        output = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=True, **keep)
    logits = output.logits
    cache = live.now - logits.untyped_storage().nbytes()  # nothing else is left alive
    spent = live.peak - cache
    ranked = work.options * (work.context_tokens + work.target_tokens) / length
    if work.options > 1:  # the cache is repeated for every option, and every position of an option gives logits
        positions = EVAL_BATCH * work.options * work.target_tokens
        spent = max(spent, positions * logits.shape[-1] * RANKED_COPIES)
    return {"keys and values": int(cache * max(1.0, ranked)), "work": spent}


def _by_rule(
    config: PreTrainedConfig, model: PreTrainedModel, work: Workload, cuda: bool
) -> tuple[dict[str, int], dict[str, int]]:
    """A rule of thumb: what a layer of an ordinary transformer keeps of a token."""
    text = config.get_text_config(decoder=True)
    width, layers = text.hidden_size, text.num_hidden_layers
    inner = getattr(text, "intermediate_size", None) or 4 * width
    inner = max(inner) if isinstance(inner, list | tuple) else inner
    wide, rows = model.dtype.itemsize, part_of_step(work, cuda)
    kept = layers * (8 * width + 4 * inner) * wide
    logits = text.vocab_size * rows * (work.target_tokens + 1) * (wide + LOGIT_COPIES)
    length = EVAL_BATCH * (work.context_tokens + work.answer_tokens)
    cache = 2 * layers * width * wide * length * work.options
    ranked = EVAL_BATCH * work.options * work.target_tokens * text.vocab_size * RANKED_COPIES
    return (
        {"activations": rows * work.row_tokens * kept, "logits": logits},
        {"keys and values": cache, "work": max(ranked, length * (8 * width + 4 * inner) * wide)},
    )


def config_of(spec: RunSpec, timeout: float = 10.0) -> PreTrainedConfig:
    """The config of a spec's model; of a hub model that file alone is fetched. Raises UserError where it cannot be."""
    name = spec.model
    if name in bundled.PACKAGES:
        if bundled.cached(name):
            return read_config(bundled.PACKAGES[name].folder, name)
        return AutoConfig.for_model(**PACKAGED[name])
    path = local_path(name)
    if path is None:
        return read_config(hub.fetch_config(name, spec.revision, timeout), name)
    if path.is_dir() and (path / "config.json").exists():
        return read_config(path, name)
    return _gguf_config(path)


def _gguf_config(path: Path) -> PreTrainedConfig:
    file = path if path.is_file() else next(iter(sorted(path.glob("*.gguf"))), path)
    try:
        return AutoConfig.from_pretrained(str(file.parent), gguf_file=file.name)
    except Exception as error:  # not a GGUF file, cut short, or of a kind that transformers does not know
        raise UserError(f"{path} is neither a model folder with a config.json nor a readable GGUF file.") from error


def of_spec(spec: RunSpec, timeout: float = 10.0) -> Estimate:
    """See `memory.of_spec`. timeout: seconds for the hub to answer."""
    spec = canonical(spec)
    target = device()
    cuda = target.type == "cuda"
    with quiet():
        config = config_of(spec, timeout)
        work = Workload.of(spec)
    stored = bool(getattr(config, "quantization_config", None))
    precision = resolve_precision(spec.precision, target)
    path = local_path(spec.model)
    gguf = path is not None and not (path / "config.json").exists()
    if precision == "4bit" and (gguf or stored):
        raise UserError(f"{spec.model} cannot be loaded in 4bit, it is stored quantised: choose auto instead.")
    parts = estimate(config, precision, work, cuda, LORA in spec.method)
    free, capacity = torch.cuda.mem_get_info(target) if cuda else (free_ram(), _ram())
    found = Estimate(
        model=spec.model, revision=spec.revision, precision="stored" if stored else precision,
        device=device_name(target).split(",")[0], cuda=cuda, parameters=parts.parameters, weights=parts.weights,
        tuning=parts.tuning, answers=parts.answers, libraries=LIBRARIES[target.type], work=work, free=free,
        capacity=capacity, rough=parts.rough,
    )  # fmt: skip
    if found.verdict != "fits":
        suggestions = _suggestions(found, config, spec, quantisable=not (gguf or stored))
        return found.model_copy(update={"suggestions": suggestions})
    return found


def _ram() -> int:
    import psutil

    return psutil.virtual_memory().total


def _suggestions(found: Estimate, config: PreTrainedConfig, spec: RunSpec, quantisable: bool) -> tuple[Suggestion, ...]:
    """What would need less, in order: 4 bits, a smaller part of a step, fewer examples, another model."""
    tried: list[tuple[str, dict[str, Any]]] = []
    if quantisable and found.precision in ("fp32", "bf16"):
        tried.append(("--precision 4bit", {"precision": "4bit"}))
    if spec.batch_size > 1:
        tried.append(("--batch-size 1", {"batch_size": 1}))
    if spec.shots > 1:
        tried.append(("--shots 1", {"shots": 1}))
    offered = []
    for option, change in tried:
        changed = spec.model_copy(update=change)
        precision = str(change.get("precision", found.precision))
        with quiet():
            work = Workload.of(changed)
            parts = estimate(copy.deepcopy(config), precision, work, found.cuda, LORA in spec.method)
        total = found.model_copy(
            update={"weights": parts.weights, "tuning": parts.tuning, "answers": parts.answers}
        ).total
        if total < 0.98 * found.total:
            text = f"{option} (about {gigabytes(total)})"
            fits = verdict(total, found.free) != "does not fit"
            offered.append(Suggestion(text=text, change=change, total=total, fits=fits))
    if not any(suggestion.fits for suggestion in offered):
        offered.append(Suggestion(text="a smaller model"))
    return tuple(offered)

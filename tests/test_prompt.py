"""Virtual tokens on many architectures: cached, padded, saved and loaded, they are always the same prompt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, GenerationConfig

from spt import models
from spt.batching import left_pad, plain_logits
from spt.models import LoadedModel
from spt.prompt import Provenance, SoftPrompt, VirtualTokens
from spt.spec import UserError
from tests.tiny import ARCHITECTURES

LENGTH = 5
Tiny = Callable[[str], Path]


@pytest.fixture(params=ARCHITECTURES)
def folder(request: pytest.FixtureRequest, tiny: Tiny) -> Path:
    return tiny(request.param)


@pytest.fixture
def loaded(folder: Path) -> LoadedModel:
    return models.load(str(folder))


def random_prompt(virtual: VirtualTokens, seed: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(LENGTH, virtual.embedding.embedding_dim, generator=generator) * virtual.rms()


def attach(loaded: LoadedModel) -> VirtualTokens:
    virtual = VirtualTokens.attach(loaded.model)
    virtual.set(random_prompt(virtual))
    return virtual


def contexts(loaded: LoadedModel, virtual: VirtualTokens) -> list[list[int]]:
    """Rows of unlike length, longer than the tiny models' sliding windows, with the prompt in front or inside."""
    generator = torch.Generator().manual_seed(7)
    rows = [torch.randint(5, 200, (n,), generator=generator).tolist() for n in (4, 23, 11)]
    return [row[:1] + virtual.ids + row[1:] for row in rows]


def no_cache_greedy(loaded: LoadedModel, row: list[int], count: int) -> list[int]:
    """The reference: the whole row anew for every token, no cache, no padding, no generate()."""
    row = list(row)
    start = len(row)
    for _ in range(count):
        logits = loaded.model(input_ids=torch.tensor([row]), use_cache=False).logits
        row.append(int(logits[0, -1].argmax()))
    return row[start:]


def cached_greedy(loaded: LoadedModel, rows: list[list[int]], count: int) -> list[list[int]]:
    ids, mask = left_pad(rows, loaded.device)
    config = GenerationConfig(max_new_tokens=count, do_sample=False, pad_token_id=loaded.pad_id, eos_token_id=None)
    output = loaded.model.generate(input_ids=ids, attention_mask=mask, generation_config=config)
    return output[:, ids.shape[1] :].tolist()


@torch.no_grad()
def test_batched_cached_decoding_equals_the_no_cache_reference(loaded: LoadedModel) -> None:
    virtual = attach(loaded)
    rows = contexts(loaded, virtual)
    reference = [no_cache_greedy(loaded, row, 8) for row in rows]
    assert [cached_greedy(loaded, [row], 8)[0] for row in rows] == reference
    assert cached_greedy(loaded, rows, 8) == reference


@torch.no_grad()
def test_the_prompt_changes_the_output_and_nothing_of_the_vocabulary(loaded: LoadedModel) -> None:
    plain_row = contexts(loaded, VirtualTokens.attach(loaded.model))[1]
    before = loaded.model(input_ids=torch.tensor([plain_row])).logits
    virtual = attach(loaded)
    after = loaded.model(input_ids=torch.tensor([plain_row])).logits
    assert torch.equal(before, after)
    assert after.shape[-1] == virtual.first_id
    row = contexts(loaded, virtual)[1]
    one = loaded.model(input_ids=torch.tensor([row])).logits[0, -1]
    virtual.set(random_prompt(virtual, seed=2))
    other = loaded.model(input_ids=torch.tensor([row])).logits[0, -1]
    assert not torch.allclose(one, other, atol=1e-3)


def test_only_the_prompt_has_a_gradient_and_changes(loaded: LoadedModel) -> None:
    virtual = attach(loaded)
    assert virtual.vectors is not None
    frozen = {name: p.clone() for name, p in loaded.model.named_parameters() if p is not virtual.vectors}
    trained = virtual.vectors.detach().clone()
    optimizer = torch.optim.AdamW([p for p in loaded.model.parameters() if p.requires_grad], lr=0.1, weight_decay=0.0)
    ids, mask = left_pad(contexts(loaded, virtual), loaded.device)
    plain_logits(loaded.model, ids, mask, 2).float().log_softmax(-1)[..., 3].sum().backward()
    assert [n for n, p in loaded.model.named_parameters() if p.grad is not None] == [
        n for n, p in loaded.model.named_parameters() if p is virtual.vectors
    ]
    assert bool(virtual.vectors.grad.isfinite().all())  # type: ignore[union-attr]
    assert bool((virtual.vectors.grad != 0).any(dim=1).all()), "every vector takes part"  # type: ignore[union-attr]
    optimizer.step()
    assert not torch.equal(virtual.vectors, trained)
    assert all(torch.equal(p, frozen[n]) for n, p in loaded.model.named_parameters() if n in frozen)


def provenance(name: str) -> Provenance:
    return Provenance(model=name, benchmark="b", position="[S]", chat_template=False, spec={}, versions={})


@torch.no_grad()
def test_a_saved_prompt_is_the_same_and_peft_reads_it(loaded: LoadedModel, folder: Path, tmp_path: Path) -> None:
    virtual = attach(loaded)
    assert virtual.vectors is not None
    text = contexts(loaded, virtual)[1][1 + LENGTH :]
    ids = torch.tensor([virtual.ids + text])
    ours = loaded.model(input_ids=ids).logits
    SoftPrompt(virtual.vectors.detach(), provenance(loaded.name)).save(tmp_path)

    virtual.set(random_prompt(virtual, seed=3))
    virtual.set(SoftPrompt.load(tmp_path).vectors)
    assert torch.equal(loaded.model(input_ids=ids).logits, ours)

    base = AutoModelForCausalLM.from_pretrained(folder).eval()
    extra = {}
    if hasattr(base.model if hasattr(base, "model") else base, "get_per_layer_inputs"):
        # Gemma 3n looks every id up in a second table; PEFT passes embeddings only, so the ids' rows are handed over.
        extra["per_layer_inputs"] = base.model.get_per_layer_inputs(ids)
    peft_model = PeftModel.from_pretrained(base, tmp_path).eval()
    theirs = peft_model(input_ids=torch.tensor([text]), attention_mask=torch.ones(1, len(text)), **extra).logits
    torch.testing.assert_close(theirs[:, -len(text) :], ours[:, -len(text) :], atol=1e-5, rtol=1e-5)


def test_a_prompt_of_another_model_is_refused(tmp_path: Path) -> None:
    SoftPrompt(torch.zeros(3, 8), provenance("one")).save(tmp_path)
    prompt = SoftPrompt.load(tmp_path)
    prompt.check_fits("one", None, 8)
    with pytest.raises(UserError, match=r"tuned for one \(width 8\)"):
        prompt.check_fits("one", None, 16)
    with pytest.raises(UserError, match="not for two"):
        prompt.check_fits("two", None, 8)
    with pytest.raises(UserError, match="at revision default"):
        prompt.check_fits("one", "abc", 8)
    with pytest.raises(UserError, match="holds no soft prompt"):
        SoftPrompt.load(tmp_path / "nowhere")
    (tmp_path / "adapter_model.safetensors").write_bytes(b"torn")
    with pytest.raises(UserError, match="holds no soft prompt"):
        SoftPrompt.load(tmp_path)


def test_vectors_stay_float32_under_a_bf16_model(tiny: Tiny) -> None:
    loaded = models.load(str(tiny("llama")), precision="bf16")
    virtual = attach(loaded)
    assert virtual.vectors is not None and virtual.vectors.dtype == torch.float32
    assert virtual(torch.tensor([virtual.ids])).dtype == torch.bfloat16

"""Loading models: the bundled one, tiny ones in every form, and everything that can be wrong with a model."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, GenerationConfig, LlamaConfig, LlamaModel

from spt import models
from spt.bundled import cached
from spt.chat import is_post_trained
from spt.model_checks import available_memory, check_memory, read_config
from spt.models import LoadedModel
from spt.presets import accept_terms, terms_accepted
from spt.spec import UserError
from tests.tiny import ARCHITECTURES, CHAT_TEMPLATE, END, EOS, PAD, VOCABULARY, make

Tiny = Callable[[str], Path]
ROW = torch.arange(5, 45)[None]


def greedy(loaded: LoadedModel, text: str, count: int = 12) -> str:
    inputs = loaded.tokenizer(text, return_tensors="pt")
    plain = GenerationConfig(max_new_tokens=count, eos_token_id=list(loaded.eos_ids), pad_token_id=loaded.pad_id)
    ids = loaded.model.generate(**inputs, generation_config=plain)  # type: ignore[operator]
    return str(loaded.tokenizer.decode(ids[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True))


def edit_config(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


# --- the bundled model


def test_the_bundled_model_knows_and_chats(bundled: LoadedModel) -> None:
    assert (bundled.name, bundled.revision, bundled.post_trained) == ("bundled", "0.1.2", True)
    assert bundled.parameters == 134_515_008
    assert "Paris" in greedy(bundled, "The capital of France is")
    chat = bundled.tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is the capital of Japan?"}], tokenize=False, add_generation_prompt=True
    )
    assert str(chat).endswith("<|im_start|>assistant\n")
    assert "Tokyo" in greedy(bundled, str(chat))


def test_the_bundled_tokenizer_is_the_original_one(bundled: LoadedModel) -> None:
    tokenizer = bundled.tokenizer
    assert tokenizer.tokenize("12345 cats") == ["1", "2", "3", "4", "5", "Ġcats"]
    assert tokenizer.tokenize("it's 3+4=7") == ["it", "'s", "Ġ", "3", "+", "4", "=", "7"]
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<|im_start|>", "<|im_end|>")
    assert tokenizer.pad_token == "<|im_end|>"
    assert tokenizer("a")["input_ids"] == [tokenizer.convert_tokens_to_ids("a")]  # adds no BOS
    assert bundled.eos_ids == (2, 0)  # <|im_end|>, then <|endoftext|>
    text = 'Ünïcode 数字 １２ "quotes"\n\n  spaces\t'
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_a_revision_of_the_bundled_model_is_refused() -> None:
    with pytest.raises(UserError, match=r"pinned to 0\.1\.2"):
        models.load("bundled", revision="main")


def test_gemma_asks_for_its_terms_first(spt_home: Path) -> None:
    with pytest.raises(UserError, match="--accept-terms") as caught:
        models.load("gemma-3-270m")
    assert str(spt_home) in str(caught.value)
    assert "ai.google.dev/gemma/terms" in str(caught.value)
    assert not list(spt_home.glob("models/*"))
    accept_terms("gemma-3-270m")
    assert terms_accepted("gemma-3-270m")
    assert "Gemma Terms of Use" in (spt_home / "terms" / "gemma-3-270m.txt").read_text()
    with pytest.raises(UserError, match="no terms to accept"):
        accept_terms("nothing")


def test_the_gemma_base_model_knows_and_is_base(bundled_home: Path) -> None:
    if not terms_accepted("gemma-3-270m") or not cached("gemma-3-270m"):
        pytest.skip("gemma-3-270m is not in the cache: its terms are the user's to accept (--accept-terms)")
    gemma = models.load("gemma-3-270m")
    assert (gemma.revision, gemma.post_trained, gemma.parameters) == ("1.0.0", False, 268_098_176)
    assert "Tokyo" in greedy(gemma, "Question: What is the capital of Japan?\nAnswer:")
    assert gemma.tokenizer("2024")["input_ids"][0] == gemma.tokenizer.bos_token_id == 2
    assert gemma.tokenizer.tokenize("2024") == ["2", "0", "2", "4"]
    assert (gemma.eos_ids, gemma.pad_id) == ((1, 106), 0)  # <eos>, <end_of_turn>; <pad>


# --- local folders


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_loads_frozen(architecture: str, tiny: Tiny) -> None:
    folder = tiny(architecture)
    loaded = models.load(str(folder))
    assert loaded.name == str(folder) and str(loaded.revision).startswith("local-")
    assert not loaded.model.training
    assert not any(parameter.requires_grad for parameter in loaded.model.parameters())
    assert loaded.tokenizer.padding_side == "left"
    assert loaded.eos_ids[0] == EOS
    assert loaded.pad_id == PAD
    assert not loaded.post_trained
    expected = "bf16" if loaded.device.type == "cuda" else "fp32"
    assert loaded.precision == expected
    assert loaded.model.dtype == {"bf16": torch.bfloat16, "fp32": torch.float32}[expected]


def test_loading_is_silent(tiny: Tiny, capfd: pytest.CaptureFixture[str]) -> None:
    models.load(str(tiny("mamba2")))
    models.load(str(tiny("llama")), precision="4bit")
    output = capfd.readouterr()
    assert output.out == "" and output.err == ""


def test_bf16(tiny: Tiny) -> None:
    loaded = models.load(str(tiny("llama")), precision="bf16")
    assert {parameter.dtype for parameter in loaded.model.parameters()} == {torch.bfloat16}


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gemma3n_text", "mamba2"])
def test_4bit_answers_and_lets_gradients_through(architecture: str, tiny: Tiny) -> None:
    full = models.load(str(tiny(architecture)), precision="fp32")
    small = models.load(str(tiny(architecture)), precision="4bit")
    kinds = {type(module).__name__ for module in small.model.modules()}
    assert "Linear4bit" in kinds
    assert small.parameters == full.parameters
    assert small.model.get_memory_footprint() < full.model.get_memory_footprint()
    row = ROW.to(small.device)
    embedded = small.model.get_input_embeddings()(row).detach().requires_grad_()  # type: ignore[operator]
    logits = small.model(inputs_embeds=embedded).logits
    logits.float().logsumexp(-1).sum().backward()
    assert embedded.grad is not None and embedded.grad.abs().amin(-1).max() > 0
    assert not any(parameter.grad is not None for parameter in small.model.parameters())


def test_a_model_without_pad_token_pads_with_its_end(tiny: Tiny, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny("llama"), tmp_path / "model"))
    config = json.loads((folder / "tokenizer_config.json").read_text())
    del config["pad_token"]
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    loaded = models.load(str(folder))
    assert loaded.pad_id == EOS


def test_a_model_without_end_is_refused(tiny: Tiny, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny("llama"), tmp_path / "model"))
    config = json.loads((folder / "tokenizer_config.json").read_text())
    tokenizer = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").write_text(tokenizer.replace('"<eos>"', '"<stop>"'))
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "eos_token": None}))
    (folder / "generation_config.json").unlink()
    edit_config(folder, eos_token_id=None)
    with pytest.raises(UserError, match="no token that ends an answer"):
        models.load(str(folder))


# --- base or post-trained


def test_a_template_makes_a_model_post_trained_if_its_end_of_turn_is_an_end(tmp_path: Path) -> None:
    """Qwen's base models carry the family's template too, and end at the end of the text instead of a turn."""
    folder = make("llama", tmp_path / "chatty", chat_template=True)
    base = models.load(str(folder))
    assert base.tokenizer.chat_template == CHAT_TEMPLATE
    assert not base.post_trained
    assert base.eos_ids == (EOS, END)  # it may write the end of a turn all the same

    ends = json.loads((folder / "generation_config.json").read_text()) | {"eos_token_id": [EOS, END]}
    (folder / "generation_config.json").write_text(json.dumps(ends))
    tuned = models.load(str(folder))
    assert tuned.post_trained
    ended = tuned.model.generation_config
    assert not is_post_trained(tuned.tokenizer, ended, "someone/Tiny-8B-Base")
    assert not is_post_trained(tuned.tokenizer, ended, "google/gemma-3-1b-pt")
    assert is_post_trained(tuned.tokenizer, ended, "someone/Baseball-ptarmigan")
    assert not is_post_trained(tuned.tokenizer, ended, "someone/known", kind="base")

    tuned.tokenizer.chat_template = "{{ raise_exception('only for tools') }}"
    assert not is_post_trained(tuned.tokenizer, ended, "someone/Tools")


# --- what can be wrong


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")


def cut_short(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])


def missing_shard(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-1.safetensors"}}')


def encoder(folder: Path) -> None:
    small = BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, vocab_size=VOCABULARY
    )
    BertForMaskedLM(small).save_pretrained(folder)


def without_head(folder: Path) -> None:
    LlamaModel(LlamaConfig.from_pretrained(folder)).save_pretrained(folder)
    edit_config(folder, architectures=["LlamaForCausalLM"])


def no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no config": (lambda f: (f / "config.json").unlink(), "neither a config.json nor a GGUF file"),
    "config cut short": (lambda f: (f / "config.json").write_text("{"), "config.json .* is damaged"),
    "config without type": (lambda f: (f / "config.json").write_text("{}"), "config.json .* is damaged"),
    "remote code": (
        lambda f: edit_config(f, model_type="odd", auto_map={"AutoConfig": "odd.Odd"}), "needs remote code, which"
    ),
    "unknown type": (lambda f: edit_config(f, model_type="odd"), "'odd', which this version of transformers"),
    "encoder": (encoder, "not a causal language model"),
    "encoder-decoder": (lambda f: edit_config(f, model_type="t5"), "not a causal language model"),
    "impossible config": (lambda f: edit_config(f, num_attention_heads=5), "not valid: .*multiple"),
    "wrong type in config": (lambda f: edit_config(f, hidden_size="wide"), "not valid: .*expected int"),
    "pickled weights": (pickled, "only pickled weights"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "no model.safetensors"),
    "weights cut short": (cut_short, "a file may be damaged"),
    "missing shard": (missing_shard, r"not complete: .*model-1\.safetensors"),
    "missing head": (without_head, r"no lm_head\.weight"),
    "missing layer": (lambda f: edit_config(f, num_hidden_layers=3), r"no model\.layers\.2.* and \d+ more"),
    "wrong width": (lambda f: edit_config(f, hidden_size=64), "other shapes"),
    "no tokenizer": (no_tokenizer, "has no tokenizer"),
    "damaged tokenizer": (lambda f: (f / "tokenizer.json").write_text("{"), "tokenizer .* cannot be loaded"),
    "too large": (
        lambda f: edit_config(f, hidden_size=80_000, intermediate_size=300_000), r"\d GB in fp32 .*try --precision"
    ),
    "quantised elsewhere": (
        lambda f: edit_config(f, quantization_config={"quant_method": "gptq", "bits": 4}), "cannot be loaded in"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_model_is_refused_in_one_sentence(what: str, tiny: Tiny, tmp_path: Path) -> None:
    spoil, message = BROKEN[what]
    folder = Path(shutil.copytree(tiny("llama"), tmp_path / "model"))
    spoil(folder)
    with pytest.raises(UserError, match=message) as caught:
        models.load(str(folder), precision="fp32")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600


def test_code_beside_a_model_is_never_run(tiny: Tiny, tmp_path: Path) -> None:
    """A known type loads with the library's own class, whatever code the folder names."""
    folder = Path(shutil.copytree(tiny("llama"), tmp_path / "model"))
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: pass\n")
    edit_config(folder, auto_map={"AutoConfig": "evil.Evil", "AutoModelForCausalLM": "evil.Evil"})
    assert type(models.load(str(folder)).model).__module__.startswith("transformers.")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["gpt2", "nobody/nothing", "bundle"])
def test_offline_and_not_cached(name: str) -> None:
    with pytest.raises(UserError, match="HF_HUB_OFFLINE is set"):
        models.load(name)


@pytest.mark.parametrize("name", ["/no/such/folder", "~/no-such-folder", "./x", "a b", "x/y/z"])
def test_names_that_are_nothing(name: str) -> None:
    with pytest.raises(UserError, match="There is no model"):
        models.load(name)


def test_a_revision_of_a_local_folder_is_refused(tiny: Tiny) -> None:
    with pytest.raises(UserError, match="--revision is for hub models"):
        models.load(str(tiny("llama")), revision="main")


# --- memory


def test_memory_is_checked_against_what_is_free(tiny: Tiny) -> None:
    config = read_config(tiny("llama"), "tiny")
    target = torch.device("cpu")
    free = available_memory(target)
    check_memory(config, "fp32", target, "tiny")
    config.vocab_size = free // 32 // 4  # one such matrix would fill it, and the model has two
    with pytest.raises(UserError, match="try --precision 4bit or a smaller model"):
        check_memory(config, "fp32", target, "tiny")
    with pytest.raises(UserError, match="try a smaller model"):
        check_memory(config, "4bit", target, "tiny")


def test_presets_and_home_import_no_torch() -> None:
    code = "import sys, spt.presets, spt.home, spt.bundled; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

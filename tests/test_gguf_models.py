"""GGUF files: the same model as its safetensors, or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from spt import models
from spt.spec import UserError
from tests.tiny import PAD
from tests.tiny_gguf import write_gguf

Tiny = Callable[[str], Path]
ROW = torch.arange(5, 45)[None]


@pytest.fixture(scope="module")
def gguf_folder(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gguf")
    write_gguf(tiny("llama"), folder / "tiny.gguf")
    return folder


def test_a_gguf_file_is_the_same_model(gguf_folder: Path, tiny: Tiny) -> None:
    original = models.load(str(tiny("llama")))
    for source in (gguf_folder / "tiny.gguf", gguf_folder):
        loaded = models.load(str(source))
        torch.testing.assert_close(loaded.model(ROW).logits, original.model(ROW).logits)
        assert (loaded.eos_ids, loaded.pad_id, loaded.parameters) == (original.eos_ids, PAD, original.parameters)
        assert loaded.tokenizer.tokenize("2024") == ["2", "0", "2", "4"]


def test_gguf_in_bf16_but_not_in_4bit(gguf_folder: Path) -> None:
    assert models.load(str(gguf_folder), precision="bf16").model.dtype == torch.bfloat16
    with pytest.raises(UserError, match="instead of 4bit"):
        models.load(str(gguf_folder), precision="4bit")


@pytest.mark.parametrize("cut", [None, "made-up"])
def test_a_gguf_file_whose_text_cannot_be_cut_rightly_is_refused(cut: str | None, tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="use the model's safetensors"):
        models.load(str(write_gguf(tiny("llama"), tmp_path / "m.gguf", cut)))


def test_files_that_are_no_gguf(tiny: Tiny, tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"GGUF and then nonsense")
    with pytest.raises(UserError, match="cannot be read as a GGUF file"):
        models.load(str(tmp_path / "a.gguf"))
    whole = write_gguf(tiny("llama"), tmp_path / "b.gguf").read_bytes()
    for kept in (0, 100, len(whole) // 2, len(whole) - 100):
        (tmp_path / "b.gguf").write_bytes(whole[:kept])
        with pytest.raises(UserError, match=r"b\.gguf cannot be read"):
            models.load(str(tmp_path / "b.gguf"))
    with pytest.raises(UserError, match="2 GGUF files: name one"):
        models.load(str(tmp_path))
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.raises(UserError, match=r"or a \.gguf file"):
        models.load(str(tmp_path / "model.bin"))

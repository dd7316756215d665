"""Memory estimates: held against loaded models, real tensors and a real run's peak; asked without torch; and 4-bit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from spt import cli, memory, memory_parts, models
from spt.batching import plain_logits
from spt.experiment import ModelCache
from spt.memory import Workload, ask, of_spec
from spt.memory_parts import LiveBytes, config_of, estimate
from spt.model_checks import read_config
from spt.presets import PRESETS
from spt.runner import execute
from spt.spec import RunSpec, UserError
from spt.store import Store
from tests.fake_hub import serve
from tests.runs import small_spec
from tests.tiny import ARCHITECTURES
from tests.tiny_gguf import write_gguf

Tiny = Callable[[str], Path]
WORK = Workload(rows=8, row_tokens=40, target_tokens=6, context_tokens=80, answer_tokens=24, options=4)


# --- against what is really taken


@pytest.mark.parametrize("precision", ["fp32", "bf16", "4bit"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_weights_are_counted_to_the_byte(architecture: str, precision: Any, tiny: Tiny) -> None:
    loaded = models.load(str(tiny(architecture)), precision=precision)
    taken = sum(parameter.nbytes for parameter in loaded.model.parameters())
    for module in loaded.model.modules():
        state = getattr(getattr(module, "weight", None), "quant_state", None)
        taken += state.absmax.nbytes if state is not None else 0
    found = estimate(read_config(tiny(architecture), "tiny"), precision, WORK, loaded.device.type == "cuda")
    assert found.weights == (pytest.approx(taken, rel=0.02) if precision == "4bit" else taken)
    assert found.parameters == loaded.parameters
    assert not found.rough, "every architecture here can be tried without data"


@pytest.mark.parametrize("architecture", ["llama", "gemma3_text", "gpt2", "mamba2"])
def test_activations_without_data_are_those_of_real_tensors(architecture: str, tiny: Tiny) -> None:
    """The same count over a real pass on the CPU, up to masks and what the attention kernel keeps."""
    loaded = models.load(str(tiny(architecture)), precision="fp32")
    ids = torch.randint(5, 300, (WORK.rows, WORK.row_tokens))
    embedding: Any = loaded.model.get_input_embeddings()
    embedding.register_forward_hook(lambda module, arguments, out: out.detach().requires_grad_())
    mask = torch.ones_like(ids)
    mask[0, 0] = 0
    with LiveBytes(loaded.model) as live:
        logits = plain_logits(loaded.model, ids, mask, WORK.target_tokens + 1)
    kept = live.peak - logits.untyped_storage().nbytes()
    found = estimate(read_config(tiny(architecture), "tiny"), "fp32", WORK, cuda=False)
    assert found.tuning["activations"] == pytest.approx(kept, rel=0.25)


RUN = """
import sys
from spt import experiment
from spt.events import ResumeState
from spt.spec import RunSpec
spec = RunSpec(benchmark=sys.argv[1], items=16, steps=1, probe_every=0)
for message in experiment.run(spec, ResumeState(), experiment.ModelCache()):
    pass
print(message.result.peak_memory_mb)
"""


@pytest.mark.skipif(sys.platform != "linux" or torch.cuda.is_available(), reason="resident memory of a run on a CPU")
def test_the_total_is_near_the_peak_of_a_real_run(bundled_home: Path) -> None:
    done = subprocess.run([sys.executable, "-c", RUN, "capitals"], capture_output=True, text=True, check=True)
    peak = float(done.stdout.split()[-1]) * 2**20
    assert 0.9 < of_spec(RunSpec(benchmark="capitals")).total / peak < 1.3


def test_the_rule_of_thumb_is_of_the_right_size(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    config = read_config(tiny("llama"), "tiny")
    counted = estimate(config, "fp32", WORK, cuda=False)

    def fail(*_: object) -> None:
        raise NotImplementedError("no meta kernel")

    monkeypatch.setattr(memory_parts, "_tuning", fail)
    ruled = estimate(config, "fp32", WORK, cuda=False)
    assert ruled.rough and ruled.weights == counted.weights
    for part in ("tuning", "answers"):
        ours, theirs = sum(getattr(ruled, part).values()), sum(getattr(counted, part).values())
        assert 0.7 < ours / theirs < 3


def test_more_work_needs_more_and_a_part_is_all_that_counts(tiny: Tiny) -> None:
    config = read_config(tiny("llama"), "tiny")

    def tuning(cuda: bool = False, **changes: int) -> int:
        return estimate(config, "fp32", WORK.model_copy(update=changes), cuda).tuning["activations"]

    assert tuning(rows=4) < tuning() < tuning(rows=12)
    assert tuning(rows=12) == tuning(rows=1000), "a CPU's part holds 512 tokens"
    assert tuning(True, rows=100) < tuning(True, rows=200)
    answers = [estimate(config, "fp32", WORK.model_copy(update={"options": n}), False).answers for n in (1, 4)]
    assert answers[1]["keys and values"] > 2.5 * answers[0]["keys and values"]


def test_a_quantised_checkpoint_is_counted_as_stored(tiny: Tiny) -> None:
    config = read_config(tiny("llama"), "tiny")
    whole = estimate(config, "fp32", WORK, cuda=False)
    config.quantization_config = {"quant_method": "gptq", "bits": 4}
    assert estimate(config, "fp32", WORK, cuda=False).weights < 0.75 * whole.weights


# --- which model


@pytest.mark.parametrize("name", ["bundled", "gemma-3-270m"])
def test_packaged_models_are_known_before_they_are_fetched(name: str) -> None:
    found = of_spec(RunSpec(model=name))
    assert found.parameters == PRESETS[name].parameters
    if not found.cuda:
        assert found.weights == 4 * PRESETS[name].parameters


def test_the_packaged_config_is_the_fetched_one(bundled_home: Path) -> None:
    fetched, known = config_of(RunSpec()), memory_parts.AutoConfig.for_model(**memory_parts.PACKAGED["bundled"])
    work = Workload.of(RunSpec())
    assert estimate(known, "fp32", work, False) == estimate(fetched, "fp32", work, False)


def test_a_gguf_file(tiny: Tiny, tmp_path: Path) -> None:
    file = write_gguf(tiny("llama"), tmp_path / "tiny.gguf")
    for source in (file, tmp_path):
        assert of_spec(RunSpec(model=str(source), precision="fp32")).weights == 4 * models.load(str(file)).parameters
    with pytest.raises(UserError, match="choose auto"):
        of_spec(RunSpec(model=str(file), precision="4bit"))
    file.write_bytes(b"nonsense")
    with pytest.raises(UserError, match="nor a readable GGUF file"):
        of_spec(RunSpec(model=str(file)))


ASK = """
import sys
from spt.memory import ask
from spt.spec import RunSpec, UserError
try:
    print(ask(RunSpec(model=sys.argv[1])).parameters, "torch" in sys.modules)
except UserError as error:
    print("UserError:", error)
"""


def test_of_a_hub_model_the_config_alone_is_fetched(tiny: Tiny, tmp_path: Path) -> None:
    with serve({"someone/tiny": tiny("llama"), "gated/tiny": tiny("llama")}) as (address, asked):

        def hub(name: str, offline: str = "0") -> str:
            settings = {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": offline}
            done = subprocess.run(
                [sys.executable, "-c", ASK, name], capture_output=True, text=True, env={**os.environ, **settings}
            )
            assert done.stderr == ""
            return done.stdout.strip()

        assert hub("someone/tiny") == "43168 False", "and the asking process has no torch"
        assert {path.rpartition("/")[2] for path in asked if "/resolve/" in path} == {"config.json"}
        shutil.rmtree(memory.home() / "estimates")
        asked.clear()
        assert hub("someone/tiny", offline="1") == "43168 False"
        assert not any("/resolve/" in path for path in asked)
        assert "HF_HUB_OFFLINE is set" in hub("someone/other", offline="1")
        assert "There is no model 'nobody/nothing'" in hub("nobody/nothing")
        assert "is gated" in hub("gated/tiny")


# --- asked by the page and the command line


def test_a_question_is_answered_once(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny("llama"), folder)
    spec = RunSpec(model=str(folder))
    calls = []
    run = subprocess.run
    monkeypatch.setattr(memory.subprocess, "run", lambda *a, **k: (calls.append(a), run(*a, **k))[1])
    first = ask(spec)
    start = time.perf_counter()
    monkeypatch.setattr(memory, "free_ram", lambda: 10 * first.total)
    again = ask(spec.model_copy(update={"seed": 3, "steps": 7, "items": 2}))
    assert time.perf_counter() - start < 0.5 and len(calls) == 1
    assert again.free == 10 * first.total and again.total == first.total, "the free memory is that of now"
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 4}))
    assert ask(spec).weights > first.weights and len(calls) == 2
    assert len(list((memory.home() / "estimates").iterdir())) == 2
    with pytest.raises(UserError, match="within 0 seconds"):
        ask(spec.model_copy(update={"shots": 2}), timeout=0.01)


GB = 10**9


def test_what_does_not_fit_comes_with_what_would(monkeypatch: pytest.MonkeyPatch) -> None:
    if torch.cuda.is_available():
        pytest.skip("the figures are a CPU's")
    spec = RunSpec(model="gemma-3-270m", precision="fp32")
    assert of_spec(spec).verdict == "fits" and not of_spec(spec).suggestions
    assert memory.warning(spec) is None
    needed = of_spec(spec).total
    monkeypatch.setattr(memory_parts, "free_ram", lambda: int(needed / 0.95))
    assert of_spec(spec).verdict == "tight" and memory.warning(spec) is None
    monkeypatch.setattr(memory_parts, "free_ram", lambda: needed - 1)
    found = of_spec(spec)
    assert found.verdict == "does not fit"
    assert [s.change for s in found.suggestions][:2] == [{"precision": "4bit"}, {"batch_size": 1}]
    assert all(s.total is not None and s.total < needed for s in found.suggestions if s.change)
    assert found.suggestions[0].fits
    assert memory.warning(spec) == found.sentence
    assert "it does not fit; try --precision 4bit (about" in found.sentence
    monkeypatch.setattr(memory_parts, "free_ram", lambda: 10**6)
    assert of_spec(spec).suggestions[-1].text == "a smaller model"


def test_a_run_that_may_not_fit_is_warned_of_and_made(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(memory_parts, "free_ram", lambda: 10**6)
    monkeypatch.setenv("COLUMNS", "200")
    model = str(tiny("llama"))
    words = ["run", "--model", model, "--steps", "1", "--items", "2", "--probe-every", "0", "--json"]
    monkeypatch.setattr(sys, "argv", ["spt", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr()
    assert end.value.code == 0 and json.loads(said.out)["run"]
    assert "it does not fit; try" in said.err

    monkeypatch.setattr(sys, "argv", ["spt", "memory", "--model", model])
    with pytest.raises(SystemExit):
        cli.main()
    table = capsys.readouterr().out
    for part in ("weights", "tuning: activations", "tuning: logits", "answers: keys and values", "libraries"):
        assert part in table
    assert "43,168 parameters" in table


def test_memory_imports_no_torch() -> None:
    code = "import sys, spt.memory, spt.out_of_memory; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- 4-bit


@pytest.mark.parametrize("benchmark", ["capitals", "capitals-mc"])
def test_a_whole_run_in_4bit(benchmark: str, tiny: Tiny) -> None:
    folder = Store().create(small_spec(tiny("llama"), precision="4bit", benchmark=benchmark))
    cache = ModelCache()
    assert execute(folder, cache) == "finished"
    result = folder.result()
    assert result is not None and result.model["precision"] == "4bit" and result.tuning.final_loss > 0
    assert cache.loaded is not None
    assert {"Linear4bit"} <= {type(module).__name__ for module in cache.loaded.model.modules()}
    assert (folder.prompt / "adapter_model.safetensors").exists()
    assert all(len(folder.predictions(method)) == 18 for method in folder.spec.methods)

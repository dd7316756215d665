"""Prompts on the hub: the card, what is uploaded to a hub on this machine, and each way it can fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from spt.push import prompt_files, push_prompt
from spt.spec import RunSpec, UserError
from spt.store import RunFolder, Store
from tests.fake_hub import serve
from tests.whole import whole_run

SPEC = RunSpec(model="user/base", items=8, steps=4, revision="abc")
REPO = "me/capitals-prompt"


def card(folder: RunFolder) -> str:
    return prompt_files(folder, REPO)["README.md"].decode()


def test_the_card_says_what_the_prompt_scores_and_how_to_load_it() -> None:
    text = card(whole_run(SPEC))
    _, metadata, body = text.split("---\n", 2)
    assert yaml.safe_load(metadata) == {
        "base_model": "user/base",
        "library_name": "peft",
        "pipeline_tag": "text-generation",
        "tags": ["soft-prompt", "prompt-tuning", "spt", "evaluation", "arxiv:2606.12117"],
    }
    assert '"me/capitals-prompt")' in body and "`[BOS] [S] question`" in body and SPEC.command() in body
    rows = [line for line in body.splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[0] for row in rows] == ["| method", "| Zero-shot", "| 3-shot", "| Soft prompt"]
    assert all(row.count("|") == 6 for row in rows) and "{" not in body


def test_a_packed_model_is_named_by_the_one_it_was_made_from() -> None:
    folder = whole_run(RunSpec(items=8, steps=4))
    files = prompt_files(folder, REPO)
    adapter = json.loads(files["adapter_config.json"])
    assert adapter["base_model_name_or_path"] == "HuggingFaceTB/SmolLM2-135M-Instruct" and adapter["revision"] is None
    assert "base_model: HuggingFaceTB/SmolLM2-135M-Instruct" in files["README.md"].decode()
    assert "in fewer bits, spt's `bundled`" in files["README.md"].decode()


def test_no_path_of_this_machine_is_pushed(tmp_path: Path) -> None:
    questions = tmp_path / "private" / "mine.csv"
    questions.parent.mkdir()
    questions.write_text("question,answer\n" + "".join(f"What is {i}?,{i}\n" for i in range(40)))
    spec = RunSpec(model="user/base", benchmark=str(questions), data_dir=str(tmp_path / "data"), items=4, steps=4)
    folder = whole_run(spec, lambda method, i, item: item.answer)
    files = prompt_files(folder, REPO)
    assert not [name for name, content in files.items() if str(tmp_path).encode() in content]
    assert "--benchmark mine.csv" in files["README.md"].decode()


def test_what_cannot_be_pushed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = whole_run(SPEC)
    for repo in ("name", "a/b/c", "", "a b/c", "../x"):
        with pytest.raises(UserError, match="as user/name"):
            push_prompt(folder, repo)
    with pytest.raises(UserError, match="is not finished"):
        push_prompt(Store().create(RunSpec(seed=3)), REPO)
    with pytest.raises(UserError, match="HF_HUB_OFFLINE is set"):
        push_prompt(folder, REPO)
    monkeypatch.setattr("spt.push.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("spt.push.get_token", lambda: None)
    with pytest.raises(UserError, match="set HF_TOKEN"):
        push_prompt(folder, REPO)
    with pytest.raises(UserError, match="of a model on this machine"):
        push_prompt(whole_run(RunSpec(model=str(tmp_path), items=8, steps=4)), REPO)
    (folder.prompt / "spt.json").unlink()
    with pytest.raises(UserError, match="gone or damaged"):
        push_prompt(folder, REPO)


def push(folder: RunFolder, address: str, cache: Path, token: str, *options: str) -> tuple[int, str]:
    """The command, in a process of its own: the hub library reads its address when it is imported."""
    settings = {"HF_ENDPOINT": address, "HF_HOME": str(cache), "HF_HUB_OFFLINE": "0", "HF_TOKEN": token}
    command = [sys.executable, "-m", "spt", "push", folder.id, "--repo", REPO, *options]
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=90)
    return done.returncode, done.stdout + done.stderr


def test_a_prompt_is_pushed_to_a_hub(tmp_path: Path) -> None:
    folder = whole_run(SPEC)
    uploads = tmp_path / "uploads"
    with serve({}, uploads=uploads) as (address, _):
        status, said = push(folder, address, tmp_path, "wrong")
        assert status == 2 and "the token in HF_TOKEN may not do that" in said
        status, said = push(folder, address, tmp_path, "let-me-in")
        assert (status, said.strip()) == (0, f"{address}/{REPO}")
        pushed = {path.name: path.read_bytes() for path in (uploads / REPO).iterdir()}
        assert pushed == prompt_files(folder, REPO)
        status, said = push(folder, address, tmp_path, "let-me-in", "--private")
        assert status == 2 and "is there already and public" in said
    status, said = push(folder, address, tmp_path, "let-me-in")
    assert status == 2 and "cannot be reached" in said and said.count("\n") == 1

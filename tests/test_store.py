"""Run folders: what is written is read back, a crash loses one line at most, and a bad folder is told, not hidden."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from spt.events import (
    SCHEMA,
    Checkpoint,
    PhaseStarted,
    Predictions,
    Probe,
    PromptFiles,
    Result,
    RunFailed,
    RunFinished,
    RunStarted,
    RunStopped,
    StepLoss,
    TuningSummary,
)
from spt.metrics import MethodScores, Prediction, Rate
from spt.spec import RunSpec, UserError
from spt.store import RunFolder, Store

SPEC = RunSpec()


def prediction(name: str, response: str = "#### Paris") -> Prediction:
    return Prediction(
        id=name, question="Capital of France?\nAnswer:", target="#### Paris", answer="Paris", response=response,
        in_format=True, knows=True, exact_match=True, stopped_by="eos",
    )  # fmt: skip


def result(spec: RunSpec = SPEC) -> Result:
    scores = MethodScores.of([prediction("a")], closed=False)
    return Result(
        schema=SCHEMA, run=spec.run_id, spec=spec, methods={"zero_shot": scores, "soft_prompt": scores},
        tuning=TuningSummary(
            steps=80, seconds=9.5, trainable_parameters=5760, trainable_share=0.0000428, final_loss=0.25
        ),
        model={"name": "m"}, benchmark={"name": "b"}, device="CPU", seconds={"load": 1.0}, peak_memory_mb=10.0,
        versions={"torch": "2"},
    )  # fmt: skip


def step(number: int, loss: float = 1.5) -> StepLoss:
    return StepLoss(step=number, loss=loss, learning_rate=0.1, grad_norm=1.0, seconds=0.5)


def probe(number: int) -> Probe:
    rate = Rate.of([True])
    return Probe(step=number, format=rate, knowledge=rate, exact_match=rate, answers=())


@pytest.fixture
def folder() -> RunFolder:
    return Store().create(SPEC)


def test_create_is_idempotent_and_the_spec_reads_back(folder: RunFolder) -> None:
    folder.append(RunStarted(run=folder.id))
    again = Store().create(SPEC)
    assert (again.id, again.spec) == (folder.id, SPEC) == (SPEC.run_id, Store().get(folder.id).spec)
    assert len(again.events()) == 1
    assert json.loads((folder.path / "spec.json").read_text())["schema"] == SCHEMA


def test_every_kind_of_message_reads_back(folder: RunFolder) -> None:
    tensors = {"vectors": np.arange(6, dtype=np.float32).reshape(2, 3), "exp_avg": np.full((2, 3), 1e-30, np.float32)}
    started, loss = RunStarted(run=folder.id), step(1, loss=0.1 + 0.2)
    for message in (started, loss, Predictions("few_shot", (prediction("a"), prediction("b"))), Checkpoint(7, tensors)):
        folder.append(message)
    folder.append(PromptFiles({"adapter_config.json": b"{}", "spt.json": b"{1}"}))
    folder.append(PromptFiles({"adapter_config.json": b"{2}"}))

    state = folder.resume_state()
    assert state.events == (started, loss)
    assert state.predictions == {"few_shot": (prediction("a"), prediction("b"))}
    assert state.checkpoint is not None and state.checkpoint.step == 7
    assert {name: value.tobytes() for name, value in state.checkpoint.tensors.items()} == {
        name: value.tobytes() for name, value in tensors.items()
    }
    assert {path.name: path.read_bytes() for path in folder.prompt.iterdir()} == {"adapter_config.json": b"{2}"}


def test_the_result_round_trips_by_its_documented_names(folder: RunFolder) -> None:
    folder.append(Checkpoint(80, {"vectors": np.zeros((1, 1), np.float32)}))
    folder.append(RunFinished(result=result()))
    content = json.loads((folder.path / "result.json").read_text())
    assert content["schema"] == SCHEMA and content["run"] == folder.id
    assert content["spec"] == SPEC.model_dump(mode="json")
    assert content["methods"]["zero_shot"]["format"]["n"] == 1 and content["tuning"]["trainable_parameters"] == 5760
    assert folder.result() == result()
    assert folder.events()[-1].type == "run_finished"
    assert folder.status() == "finished"
    assert not (folder.path / "checkpoint.safetensors").exists()


def test_a_torn_line_is_lost_alone_and_the_next_one_starts_afresh(folder: RunFolder) -> None:
    events, rows = folder.path / "events.jsonl", folder.path / "predictions" / "zero_shot.jsonl"
    first, second, third = step(1), step(2), step(3)
    folder.append(first)
    folder.append(second)
    folder.append(Predictions("zero_shot", (prediction("a"), prediction("b"))))
    for path in (events, rows):
        whole = path.read_bytes()
        path.write_bytes(whole[:-20])  # killed in the middle of the last line
    assert folder.events() == [first]
    assert [row.id for row in folder.predictions("zero_shot")] == ["a"]

    folder.append(third)
    folder.append(Predictions("zero_shot", (prediction("c"),)))
    assert folder.events() == [first, third]
    assert [row.id for row in folder.predictions("zero_shot")] == ["a", "c"]


def test_a_torn_only_line(folder: RunFolder) -> None:
    (folder.path / "events.jsonl").write_bytes(b'{"type": "run_st')
    assert folder.events() == []
    folder.append(step(1))
    assert len(folder.events()) == 1


def test_a_damaged_line_in_the_middle_is_left_out_with_a_warning(
    folder: RunFolder, caplog: pytest.LogCaptureFixture
) -> None:
    folder.append(step(1))
    with open(folder.path / "events.jsonl", "ab") as file:
        file.write(b"\0\0\0\n")
    folder.append(step(2))
    assert [event.step for event in folder.events() if isinstance(event, StepLoss)] == [1, 2]
    assert "unreadable line" in caplog.text


def test_an_item_answered_twice_counts_once_with_its_last_answer(folder: RunFolder) -> None:
    folder.append(Predictions("zero_shot", (prediction("a", "old"), prediction("b"))))
    folder.append(Predictions("zero_shot", (prediction("a", "new"),)))
    assert [(row.id, row.response) for row in folder.predictions("zero_shot")] == [("a", "new"), ("b", "#### Paris")]


def test_events_are_read_incrementally_and_again_from_the_start_after_a_reset(folder: RunFolder) -> None:
    folder.append(step(1))
    first, offset = folder.read_events(0)
    assert folder.read_events(offset) == ([], offset)
    with open(folder.path / "events.jsonl", "ab") as file:
        file.write(b'{"type": "step_')  # being written just now
    assert folder.read_events(offset) == ([], offset)
    folder.append(step(2))
    second, offset = folder.read_events(offset)
    assert [e.step for e in (*first, *second) if isinstance(e, StepLoss)] == [1, 2]

    folder.reset()
    assert folder.read_events(offset) == ([], 0)
    folder.append(RunStarted(run=folder.id))
    assert [event.type for event in folder.read_events(offset)[0]] == ["run_started"]


def test_status_tells_where_a_run_stands(folder: RunFolder) -> None:
    from spt import queue

    assert folder.status() == "new"
    queue.submit(folder)
    assert folder.status() == "queued"
    with folder.lock():
        assert folder.status() == "running"
    queue.cancel(folder.id)
    folder.append(RunStarted(run=folder.id))
    assert folder.status() == "interrupted"
    folder.append(RunStopped())
    assert folder.status() == "stopped"
    folder.append(RunFailed(message="No memory."))
    assert folder.status() == "failed"
    folder.append(RunFinished(result=result()))
    assert folder.status() == "finished"


def test_killed_between_the_last_event_and_the_result_it_is_interrupted(folder: RunFolder) -> None:
    folder.append(RunFinished(result=result()))
    (folder.path / "result.json").unlink()
    assert folder.status() == "interrupted"


def test_the_lock_of_a_dead_process_is_free(folder: RunFolder) -> None:
    code = (
        "import os, sys; from pathlib import Path; from spt.store import RunFolder; from spt.spec import RunSpec\n"
        "lock = RunFolder(Path(sys.argv[1]), RunSpec()).lock(); lock.acquire()\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(folder.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        assert folder.status() == "running"
        with pytest.raises(UserError, match="is running; stop it first"):
            folder.reset()
        process.kill()
    assert folder.status() == "new"


def test_stop_requests(folder: RunFolder) -> None:
    assert not folder.stop_requested()
    folder.request_stop()
    assert folder.stop_requested()
    folder.clear_stop()
    folder.clear_stop()
    assert not folder.stop_requested()


def test_reset_forgets_all_but_the_spec_and_delete_all(folder: RunFolder) -> None:
    for message in (step(1), Predictions("zero_shot", (prediction("a"),)), PromptFiles({"a": b""})):
        folder.append(message)
    folder.append(Checkpoint(1, {"vectors": np.zeros((1, 1), np.float32)}))
    folder.append(RunFinished(result=result()))
    folder.reset()
    assert (folder.status(), folder.has_work()) == ("new", False)
    assert [p.name for p in folder.path.iterdir() if not p.name.startswith(".")] == ["spec.json"]
    folder.delete()
    assert os.listdir(Store().root) == []


def test_runs_come_newest_first_and_a_broken_folder_hides_no_other(folder: RunFolder) -> None:
    store = Store()
    other = store.create(RunSpec(seed=1))
    folder.append(RunStarted(run=folder.id))
    os.utime(other.path / "spec.json", (1, 1))
    for name, text in (
        ("from-the-future", json.dumps({"schema": 7, "spec": {}})),
        ("torn", '{"schema": 1, "sp'),
        ("binary", "\udcff"),
        ("unknown-setting", json.dumps({"schema": SCHEMA, "spec": {"colour": "red"}})),
        ("no-spec", json.dumps({"schema": SCHEMA})),
        ("a-list", "[]"),
    ):
        (store.root / name).mkdir()
        (store.root / name / "spec.json").write_bytes(text.encode(errors="surrogateescape"))
    (store.root / "empty").mkdir()
    (store.root / "a-file").write_text("")
    assert [run.id for run in store.runs()] == [folder.id, other.id]
    assert len(store.problems()) == 6


def test_a_folder_of_another_version_is_told() -> None:
    store = Store()
    (store.root / "old").mkdir(parents=True)
    (store.root / "old" / "spec.json").write_text(json.dumps({"schema": 7, "spec": {}}))
    with pytest.raises(UserError, match=r"Run folder old was written by another version of spt \(schema 7, this one"):
        store.get("old")


def test_a_result_of_another_version_and_a_damaged_one_are_told(folder: RunFolder) -> None:
    path = folder.path / "result.json"
    path.write_text(json.dumps({"schema": 2}))
    with pytest.raises(UserError, match="schema 2"):
        folder.result()
    path.write_text(json.dumps({"schema": SCHEMA}))
    with pytest.raises(UserError, match=r"result\.json is damaged"):
        folder.result()


def test_a_damaged_checkpoint_is_told(folder: RunFolder) -> None:
    (folder.path / "checkpoint.safetensors").write_bytes(b"\0" * 10)
    with pytest.raises(UserError, match="damaged"):
        folder.resume_state()


@pytest.mark.parametrize("run_id", ["", "..", "../x", "/etc", "a/b", ".hidden", "unknown", "x\n", "a" * 5000])
def test_an_id_that_is_no_run_is_refused(run_id: str) -> None:
    (Store().root / ".hidden").mkdir(parents=True)
    (Store().root / ".hidden" / "spec.json").write_text(json.dumps({"schema": SCHEMA, "spec": SPEC.model_dump()}))
    with pytest.raises(UserError, match="There is no run"):
        Store().get(run_id)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_full_disk_is_one_sentence_and_nothing_torn_stays(folder: RunFolder) -> None:
    (folder.path / "events.jsonl").symlink_to("/dev/full")
    (folder.path / ".checkpoint.safetensors.tmp").symlink_to("/dev/full")
    for message in (step(1), Checkpoint(1, {"vectors": np.zeros((1, 1), np.float32)})):
        with pytest.raises(UserError, match="is full; free some space, or set SPT_HOME"):
            folder.append(message)
    assert not os.path.lexists(folder.path / ".checkpoint.safetensors.tmp")
    assert not (folder.path / "checkpoint.safetensors").exists()


def test_prompt_files_cannot_leave_their_folder(folder: RunFolder) -> None:
    with pytest.raises(ValueError, match="plain file name"):
        folder.append(PromptFiles({"../spec.json": b""}))
    assert Store().get(folder.id).spec == SPEC


def test_text_with_line_separators_stays_one_line(folder: RunFolder) -> None:
    odd = "a\nb\r\u2028\u0085\x0b</script>\U0001f600"
    folder.append(Predictions("zero_shot", (prediction("a", odd),)))
    folder.append(PhaseStarted(phase="load", detail=odd))
    assert folder.predictions("zero_shot")[0].response == odd
    assert [getattr(event, "detail", "") for event in folder.events()] == [odd]


def test_it_needs_no_torch() -> None:
    code = (
        "import sys, spt.store, spt.view, spt.queue, spt.runner, spt.worker, spt.cli\n"
        "print([name for name in ('torch', 'transformers', 'gradio', 'scipy', 'datasets') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_curves_are_thinned_and_know_what_only_looks_like_one(folder: RunFolder) -> None:
    folder.append(RunFailed(message='"type":"probe"'))
    for number in range(1, 201):
        folder.append(step(number))
        if number % 50 == 0:
            folder.append(probe(number))
    losses, probes = folder.curves(5)
    assert [event.step for event in losses] == [1, 51, 101, 150, 200]
    assert [event.step for event in probes] == [50, 100, 150, 200]
    assert Store().create(RunSpec(seed=9)).curves(5) == ([], [])


def test_the_signature_follows_the_files(folder: RunFolder) -> None:
    seen = [folder.signature()]
    for message in (step(1), RunFinished(result=result())):
        folder.append(message)
        seen.append(folder.signature())
    folder.reset()
    assert len(set(seen)) == 3 and folder.signature() == seen[0]


def test_a_store_sees_a_spec_that_was_changed(folder: RunFolder) -> None:
    store = Store()
    assert [run.spec.seed for run in store.runs()] == [0]
    file = folder.path / "spec.json"
    file.write_text(file.read_text().replace('"seed": 0', '"seed": 12'))
    assert [run.spec.seed for run in store.runs()] == [12]
    file.write_text("{")
    assert store.runs() == [] and list(store.scan()[1]) == [folder.id]

"""Questions to a finished run: answered as the run answered, refused in one sentence, kept as files for an hour."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file, save_file

from spt import ask as asking
from spt import cli, questions
from spt.experiment import ModelCache
from spt.questions import Ask, Reply, Said
from spt.runner import answer, device_holder, execute
from spt.spec import METHODS, RunSpec, UserError
from spt.store import RunFolder, Store
from tests.finished import finished_run
from tests.runs import small_spec

CACHE = ModelCache()  # of the tiny model


def made(spec: RunSpec, cache: ModelCache = CACHE) -> RunFolder:
    folder = Store().create(spec)
    execute(folder, cache)
    return folder


def small(tiny: Callable[[str], Path], benchmark: str = "capitals", model: str = "llama", **changes: Any) -> RunSpec:
    settings = {"benchmark": benchmark, "steps": 2, "items": 6, "probe_every": 0, **changes}
    return small_spec(tiny(model), **settings)


def ended(folder: RunFolder, ask: Ask, cache: ModelCache = CACHE) -> Reply:
    reply = asking.answer(folder, ask, cache, lambda reply: None)
    assert reply.state == "done"
    return reply


def assert_as_stored(folder: RunFolder, cache: ModelCache) -> None:
    """Every test question, asked anew, gets the stored answer of every method."""
    stored = {method: {row.id: row for row in folder.predictions(method)} for method in METHODS}
    for row in stored["zero_shot"].values():
        ask = Ask.of(folder, row.question, row.options)
        assert ask.marked and ask.example.id == row.id
        reply = ended(folder, ask, cache)
        for method in METHODS:
            said, wanted = reply.said[method], stored[method][row.id]
            assert said.logprobs == pytest.approx(wanted.option_logprobs, abs=1e-4)
            assert said == Said(
                text=wanted.response, stopped_by=wanted.stopped_by, in_format=wanted.in_format, knows=wanted.knows,
                exact_match=wanted.exact_match, logprobs=said.logprobs,
            )  # fmt: skip


# ---- answers


@pytest.mark.parametrize("model", ["llama", "gemma3_text", "mamba2"])
@pytest.mark.parametrize("benchmark", ["capitals", "capitals-mc"])
def test_a_test_question_gets_the_stored_answers(benchmark: str, model: str, tiny: Callable[[str], Path]) -> None:
    cache = ModelCache()
    folder = made(small(tiny, benchmark, model), cache)
    answers = {row.response for method in METHODS for row in folder.predictions(method)}
    assert len(answers) > 6, "they vary, so that equal ones mean something"
    assert_as_stored(folder, cache)


def test_the_bundled_model_gives_the_stored_answers_too(
    bundled_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its chat template; its runs go to a home of their own."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "models").symlink_to(bundled_home / "models")
    monkeypatch.setenv("SPT_HOME", str(home))
    cache = ModelCache()
    folder = made(RunSpec(benchmark="capitals-mc", steps=1, batch_size=2, items=3, probe_every=0), cache)
    assert_as_stored(folder, cache)


def test_answers_grow_side_by_side_and_the_model_is_left_as_it_was(tiny: Callable[[str], Path]) -> None:
    folder = made(small(tiny))
    told: list[Reply] = []
    reply = asking.answer(folder, Ask.of(folder, "What is it?"), CACHE, told.append)
    assert told[0].state == "loading" and {each.state for each in told[1:]} == {"answering"}
    side_by_side = [each for each in told if all(said.text and said.stopped_by is None for said in each.said.values())]
    assert len(side_by_side) > 5, "none waits for another to end"
    assert len(told) > 10 and told[-1].said == reply.said
    assert CACHE.loaded is not None
    assert CACHE.loaded.model.get_input_embeddings().vectors is None


@pytest.mark.parametrize("model", ["llama", "mamba2"])
def test_what_the_listener_raises_ends_the_work(model: str, tiny: Callable[[str], Path]) -> None:
    cache = ModelCache()
    folder = made(small(tiny, model=model, items=3), cache)
    heard = 0

    def listen(reply: Reply) -> None:
        nonlocal heard
        heard += 1
        if heard == 5:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        asking.answer(folder, Ask.of(folder, "What is it?"), cache, listen)
    assert heard == 5
    assert cache.loaded is not None
    assert cache.loaded.model.get_input_embeddings().vectors is None and device_holder() is None


def test_right_and_wrong_need_a_reference(tiny: Callable[[str], Path]) -> None:
    folder = made(small(tiny))
    found = ended(folder, Ask.of(folder, "What is it?")).said["soft_prompt"]
    assert found.in_format is not None and found.knows is None and found.exact_match is None
    assert ended(folder, Ask.of(folder, "What is it?", reference="Zanzibar")).said["soft_prompt"].knows is False
    closed = made(small(tiny, "capitals-mc"))
    unmarked = ended(closed, Ask.of(closed, "Which?", ["one", "two", "three"])).said["few_shot"]
    assert len(unmarked.logprobs) == 3 and sum(unmarked.shares) == pytest.approx(1) and unmarked.knows is None
    best = closed_best(unmarked)
    marked = ended(closed, Ask.of(closed, "Which?", ["one", "two", "three"], best)).said["few_shot"]
    assert marked.knows is True and marked.logprobs == unmarked.logprobs


def closed_best(said: Said) -> str:
    return "ABC"[said.logprobs.index(max(said.logprobs))]


# ---- what is refused


def test_what_has_changed_since_the_run_is_one_sentence(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    model = shutil.copytree(tiny("llama"), tmp_path / "model")
    cache = ModelCache()
    folder = made(small(tiny).model_copy(update={"model": str(model)}), cache)
    ask = Ask.of(folder, "What is it?")
    with pytest.raises(UserError, match=r"needs [0-9,]+ tokens and .* takes 512: shorten it"):
        ended(folder, Ask.of(folder, "What? " * 600), cache)
    weights = model / "model.safetensors"
    tensors = load_file(weights)
    save_file({name: value * 2 for name, value in tensors.items()}, weights, metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"tuned for .* at revision local-.*, not for"):
        ended(folder, ask, ModelCache())
    (folder.prompt / "adapter_model.safetensors").write_bytes(b"torn")
    with pytest.raises(UserError, match=r"soft prompt of run .* cannot be read: `python -m spt run .* --again` makes"):
        ended(folder, ask, cache)
    shutil.rmtree(model)
    with pytest.raises(UserError, match="model"):
        answer(ask, ModelCache(), lambda reply: None)
    folder.delete()
    with pytest.raises(UserError, match="There is no run"):
        answer(ask, cache, lambda reply: None)
    assert device_holder() is None


def test_other_rows_are_other_worked_examples(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("question,answer\n" + "".join(f"Which is {i}?,word{i}\n" for i in range(30)))
    folder = made(small(tiny, str(file), items=3))
    ask = Ask.of(folder, "Which is it?")
    ended(folder, ask)
    file.write_text(file.read_text().replace("word7", "word77"))
    with pytest.raises(UserError, match=r"The rows of .* are not those this run began with"):
        ended(folder, ask)


@pytest.fixture
def closed() -> RunFolder:
    return finished_run(RunSpec(benchmark="capitals-mc", items=3), lambda method, i, item: item.target)


@pytest.fixture
def opened() -> RunFolder:
    return finished_run(RunSpec(items=3), lambda method, i, item: item.target)


def test_a_question_is_checked_before_it_waits(opened: RunFolder, closed: RunFolder) -> None:
    refused: list[tuple[RunFolder, tuple[Any, ...], str]] = [
        (opened, ("  \n",), "There is no question: type one first."),
        (opened, ("x" * 2_000_000,), "The question has 2,000,000 characters, and at most 8,000 are taken: shorten it."),
        (opened, ("What?", ["a", "b"]), "have no options to choose from"),
        (closed, ("What?",), "give 2 to 10 options, one a line"),
        (closed, ("What?", ["one", "  "]), "give 2 to 10 options"),
        (closed, ("What?", ["x"] * 11), "give 2 to 10 options"),
        (closed, ("What?", ["Rome", " rome "]), "Two options are the same (rome): each may stand there once."),
        (closed, ("What?", ["Rome", "y" * 9000]), "at most 8,000 are taken"),
        (closed, ("What?", ["Rome", "Oslo"], "Paris"), "The reference is none of the options"),
    ]
    for folder, asked, words in refused:
        with pytest.raises(UserError) as error:
            Ask.of(folder, *asked)
        assert words in str(error.value) and "\n" not in str(error.value)
    new = Store().create(RunSpec(seed=7))
    with pytest.raises(UserError, match=r"is not finished: `python -m spt run .*` goes on with it"):
        Ask.of(new, "What?")


def test_options_get_the_benchmarks_letters(closed: RunFolder) -> None:
    wanted = ("A. Rome", "B. Oslo", "C. Bern")
    for typed in (["Rome", "", " Oslo ", "Bern"], ["A. Rome", "B. Oslo", "C. Bern"], ["A) Rome", "B) Oslo", "C) Bern"]):
        assert Ask.of(closed, "Which?", typed).example.options == wanted
    assert Ask.of(closed, "Which?", ["A. Rome", "Oslo"]).example.options == ("A. A. Rome", "B. Oslo")
    for reference in ("b", "B.", "oslo", "B. Oslo"):
        ask = Ask.of(closed, "Which?", wanted, reference)
        assert ask.marked and ask.example.target == "B. Oslo"


def test_a_question_without_reference_keeps_the_kind_of_answer() -> None:
    """A format that wants a number where the reference is one goes on to want it."""
    folder = finished_run(RunSpec(benchmark="arithmetic", items=3), lambda method, i, item: item.target)
    ask = Ask.of(folder, "What is 2 + 2?")
    assert not ask.marked and ask.example.answer.lstrip("-").isdigit()
    assert not Ask.of(folder, folder.predictions("zero_shot")[0].question, reference="other words").example.aliases


def test_text_that_would_break_a_prompt_is_mended(opened: RunFolder) -> None:
    assert Ask.of(opened, " a\u2063spt\u2063b\ud800 ").example.question == "asptb?"


# ---- files


def test_questions_wait_in_turn_and_go_after_an_hour(opened: RunFolder) -> None:
    ask = Ask.of(opened, "<script>What?</script>")
    first, second = questions.submit(ask), questions.submit(ask)
    assert questions.waiting() == [first, second] and questions.read(first) == ask and len(first) > 30
    questions.tell(first, Reply(state="answering", said={"zero_shot": Said(text="so")}))
    assert questions.waiting() == [first, second] and questions.reply(second) is None
    questions.close(first)
    found = questions.reply(first)
    assert questions.waiting() == [second] and found is not None and found.said["zero_shot"].text == "so"
    folder = Path(os.environ["SPT_HOME"]) / "asks"
    (folder / f"{second}.json").write_text("{")
    assert questions.read(second) is None and questions.is_open(second)
    questions.clean()
    assert len(list(folder.iterdir())) == 2
    old = time.time() - 3700
    for path in folder.iterdir():
        os.utime(path, (old, old))
    questions.clean()
    assert list(folder.iterdir()) == []


def test_too_many_at_once_are_refused(opened: RunFolder) -> None:
    ask = Ask.of(opened, "What?")
    for _ in range(questions.MOST_WAITING):
        questions.submit(ask)
    with pytest.raises(UserError, match="50 questions are waiting already: ask again in a minute"):
        questions.submit(ask)


# ---- command line


def spt(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["spt", "ask", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


def test_ask_on_the_command_line(
    tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = made(small(tiny, "capitals-mc"))
    row = folder.predictions("zero_shot")[0]
    options = [word for option in row.options for word in ("--option", option[3:])]
    assert spt(monkeypatch, folder.id, row.question, *options, "--json") == 0
    said = json.loads(capsys.readouterr().out)["said"]
    assert said["zero_shot"]["text"] == row.response
    assert spt(monkeypatch, folder.id, row.question, *options) == 0
    shown = capsys.readouterr().out
    assert "Soft prompt" in shown and row.options[1] in shown and shown.count("*") >= 3
    assert f"{max(row.option_logprobs):.2f}" in shown
    assert spt(monkeypatch, folder.id, " ") == 2
    assert capsys.readouterr().err == "There is no question: type one first.\n"
    assert spt(monkeypatch, "nowhere", "What?") == 2
    assert "There is no run 'nowhere'" in capsys.readouterr().err

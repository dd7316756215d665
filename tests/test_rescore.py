"""`spt rescore`: every metric again from stored answers, without a model; with a judge where one is given."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spt.benchmarks.base import Example
from spt.events import RunFinished
from spt.experiment import ModelCache
from spt.files import complete_lines
from spt.judge import PROMPT_SHA256, PROMPT_VERSION, Cache, JudgeSettings
from spt.metrics import Prediction
from spt.runner import execute, judge_run, rescore_run
from spt.scoring import rescore, score
from spt.spec import METHODS, Method, RunSpec, UserError
from spt.store import RunFolder, Store
from spt.view import RunView
from tests.fake_judge import Ask, Reply, Server, error, serve, verdict
from tests.finished import finished_run
from tests.runs import eventually, small_spec
from tests.test_cli import spt, words_of  # noqa: F401  (a fixture)
from tests.tiny import make

SPEC = RunSpec(items=8)


def respond(method: Method, number: int, item: Example) -> str:
    """Half right and in the form; zero-shot answers are prose."""
    text = item.answer if number % 2 else "Atlantis"
    return f"I think it is {text}." if method == "zero_shot" else f"#### {text}"


@pytest.fixture
def folder() -> RunFolder:
    return finished_run(SPEC, respond)


def files(folder: RunFolder) -> dict[str, bytes]:
    return {str(p.relative_to(folder.path)): p.read_bytes() for p in sorted(folder.path.rglob("*")) if p.is_file()}


def contents(folder: RunFolder) -> dict[str, bytes]:
    return {name: data for name, data in files(folder).items() if not name.startswith(".")}


def settings(server: Server, **changes: object) -> JudgeSettings:
    return JudgeSettings.model_validate(
        {"model": "m", "base_url": server.url, "backoff": 0.01, "timeout": 5.0, "concurrency": 4, **changes}
    )


def honest(ask: Ask) -> Reply:
    """A judge that agrees with the rule on what is right, and calls every answer well-formed."""
    return verdict(any(answer in ask.case["response"] for answer in ask.case["accepted_answers"]), True)


def test_an_answer_scored_again_is_the_same(folder: RunFolder) -> None:
    from spt.benchmarks import get

    form = get("capitals").format
    rows = folder.predictions("few_shot")
    assert [rescore(row, form) for row in rows] == rows
    stale = rows[1].model_copy(update={"knows": False, "in_format": False, "exact_match": False})
    assert rescore(stale, form) == rows[1]


def test_closed_answers_are_scored_by_likelihood() -> None:
    from spt.benchmarks import get

    benchmark = get("capitals-mc")
    item = benchmark.load().test[0]
    logprobs = [-5.0] * len(item.options)
    logprobs[item.options.index(item.target)] = -1.0
    row = score(benchmark.format, item, "nonsense", "length", logprobs)
    assert (row.knows, row.in_format, row.exact_match) == (True, False, False)
    assert rescore(row, benchmark.format) == row


def test_a_run_scored_again_by_the_same_rules_changes_nothing(folder: RunFolder) -> None:
    before = contents(folder)
    assert rescore_run(folder) == folder.result()
    assert contents(folder) == before


def test_rules_that_changed_since_change_answers_result_and_views(folder: RunFolder) -> None:
    rows = folder.predictions("few_shot")
    folder.write_predictions("few_shot", [row.model_copy(update={"knows": True, "exact_match": True}) for row in rows])
    old = folder.result()
    assert old is not None
    wrong = old.methods["few_shot"].model_copy(update={"knowledge": old.methods["few_shot"].format})
    folder.append(RunFinished(result=old.model_copy(update={"methods": {**old.methods, "few_shot": wrong}})))
    new = rescore_run(folder)
    assert new == folder.result() == old and folder.predictions("few_shot") == rows
    view = RunView.of(folder.events(), folder.spec)
    assert view.state == "finished" and view.result == new and view.scores == new.methods
    before = contents(folder)
    assert rescore_run(folder) == new and contents(folder) == before


def test_rows_of_older_runs_get_their_aliases_from_the_benchmark() -> None:
    def alias(method: Method, number: int, item: Example) -> str:
        return item.aliases[0] if item.aliases else "Atlantis"

    folder = finished_run(RunSpec(benchmark="trivia", items=64), alias)
    expected = folder.result()
    assert expected is not None and expected.methods["few_shot"].knowledge.rate > 0
    for method in METHODS:
        path = folder.path / "predictions" / f"{method}.jsonl"
        lines = [json.loads(line) for line in complete_lines(path)[0]]
        path.write_text("".join(json.dumps({k: v for k, v in line.items() if k != "aliases"}) + "\n" for line in lines))
    assert rescore_run(folder) == expected
    assert any(row.aliases for row in folder.predictions("few_shot")), "and keep them"


def test_an_unfinished_or_incomplete_run_is_told(folder: RunFolder) -> None:
    unfinished = Store().create(RunSpec(seed=5))
    with pytest.raises(UserError, match=r"is not finished: `python -m spt run .*--seed 5` goes on with it"):
        rescore_run(unfinished)
    folder.write_predictions("few_shot", folder.predictions("few_shot")[1:])
    with pytest.raises(UserError, match="has 7 of 8 answers of few_shot left"):
        rescore_run(folder)


def test_a_run_that_another_process_holds_is_left_alone(folder: RunFolder) -> None:
    with serve(honest) as server, folder.lock():
        for call in (lambda: rescore_run(folder), lambda: judge_run(folder, settings(server))):
            with pytest.raises(UserError, match="is running; stop it first"):
                call()
    assert server.asked == []


def test_a_judge_stands_beside_the_rule_with_kappa(folder: RunFolder) -> None:
    old, heard = folder.result(), []
    assert old is not None
    with serve(honest) as server:
        result = judge_run(folder, settings(server), lambda done, total: heard.append((done, total)))
    assert folder.result() == result and heard[0] == (0, 24) and heard[-1] == (24, 24) and heard == sorted(heard)
    for method in METHODS:
        by_rule, scores = old.methods[method], result.methods[method]
        assert scores.model_copy(update={"judge": None}) == by_rule, "the rule's numbers stay"
        assert scores.judge is not None and scores.judge.knowledge == by_rule.knowledge
        assert scores.judge.in_format.rate == 1 and scores.judge.exact.rate == 0.5 and scores.judge.unparsed == 0
        assert scores.judge.agreement_knowledge.kappa == 1 and scores.judge.agreement_knowledge.n == 8
        assert (scores.shown.knowledge, scores.shown.knowledge_by) == (scores.judge.knowledge, "judge")
        assert [v.id for v in folder.verdicts(method)] == [row.id for row in folder.predictions(method)]
    few = result.methods["few_shot"].judge
    assert few is not None and few.agreement_format.kappa is None and few.agreement_format.agree == 1
    zero = result.methods["zero_shot"].judge
    assert zero is not None and (zero.agreement_format.kappa, zero.agreement_format.agree) == (0, 0)
    info = result.judge
    assert info is not None and (info.model, info.url, info.items) == ("m", server.url, 24)
    assert (info.prompt_version, info.prompt_sha256) == (PROMPT_VERSION, PROMPT_SHA256)
    assert RunView.of(folder.events(), folder.spec).result == result


def test_judging_twice_asks_nobody_and_changes_nothing_and_the_rule_alone_keeps_the_judge(folder: RunFolder) -> None:
    with serve(honest) as server:
        result = judge_run(folder, settings(server))
        asked, before = len(server.asked), contents(folder)
        assert judge_run(folder, settings(server)) == result and len(server.asked) == asked
    assert rescore_run(folder) == result
    assert contents(folder) == before


def test_verdicts_on_another_text_are_dropped(folder: RunFolder) -> None:
    with serve(honest) as server:
        judge_run(folder, settings(server))
    rows = folder.predictions("few_shot")
    folder.write_predictions("few_shot", [rows[0].model_copy(update={"response": "#### Oz"}), *rows[1:]])
    result = rescore_run(folder)
    assert result.judge is None and all(scores.judge is None for scores in result.methods.values())
    folder.reset()
    assert folder.verdicts("few_shot") == []


def test_answers_without_a_readable_verdict_keep_that_of_the_rule(folder: RunFolder) -> None:
    def mood(ask: Ask) -> Reply:
        return Reply("It depends.") if "Atlantis" in ask.case["response"] else verdict(False, True)

    with serve(mood) as server:
        scores = judge_run(folder, settings(server)).methods["few_shot"]
    assert scores.judge is not None and scores.judge.unparsed == 4
    assert scores.judge.knowledge.rate == 0 and scores.judge.knowledge.n == 8
    assert scores.judge.in_format.rate == 1, "four by the judge, four by the rule"
    assert scores.judge.agreement_knowledge.n == 4 and scores.judge.agreement_knowledge.agree == 0


@pytest.mark.parametrize("death", [error(500), error(401), Reply(raw=b"{")], ids=["500", "401", "torn"])
def test_a_judge_that_dies_midway_leaves_the_run_whole_and_what_it_said(folder: RunFolder, death: Reply) -> None:
    before = contents(folder)
    with serve(lambda ask: honest(ask) if ask.number < 9 else death) as server:
        dying = settings(server, max_retries=1, concurrency=1)
        with pytest.raises(UserError) as told:
            judge_run(folder, dying)
    distinct = len({(r.id, r.response) for method in METHODS for r in folder.predictions(method)})
    assert f"of 24 answers are judged and kept, and `{dying.command(folder.id)}` goes on." in str(told.value)
    assert str(told.value).count("\n") == 0 and contents(folder) == before
    with serve(honest) as server:
        result = judge_run(folder, settings(server))
    assert len(server.asked) == distinct - 9 and result.judge is not None


def test_a_judge_that_is_not_there_is_told(folder: RunFolder) -> None:
    with serve(honest) as server:
        gone = settings(server, max_retries=1)
    with pytest.raises(UserError, match=r"The judge m cannot be reached \(.*\); 0 of 24 answers are judged"):
        judge_run(folder, gone)


def test_closed_benchmarks_need_no_judge() -> None:
    folder = finished_run(RunSpec(benchmark="capitals-mc", items=2), lambda method, number, item: item.target)
    with serve(honest) as server, pytest.raises(UserError, match="ranked by likelihood and needs no judge"):
        judge_run(folder, settings(server))
    assert server.asked == []


def test_a_local_judge_takes_the_device_and_judges(folder: RunFolder, tmp_path: Path, spt_home: Path) -> None:
    from filelock import FileLock

    model = make("qwen3", tmp_path / "judge", chat_template=True, max_position_embeddings=4096)
    with FileLock(spt_home / "device.lock"), pytest.raises(UserError, match="The device is busy"):
        judge_run(folder, JudgeSettings(model=str(model)))
    result = judge_run(folder, JudgeSettings(model=str(model)))
    scores = result.methods["few_shot"]
    assert scores.judge is not None and scores.judge.unparsed == 8
    assert scores.judge.knowledge == scores.knowledge and scores.judge.agreement_knowledge.kappa is None
    assert result.judge is not None and result.judge.url is None and result.judge.revision


def test_the_command_rescores_and_judges(spt: Callable[..., tuple[int, str, str]], folder: RunFolder) -> None:  # noqa: F811
    status, out, _ = spt("rescore", folder.id)
    assert status == 0 and "Knowledge by rule." in out and "Judged" not in out
    with serve(honest) as server:
        status, out, _ = spt("rescore", folder.id, "--judge", "m", "--judge-url", server.url)
    assert status == 0
    for text in ("Knowledge by judge (m), format and exact match by rule.", "Judged by m", "1.00 (100% of 8)", "Kappa"):
        assert text in out
    status, out, _ = spt("rescore", folder.id, "--json")
    assert status == 0 and json.loads(out)["judge"]["model"] == "m"
    assert out == (folder.path / "result.json").read_text() + "\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["nowhere"], "There is no run 'nowhere'"), (["x", "--judge-url", "http://127.0.0.1/v1"], "add --judge MODEL")],
)
def test_bad_input_is_one_sentence(
    spt: Callable[..., tuple[int, str, str]], words: list[str], sentence: str  # noqa: F811
) -> None:
    status, _, err = spt("rescore", *words)
    assert status == 2 and sentence in err and err.count("\n") == 1


def test_a_run_is_judged_at_its_end_and_stands_where_the_judge_fails(
    spt: Callable[..., tuple[int, str, str]], tiny: Callable[[str], Path]  # noqa: F811
) -> None:
    spec = small_spec(tiny("llama"), steps=1, items=2, probe_every=0)
    with serve(lambda ask: error(401)) as server:
        judge = ["--judge", "m", "--judge-url", server.url]
        status, out, err = spt(*words_of(spec), *judge)
    assert status == 0 and "Knowledge by rule." in out
    assert "does not accept the key" in err and f"`python -m spt rescore {spec.run_id} --judge m" in err
    assert err.count("\n") == 1 and Store().get(spec.run_id).status() == "finished"
    with serve(honest) as server:
        judge = ["--judge", "m", "--judge-url", server.url]
        status, out, err = spt(*words_of(spec), *judge, "--json")
        assert status == 0 and json.loads(out)["judge"]["items"] == 6
    status, _, err = spt("run", "--benchmark", "capitals-mc", *judge)
    assert status == 2 and "needs no judge" in err
    assert not (Store().root / RunSpec(benchmark="capitals-mc").run_id).exists()


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda kill: kill.name)
def test_a_judge_step_that_is_killed_goes_on(folder: RunFolder, kill: signal.Signals) -> None:
    before = contents(folder)
    with serve(lambda ask: honest(ask) if ask.number < 5 else verdict(True, True, delay=60)) as server:
        command = [sys.executable, "-m", "spt", "rescore", folder.id, "--judge", "m", "--judge-url", server.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            eventually(lambda: len(server.asked) == 13 and len(Cache("m").known) == 5)
            process.send_signal(kill)
            out, err = process.communicate(timeout=20)
    assert process.returncode == (-9 if kill == signal.SIGKILL else 130) and "Traceback" not in err
    goes_on = f"goes on from here:\n  {settings(server).command(folder.id)}\n"
    assert out.endswith(goes_on) == (kill != signal.SIGKILL) and contents(folder) == before
    with serve(honest) as server:
        assert judge_run(folder, settings(server)).judge is not None
    distinct = len({(r.id, r.response) for method in METHODS for r in folder.predictions(method)})
    assert len(server.asked) == distinct - 5


def test_a_damaged_verdict_is_left_out_with_a_warning(folder: RunFolder, caplog: pytest.LogCaptureFixture) -> None:
    (folder.path / "verdicts").mkdir()
    (folder.path / "verdicts" / "few_shot.jsonl").write_text("{}\n")
    assert folder.verdicts("few_shot") == [] and "unreadable line" in caplog.text


def test_old_rows_and_results_read_as_before(folder: RunFolder) -> None:
    row = folder.predictions("few_shot")[0].model_dump(exclude={"aliases"})
    assert Prediction(**row).aliases == ()
    content = json.loads((folder.path / "result.json").read_text())
    del content["judge"]
    for scores in content["methods"].values():
        del scores["judge"]
    (folder.path / "result.json").write_text(json.dumps(content))
    read = folder.result()
    assert read is not None and read.judge is None


@pytest.mark.parametrize("benchmark", ["capitals", "capitals-mc"])
def test_a_real_run_with_controls_is_scored_again_as_it_was(tiny: Callable[[str], Path], benchmark: str) -> None:
    spec = small_spec(
        tiny("llama"), benchmark=benchmark, steps=1, items=3, probe_every=0, seeds=2, control=("shuffled",)
    )
    folder = Store().create(spec)
    execute(folder, ModelCache())
    result, before = folder.result(), {method: folder.predictions(method) for method in spec.methods}
    assert result is not None and set(result.methods) == set(spec.methods)
    assert rescore_run(folder).methods == result.methods
    assert {method: folder.predictions(method) for method in spec.methods} == before
    if benchmark == "capitals":
        with serve(honest) as server:
            judged = judge_run(folder, settings(server))
        assert all(judged.methods[method].judge is not None for method in spec.methods)

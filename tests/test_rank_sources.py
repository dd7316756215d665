"""What is ranked of run folders, result files, folders of those, the store and CSVs; and what is said of the rest."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from spt import cli, rank_choice, rank_pairs
from spt.rank_choice import Chosen, choose
from spt.rank_sources import Reader
from spt.ranking import Rankings, Twins, rank
from spt.spec import METHODS, UserError
from spt.store import Store
from tests import twins

HEAD = "model,benchmark,method,score"


def chosen(*sources: object, pairs: Path | None = None, metric: rank_choice.Metric = "exact_match") -> Chosen:
    reader = Reader()
    return choose(reader.read([str(source) for source in sources]), reader.outcomes, metric, pairs)


def ranked(*sources: object) -> Rankings:
    found = chosen(*sources)
    return rank(found.scores, found.twins, notes=found.notes)


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


# ---- sources


def test_store_folders_results_and_ids_give_the_same(tmp_path: Path) -> None:
    made = twins.lay_out(3, ("capitals",))
    store = ranked()
    assert [twin.name for twin in store.twins] == ["Model-1", "Model-2", "Model-3"]
    order = store.benchmarks[0].order("soft_prompt")
    assert order is not None and order.distance.value == 0 and order.distance.low is not None
    assert ranked(*(folder.path for folder in made)) == store
    assert ranked(*(folder.id for folder in made)) == store
    assert ranked(Store().root) == store
    assert ranked(Store().root, made[0].path) == store  # a run is counted once
    loose = tmp_path / "results"
    loose.mkdir()
    for folder in made:
        shutil.copy(folder.path / "result.json", loose / f"{folder.id}.json")
    alone = ranked(loose).benchmarks[0].order("soft_prompt")
    assert alone is not None and alone.base == order.base
    assert alone.distance.low is None  # no answers, so no interval


def test_an_unfinished_run_in_a_folder_is_no_problem() -> None:
    twins.lay_out(2, ("capitals",))
    from spt.spec import RunSpec

    unfinished = Store().create(RunSpec(model="lab/Model-9"))
    assert ranked().notes == ()
    with pytest.raises(UserError, match="has no result\\.json: only finished runs can be ranked"):
        chosen(unfinished.path)


def test_a_run_of_another_schema_is_named() -> None:
    made = twins.lay_out(3, ("capitals",))
    result = made[0].path / "result.json"
    result.write_text(json.dumps({**json.loads(result.read_text()), "schema": 99}))
    with pytest.raises(UserError, match="another version of spt \\(schema 99"):
        chosen(made[0].path)
    found = ranked()  # among others it is left out, and said
    assert any(made[0].id in note and "schema 99" in note for note in found.notes)
    assert found.benchmarks[0].orders[0].twins == ("Model-2", "Model-3")


@pytest.mark.parametrize("content", ["{", "[]", '{"schema": 1}', '{"schema": 1, "spec": {}, "run": "x", "methods": 3}'])
def test_a_damaged_result_is_one_sentence(content: str, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(content)
    with pytest.raises(UserError) as error:
        chosen(path)
    assert str(path) in str(error.value) or "another version" in str(error.value)


def test_a_source_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no run 'nothing'"):
        chosen("nothing")
    with pytest.raises(UserError, match="holds no finished run"):
        chosen(tmp_path)


def test_results_are_read_again_only_when_they_change() -> None:
    made = twins.lay_out(2, ("capitals",))
    reader = Reader()
    first = reader.read().entries
    assert reader.read().entries[0] is first[0]
    path = made[0].path / "result.json"
    path.write_text(path.read_text() + "\n")
    again = reader.read().entries
    changed = [entry for entry in again if not any(entry is other for other in first)]
    assert {entry.run for entry in changed} == {made[0].id}


def test_answers_that_are_not_those_of_the_result_give_no_interval() -> None:
    made = twins.lay_out(3, ("capitals",))
    answers = made[0].path / "predictions" / "zero_shot.jsonl"
    answers.write_text(answers.read_text().replace('"exact_match":false', '"exact_match":true'))
    orders = {order.method: order for order in ranked().benchmarks[0].orders}
    assert orders["zero_shot"].distance.low is None and orders["soft_prompt"].distance.low is not None


# ---- seeds and settings


def test_seeds_are_averaged_and_their_range_kept() -> None:
    made = twins.lay_out(2, ("capitals",), seeds=(0, 1, 2))
    cell = chosen().scores["capitals"][twins.base(1), "soft_prompt"]
    rates = [
        result.methods["soft_prompt"].exact_match.rate
        for folder in made
        if folder.spec.model == twins.base(1) and (result := folder.result())
    ]
    assert cell.seeds == 3 and cell.value == pytest.approx(sum(rates) / 3)
    assert (cell.low, cell.high) == (min(rates), max(rates))
    assert cell.outcomes is not None and cell.outcomes.mean() == pytest.approx(cell.value)


def test_further_seeds_of_a_run_are_seeds_and_controls_are_no_method() -> None:
    made = twins.lay_out(2, ("capitals",))
    for folder in made:
        path = folder.path / "result.json"
        content = json.loads(path.read_text())
        content["methods"] |= {"seed-1": content["methods"]["few_shot"], "shuffled": content["methods"]["few_shot"]}
        path.write_text(json.dumps(content))
    scores = chosen().scores["capitals"]
    assert {method for _, method in scores} == set(METHODS)
    assert scores[twins.base(1), "soft_prompt"].seeds == 2 and scores[twins.base(1), "few_shot"].seeds == 1


def test_the_largest_group_of_equal_settings_counts_and_the_rest_is_said() -> None:
    twins.lay_out(3, ("capitals",), steps=40)
    twins.lay_out(2, ("capitals",))
    found = chosen()
    assert len({model for model, _ in found.scores["capitals"]}) == 6
    assert found.notes == ("capitals: 4 runs left out for other settings: steps 80 (not 40).",)


def test_a_model_may_have_a_precision_of_its_own_and_it_is_said() -> None:
    twins.lay_out(2, ("capitals",))
    for model in (twins.base(3), twins.post(3)):
        twins.finish(model, 0.5, twins.FORM, precision="4bit")
    twins.finish(twins.base(1), 0.9, twins.FORM, precision="bf16", seed=0)
    twins.finish(twins.base(1), 0.2, twins.FORM, seed=1)
    found = chosen()
    assert len({model for model, _ in found.scores["capitals"]}) == 6
    assert found.scores["capitals"][twins.base(1), "soft_prompt"].seeds == 2
    assert found.notes == (
        "capitals: lab/Model-1-Base with precision bf16 (not auto) is left out.",
        "capitals: not all models have precision auto: lab/Model-3 with 4bit, lab/Model-3-Base with 4bit.",
    )


def test_a_model_twice_is_said_and_the_later_run_counts() -> None:
    twins.lay_out(2, ("capitals",))
    extra = twins.finish(twins.base(1), 0.99, twins.FORM, probe_every=5)  # probes change no score
    found = chosen()
    assert any("stands twice on capitals" in note and extra.id in note for note in found.notes)
    result = extra.result()
    assert result is not None
    cell = found.scores["capitals"][twins.base(1), "soft_prompt"]
    assert cell.value == result.methods["soft_prompt"].exact_match.rate and cell.seeds == 1


def test_knowledge_is_the_score_that_is_asked_for() -> None:
    made = twins.lay_out(2, ("capitals",))
    result = made[0].result()
    assert result is not None
    cell = chosen(metric="knowledge").scores["capitals"][made[0].spec.model, "zero_shot"]
    assert cell.value == result.methods["zero_shot"].knowledge.rate > result.methods["zero_shot"].exact_match.rate
    assert cell.outcomes is not None and cell.outcomes.mean() == pytest.approx(cell.value)


def test_too_many_answers_are_not_resampled_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    twins.lay_out(2, ("capitals",))
    monkeypatch.setattr(rank_choice, "MOST_ANSWERS", 100)
    found = ranked()
    assert found.benchmarks[0].orders[0].distance.low is None
    assert "No intervals: there are 768 answers" in found.notes[0]


# ---- CSV


def test_csv_with_pairs_of_its_own(tmp_path: Path) -> None:
    path = write(
        tmp_path / "scores.csv",
        "Model , benchmark".lower() + ",method,score,n,kind,pair",
        "a,gsm8k,Soft prompt,0.1,500,base,A",
        "a2,gsm8k,zero-shot,0.4,500,post-trained,A",
        "b,gsm8k,soft_prompt,0.3,500,base,B",
        "b2,gsm8k,zero_shot,0.3,500,post_trained,B",
    )
    found = ranked(path)
    assert found.twins == (Twins("A", "a", "a2"), Twins("B", "b", "b2"))
    (order,) = found.benchmarks[0].orders
    assert order.distance.value == 1 and order.distance.low is None and found.benchmarks[0].items == 500
    assert order.gap is None  # the post-trained models have no soft-prompt score


def test_csv_beside_runs_fills_what_they_lack(tmp_path: Path) -> None:
    made = twins.lay_out(3, ("capitals",))
    for folder in made:
        if folder.spec.model == twins.post(3):
            shutil.rmtree(folder.path)
    lines = (f"{twins.post(3)},capitals,zero_shot,0.9", f"{twins.post(1)},capitals,zero_shot,0.1")
    path = write(tmp_path / "scores.csv", HEAD, *lines)
    found = chosen(Store().root, path)
    assert found.scores["capitals"][twins.post(3), "zero_shot"].value == 0.9
    assert found.scores["capitals"][twins.post(1), "zero_shot"].value != 0.1
    assert "1 score from a CSV" in found.notes[0] and "1 more that runs have as well" in found.notes[0]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((f"{HEAD},colour", "a,b,c,0.1,red"), "there is no column 'colour'"),
        (("model,benchmark,score", "a,b,0.1"), "the column 'method' is missing"),
        ((f"{HEAD},kind", "a,b,zero_shot,0.1,base"), "kind and pair belong together"),
        ((HEAD, "a,b,zero_shot,41"), "line 2: the score 41 is no share"),
        ((HEAD, "a,b,zero_shot,nan"), "line 2: the score nan is no share"),
        ((HEAD, "a,b,zero_shot,high"), "line 2: score = 'high' is no number"),
        ((HEAD, "a,b,,0.1"), "line 2: method is empty"),
        ((HEAD, "a,b,zero_shot,0.1,more"), "more cells than columns"),
        ((HEAD, "a,b,zero_shot,0.1", "a,b,zero-shot,0.2"), "line 3: a has a score on b with zero_shot already, on"),
        ((f"{HEAD},n", "a,b,zero_shot,0.1,0"), "n = 0"),
        ((f"{HEAD},kind,pair", "a,b,zero_shot,0.1,tuned,A"), "write base or post-trained"),
        ((HEAD,), "has no scores in it"),
        ((f"{HEAD},score", "a,b,zero_shot,0.1,0.2"), "a column is there twice"),
    ],
)  # fmt: skip
def test_a_csv_that_is_wrong_is_one_sentence(lines: tuple[str, ...], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        chosen(write(tmp_path / "scores.csv", *lines))
    assert said in str(error.value) and "scores.csv" in str(error.value) and "\n" not in str(error.value)


def test_a_csv_pair_without_twin_or_with_two(tmp_path: Path) -> None:
    head = f"{HEAD},kind,pair"
    alone = write(tmp_path / "alone.csv", head, "a,b,zero_shot,0.1,base,A")
    assert "The pair A has no post-trained model." in chosen(alone).notes
    two = write(tmp_path / "two.csv", head, "a,b,zero_shot,0.1,base,A", "c,b,zero_shot,0.1,base,A")
    with pytest.raises(UserError, match="The pair A has more than one base model: a, c"):
        chosen(two)


# ---- pairs


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Qwen/Qwen3-0.6B-Base", "Qwen/Qwen3-0.6B"),
        ("Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-0.5B-Instruct"),
        ("google/gemma-3-1b-pt", "google/gemma-3-1b-it"),
        ("meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-7b-chat-hf"),
        ("mistralai/Mistral-7B-v0.3", "mistralai/Mistral-7B-Instruct-v0.3"),
        ("allenai/OLMo-2-0425-1B", "allenai/OLMo-2-0425-1B-Instruct"),
        ("HuggingFaceTB/SmolLM2-135M", "bundled"),
        ("gemma-3-270m", "google/gemma-3-270m-it"),
        ("/models/tiny/base", "/models/tiny/tuned"),
    ],
)
def test_names_tell_pairs(one: str, other: str) -> None:
    assert rank_pairs.by_name([other, "x/Other", one]) == ([(one, other)], [])


def test_names_that_do_not_tell() -> None:
    models = ["Qwen/Qwen3-4B-Base", "Qwen/Qwen3-4B", "Qwen/Qwen3-4B-Instruct"]
    pairs, notes = rank_pairs.by_name(models)
    assert not pairs and "say it with --pairs" in notes[0] and all(model in notes[0] for model in models)
    assert rank_pairs.by_name(["a/X", "b/X-Instruct", "lone"]) == ([], [])


def test_names_of_pairs_are_short_and_differ() -> None:
    models = ["a/X-Base", "a/X", "b/X-Base", "b/X", "/m/tiny/base", "/m/tiny/tuned"]
    found, _ = rank_pairs.of_models(models)
    assert [twin.name for twin in found] == ["tiny", "a/X-Base", "b/X-Base"]


def test_pairs_of_a_file_come_first_and_a_missing_twin_is_said(tmp_path: Path, spt_home: Path) -> None:
    path = write(tmp_path / "pairs.yaml", "a/X: b/Y", "c/Z: d/W")
    found, notes = rank_pairs.of_models(["a/X", "b/Y", "a/X-Instruct", "c/Z"], path)
    assert [twin[1:] for twin in found] == [("a/X", "b/Y")]
    assert len(notes) == 1 and "no scores of d/W" in notes[0]
    spt_home.mkdir()
    shutil.copy(path, rank_pairs.default_file())  # without being named, too
    assert rank_pairs.of_models(["a/X", "b/Y"])[0] == [Twins("X", "a/X", "b/Y")]
    assert rank_pairs.of_models(["q"]) == ([], [])


def test_a_sweep_file_tells_its_pairs(tmp_path: Path) -> None:
    models = ("models:", "  - pair: {base: a/X, post_trained: b/Y}", "  - alone")
    path = write(tmp_path / "sweep.yaml", *models, "benchmarks: [capitals]")
    assert rank_pairs.read(path) == [("a/X", "b/Y")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: b\na: c\n", "a stands in two pairs"),
        ("a: b\nc: b\n", "b stands in two pairs"),
        ("a: a\n", "a stands in two pairs or twice in one"),
        ("- a\n- b\n", "write one line a pair"),
        ("a: [b]\n", "write one line a pair"),
        ("a:\n", "write one line a pair"),
        ("", "write one line a pair"),
        ("a: [b\n", "this is no YAML"),
        ("models: [{pair: {base: a}}]\n", "both of them"),
    ],
)
def test_a_pairs_file_that_is_wrong_is_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "pairs.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        rank_pairs.read(path)
    assert said in str(error.value) and str(path) in str(error.value) and "\n" not in str(error.value)


def test_a_model_without_twin_is_said() -> None:
    twins.lay_out(2, ("capitals",))
    twins.finish("lab/Lone", 0.5, twins.FORM)
    assert "No twin, so not ranked: lab/Lone." in chosen().notes


# ---- the command


def spt(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["spt", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


def test_command_prints_tables_json_and_csv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    twins.lay_out(7, ("capitals", "trivia"))
    assert spt(monkeypatch, "rank") == 0
    text = capsys.readouterr().out
    assert "0 of 21 (chance 10.5)" in text and "over all · exact match, 7 pairs" in text and "Model-7" in text
    assert "a choice of ours" in text
    assert spt(monkeypatch, "rank", "--json", "--against", "same", "--csv", str(tmp_path / "orders.csv")) == 0
    read = Rankings.model_validate_json(capsys.readouterr().out)
    assert read.against == "same" and len(read.benchmarks) == 2 and read.overall is not None
    lines = (tmp_path / "orders.csv").read_text().splitlines()
    assert len(lines) == 1 + 3 * 3 * 7 and lines[0].startswith("benchmark,method,pair,base,post_trained")


def test_command_without_pairs_says_what_is_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert spt(monkeypatch, "rank") == 2
    assert "at least two pairs" in capsys.readouterr().err

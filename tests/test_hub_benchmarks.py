"""Benchmarks of the hub, read from folders in its place: what becomes of every kind of row. The rows are made up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from spt.benchmarks import BENCHMARKS, HUB, Split, asked_of_hub, canonical, default_data_dir, get, hold_out, load
from spt.benchmarks.hub_rows import place
from spt.events import PhaseStarted, ResumeState
from spt.experiment import ModelCache, run
from spt.spec import RunSpec, UserError
from tests.fake_hub import serve

SHARED = Path(__file__).parents[2] / "shared" / "data"
Row = dict[str, Any]


def write(folder: Path, name: str, train: list[Row], test: list[Row], parquet: bool = False) -> Path:
    """A data folder with one set in it."""
    hub = BENCHMARKS[name].hub
    assert hub is not None
    for split, rows in ((hub.train, train), (hub.test, test)):
        path = folder / hub.id / hub.config / f"{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        if parquet:
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.Table.from_pylist(rows), path.with_suffix(".parquet"))
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def read(folder: Path, name: str, train: list[Row], test: list[Row]) -> Split:
    return BENCHMARKS[name].load(write(folder, name, train, test))


def choice(question: str, texts: list[str], key: str, labels: str = "ABCDE") -> Row:
    return {"question": question, "choices": {"text": texts, "label": list(labels[: len(texts)])}, "answerKey": key}


TRAIN = choice("Which one is a fruit?", ["stone", "pear"], "B")


def test_gsm8k(tmp_path: Path) -> None:
    worked = "She has 2*3=<<2*3=6>>6 nuts. \nThen 6+1,000=<<6+1000=1006>>1006.\n#### 1,006 "
    rows = [{"question": " How many? ", "answer": worked}, {"question": "What?", "answer": "#### some"}]
    split = read(tmp_path, "gsm8k", [{"question": "Q?", "answer": "#### -3"}, {"question": "R?", "answer": "3"}], rows)
    (example,) = split.test
    assert (example.question, example.answer) == ("How many?", "1,006")
    assert example.target == "She has 2*3=<<2*3=6>>6 nuts.\nThen 6+1,000=<<6+1000=1006>>1006.\n#### 1,006"
    assert split.dropped == {"test: no number behind ####": 1, "train: no number behind ####": 1}
    assert split.train[0].answer == "-3"


def test_math(tmp_path: Path) -> None:
    def row(problem: str, solution: str) -> Row:
        return {"problem": problem, "solution": solution, "level": "Level 1", "type": "Algebra"}

    solution = "First $x=1$.\nSo \\[x=\\boxed{\\frac{1}{2}}.\\]\nThis can be checked."
    split = read(
        tmp_path,
        "math",
        [row("P1", "$\\boxed{1}$ or $\\boxed{2}$"), row("P2", "It is 3."), row("P3", "$\\boxed{3}$")],
        [row("P4", solution)],
    )
    (example,) = split.test
    assert (example.answer, example.topic) == ("\\frac{1}{2}", "Algebra")
    assert example.target == "First $x=1$.\nSo \\[x=\\boxed{\\frac{1}{2}}.\\]", "what follows the box is no part of it"
    assert split.dropped == {"train: no boxed answer": 1, "train: several boxed answers": 1}
    assert BENCHMARKS["math"].format.exact_match("$\\boxed{0.5}$", example)


def test_triviaqa(tmp_path: Path) -> None:
    def row(question: str, value: str | None, *aliases: str) -> Row:
        return {"question": question, "answer": {"value": value, "aliases": list(aliases)}}

    split = read(
        tmp_path,
        "triviaqa",
        [row("Which river?", "The Danube", "The Danube", "Donau"), row("Secret?", "<unk>")],
        [row("Which sea?", "the sea that is in the north of the land", "North Sea"), row("Why?", "it is so.")],
    )
    assert (split.train[0].target, split.train[0].aliases) == ("The Danube", ("Donau",))
    assert split.test[0].target == "North Sea", "the first bare phrase is the target"
    assert split.test[0].aliases == ("the sea that is in the north of the land",)
    assert split.dropped == {"test: answer does not fit the form (short phrase)": 1, "train: no label": 1}


def test_nq_open(tmp_path: Path) -> None:
    rows = [{"question": "who built it", "answer": ["King Ferdinand", "Ferdinand I"]}, {"question": "no", "answer": []}]
    split = read(tmp_path, "nq_open", [{"question": "who is who?", "answer": ["me"]}], rows)
    assert (split.test[0].question, split.test[0].target) == ("who built it?", "King Ferdinand")
    assert BENCHMARKS["nq_open"].format.exact_match("Ferdinand I", split.test[0])
    assert split.train[0].question == "who is who?"
    assert split.dropped == {"test: no label": 1}


@pytest.mark.parametrize("name", ["arc_easy", "arc_challenge", "commonsense_qa"])
def test_choices(tmp_path: Path, name: str) -> None:
    test = [
        choice("Three?", ["a", "b", "c"], "C"),
        choice("Five?", ["a", "b", "c", "d", "e"], "E"),
        choice("Numbers?", ["a", "b", "c", "d"], "2", labels="1234"),
        choice("Key of the other kind?", ["a", "b"], "1"),
        choice("Spaces?", ["a\n b", " c "], "A"),
        choice("No label?", ["a", "b"], ""),
        choice("Strange label?", ["a", "b"], "D"),
        choice("Twice the right one?", ["a", "b", "a"], "A"),
        choice("Twice a wrong one?", ["a", "b", "b"], "A"),
        choice("Twice?", ["a", "b"], "A"),
        choice("twice? ", ["b", "a"], "B"),
        choice("Which is true?", ["a", "b"], "A"),
        choice("Which is true?", ["c", "d"], "A"),
        choice("Empty?", ["", "b"], "A"),
    ]
    train = [TRAIN, TRAIN, choice("FIVE?", ["x", "y"], "A")]
    split = read(tmp_path, name, train, test)
    targets = {example.question: example.target for example in split.test}
    assert targets == {
        "Three?": "C. c",
        "Five?": "E. e",
        "Numbers?": "B. b",
        "Key of the other kind?": "A. a",
        "Spaces?": "A. a b",
        "Twice a wrong one?": "A. a",
        "Twice?": "A. a",
        "Which is true?": "A. c",
    }
    assert sum(example.question == "Which is true?" for example in split.test) == 2, "other options: another question"
    assert split.test[1].options == ("A. a", "B. b", "C. c", "D. d", "E. e")
    assert [example.target for example in split.train] == ["B. pear"]
    assert split.dropped == {
        "test: label is none of the options": 1,
        "test: no label": 1,
        "test: question twice": 1,
        "test: the right option is empty": 1,
        "test: the right option stands twice": 1,
        "train: question also in test": 1,
        "train: question twice": 1,
    }
    assert len({example.id for example in (*split.train, *split.test)}) == 10


def test_openbookqa(tmp_path: Path) -> None:
    row = {**choice("", ["wall", "pot", "cat", "light"], "D"), "question_stem": "A plant bends towards"}
    split = read(tmp_path, "openbookqa", [row], [{**row, "question_stem": "A cat drinks"}])
    assert (split.train[0].question, split.train[0].target) == ("A plant bends towards", "D. light")


def test_mmlu_is_tuned_on_validation_and_knows_its_subjects(tmp_path: Path) -> None:
    def row(question: str, subject: str, answer: int | None) -> Row:
        return {"question": question, "subject": subject, "choices": ["a", "b", "c", "d"], "answer": answer}

    split = read(
        tmp_path,
        "mmlu",
        [row("1?", "law", 0), row("2?", "art", 1)],
        [row("3?", "law", 2), row("4?", "art", 3), row("5?", "art", None)],
    )
    assert [(e.topic, e.target) for e in split.test] == [("law", "C. c"), ("art", "D. d")]
    held = hold_out(split, "ART", "mmlu")
    assert [e.topic for e in held.train] == ["law"] and [e.topic for e in held.test] == ["art"]
    assert held.dropped == split.dropped == {"test: no label": 1}
    with pytest.raises(UserError, match=r"^mmlu has no topic 'music' to hold out: choose one of art, law\.$"):
        hold_out(split, "music", "mmlu")
    only_tuned = hold_out(Split(train=split.train, test=split.test[1:]), "law", "mmlu")
    assert [e.topic for e in only_tuned.test] == ["law"], "a topic of the training rows alone is tested on those"
    assert [e.topic for e in only_tuned.train] == ["art"]
    with pytest.raises(UserError, match="nothing is left to tune on"):
        hold_out(Split(train=split.train[:1], test=split.test), "law", "mmlu")
    spec = RunSpec(benchmark="mmlu", data_dir=str(tmp_path), holdout_topic="law")
    assert {e.topic for e in load(spec)[1].test} == {"law"}


def test_topics_of_bundled_benchmarks_can_be_held_out() -> None:
    benchmark, split = load(RunSpec(benchmark="capitals", holdout_topic="Asia"))
    assert benchmark.name == "capitals"
    assert {e.topic for e in split.test} == {"Asia"} and "Asia" not in {e.topic for e in split.train}


def test_sets_without_topics_have_none_to_hold_out(tmp_path: Path) -> None:
    write(tmp_path, "nq_open", [{"question": "a", "answer": ["b"]}], [{"question": "c", "answer": ["d"]}])
    with pytest.raises(UserError, match="nq_open has no topics"):
        load(RunSpec(benchmark="nq_open", data_dir=str(tmp_path), holdout_topic="x"))


@pytest.mark.parametrize("shard", [False, True])
def test_parquet(tmp_path: Path, shard: bool) -> None:
    other = choice("Which one is a tool?", ["saw", "plum"], "A")
    write(tmp_path, "arc_easy", [TRAIN], [other], parquet=True)
    if shard:
        for path in tmp_path.rglob("*.parquet"):
            path.rename(path.with_name(f"{path.stem}-00000-of-00001.parquet"))
    split = BENCHMARKS["arc_easy"].load(tmp_path)
    assert [e.target for e in (*split.train, *split.test)] == ["B. pear", "A. saw"]


def test_a_missing_split_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "arc_easy", [TRAIN], [TRAIN]) / "allenai" / "ai2_arc" / "ARC-Easy" / "test.jsonl"
    path.unlink()
    with pytest.raises(UserError, match=rf"^There is no {path} \(or \.parquet\): put it there"):
        BENCHMARKS["arc_easy"].load(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"question": "a"}\n{"question": \n', r"test\.jsonl, line 2 is not valid JSON \(Expecting value\)"),
        (b'\n["a"]\n', r"test\.jsonl, line 2 is not a JSON object"),
        (b'{"question": "\xe9"}\n', r"test\.jsonl, line 1 is not UTF-8"),
        (b'{"question": "a", "answer": 3}\n', r"row 1 of test is not as this benchmark needs it .*question, answer"),
        (b'{"frage": "a"}\n', r"row 1 of test .*KeyError.*check the columns frage"),
        (b"", r"no row of test can be used \(there are none\)"),
        (b"[" * 100_000, r"line 1 is not valid JSON"),
    ],
)
def test_damaged_files_are_one_sentence(tmp_path: Path, text: bytes, message: str) -> None:
    write(tmp_path, "gsm8k", [{"question": "Q?", "answer": "#### 3"}], [])
    (tmp_path / "openai" / "gsm8k" / "main" / "test.jsonl").write_bytes(text)
    with pytest.raises(UserError, match=message):
        BENCHMARKS["gsm8k"].load(tmp_path)


def test_a_damaged_parquet_file_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "openai" / "gsm8k" / "main" / "train.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no parquet")
    with pytest.raises(UserError, match=r"train\.parquet is no readable parquet file"):
        BENCHMARKS["gsm8k"].load(tmp_path)


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    write(tmp_path, "gsm8k", [], [])
    with (tmp_path / "openai" / "gsm8k" / "main" / "train.jsonl").open("wb") as file:
        file.truncate(2_000_000_001)  # takes no room on the disk
    with pytest.raises(UserError, match="larger than 2 GB"):
        BENCHMARKS["gsm8k"].load(tmp_path)


def test_the_hub_offline_is_one_sentence(tmp_path: Path) -> None:
    """Through `datasets` itself: the tests run with HF_HUB_OFFLINE set."""
    with pytest.raises(
        UserError, match=r"^openai/gsm8k \(main\) is not in the cache and HF_HUB_OFFLINE is set: connect"
    ):
        BENCHMARKS["gsm8k"].load()


LOAD = """
import sys
from spt.benchmarks import BENCHMARKS
from spt.spec import UserError
try:
    split = BENCHMARKS[sys.argv[1]].load()
    print(*(example.target for example in (*split.train, *split.test)))
except UserError as error:
    print("UserError:", error)
"""


def repository(folder: Path, script: bool = False) -> Path:
    """GSM8K as it lies on the hub, with two rows of our own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    (folder / "main").mkdir(parents=True)
    for split, number in (("train", 3), ("test", 4)):
        rows = [{"question": f"Which number? {number}", "answer": f"#### {number}"}]
        pq.write_table(pa.Table.from_pylist(rows), folder / "main" / f"{split}-00000-of-00001.parquet")
    files = "".join(f"\n  - split: {split}\n    path: main/{split}-*" for split in ("train", "test"))
    (folder / "README.md").write_text(f"---\nconfigs:\n- config_name: main\n  data_files:{files}\n---\n")
    if script:
        (folder / "gsm8k.py").write_text("raise SystemExit('run')")
    return folder


def ask(address: str, home: Path, offline: str = "0") -> str:
    """What a fresh process prints: the hub library reads its address when it is imported. stderr must stay empty."""
    settings = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(home), "HF_HUB_OFFLINE": offline}
    command = [sys.executable, "-c", LOAD, "gsm8k"]
    done = subprocess.run(command, capture_output=True, text=True, env=settings, timeout=120, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


def test_rows_come_from_the_hub_at_their_revision_and_then_from_the_cache(tmp_path: Path) -> None:
    commit = get("gsm8k").hub.revision  # type: ignore[union-attr]
    assert commit is not None
    with serve({"datasets/openai/gsm8k": repository(tmp_path / "hub")}, [commit]) as (address, asked):
        assert ask(address, tmp_path / "home") == "#### 3 #### 4"
        assert any(f"/{commit}/" in path for path in asked) and not any("/main/README" in path for path in asked)
    assert ask("http://127.0.0.1:9", tmp_path / "home", offline="1") == "#### 3 #### 4"
    for path in sorted((tmp_path / "home").rglob(commit)):
        path.rename(path.with_name("f" * 40))
    said = ask("http://127.0.0.1:9", tmp_path / "home", offline="1")
    assert said.startswith(f"UserError: openai/gsm8k is in the cache at {'f' * 40}, and spt asks for {commit}: connect")


def test_without_a_network_the_cache_or_the_refusal_comes_at_once(tmp_path: Path) -> None:
    """The library alone tries six times, which takes 23 seconds."""
    commit = get("gsm8k").hub.revision  # type: ignore[union-attr]
    with serve({"datasets/openai/gsm8k": repository(tmp_path / "hub")}, [str(commit)]) as (address, _):
        assert ask(address, tmp_path / "home") == "#### 3 #### 4"
    start = time.monotonic()
    assert ask(address, tmp_path / "home") == "#### 3 #### 4", "the server is gone, the cache is not"
    assert "is not in the cache and the hub cannot be reached" in ask(address, tmp_path / "other home")
    assert time.monotonic() - start < 15, "two processes, seconds of imports"


def test_a_run_says_that_it_asks_the_hub(tmp_path: Path) -> None:
    assert asked_of_hub(RunSpec(benchmark="gsm8k")) == "Asking the hub about gsm8k …"
    assert asked_of_hub(RunSpec(benchmark="gsm8k", data_dir=str(tmp_path))) == asked_of_hub(RunSpec()) == ""
    first = next(message for message in run(RunSpec(benchmark="gsm8k"), ResumeState(), ModelCache())
                 if isinstance(message, PhaseStarted))  # fmt: skip
    assert first.detail == "Asking the hub about gsm8k …"


def test_a_set_that_is_gone_or_code(tmp_path: Path) -> None:
    commit = get("gsm8k").hub.revision  # type: ignore[union-attr]
    assert commit is not None
    with serve({}) as (address, _):
        said = ask(address, tmp_path / "home")
    assert said.startswith("UserError: openai/gsm8k (main) at revision 7403") and "is not on the hub (any more)" in said
    with serve({"datasets/openai/gsm8k": repository(tmp_path / "hub", script=True)}, [commit]) as (address, _):
        said = ask(address, tmp_path / "home")
    assert said.startswith("UserError: openai/gsm8k (main) has no train rows to read") and "scripts" in said


def test_keys_and_labels() -> None:
    assert [place(key, ["A", "B", "C"]) for key in ("A", " C ", "2", 3, "D", "")] == [0, 2, 1, 2, 3, None]
    assert [place(key, ["1", "2", "3"]) for key in ("1", 3, "B", "x")] == [0, 2, 1, -1]


@pytest.mark.parametrize("name", HUB)
def test_hub_benchmarks_are_pinned_and_described(name: str) -> None:
    benchmark = HUB[name]
    assert benchmark.hub is not None and benchmark.hub.id in benchmark.source
    assert benchmark.hub.revision is not None and len(benchmark.hub.revision) == 40
    assert benchmark.licence and benchmark.instruction
    assert get(name.replace("_", "-").upper()) is benchmark


def test_settings_that_a_benchmark_does_not_read_are_no_part_of_its_run() -> None:
    def spec(benchmark: str, **settings: str) -> RunSpec:
        return canonical(RunSpec(benchmark=benchmark, **settings))

    own = {"answer_format": "phrase", "template": "<{answer}>", "pattern": "<(.*)>"}
    assert spec("Capitals_MC", data_dir="/data", **own) == RunSpec(benchmark="capitals-mc")
    assert spec("ARC-Easy", data_dir="/data", **own) == RunSpec(benchmark="arc_easy", data_dir="/data")
    assert spec("/x/q.csv", data_dir="/data", **own) == RunSpec(benchmark="/x/q.csv", **own)
    assert spec("lm_eval:piqa", data_dir="/data", **own) == RunSpec(benchmark="lm_eval:piqa")
    with pytest.raises(UserError, match="Unknown benchmark"):
        spec("capitalz!")


def test_the_folder_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPT_DATA_DIR", "")
    assert default_data_dir() is None
    monkeypatch.setenv("SPT_DATA_DIR", "/data")
    assert default_data_dir() == "/data"


@pytest.mark.skipif(not SHARED.is_dir(), reason="no folder of benchmark rows beside the repository")
@pytest.mark.parametrize(
    ("name", "train", "test", "dropped"),
    [
        ("gsm8k", 2000, 1319, 0),
        ("arc_easy", 2243, 2374, 10),
        ("commonsense_qa", 1989, 1215, 17),
        ("mmlu", 1523, 1136, 12),
        ("nq_open", 1780, 3565, 65),
    ],
)
def test_the_sets_beside_the_repository(name: str, train: int, test: int, dropped: int) -> None:
    benchmark = BENCHMARKS[name]
    split = benchmark.load(SHARED)
    assert (len(split.train), len(split.test), sum(split.dropped.values())) == (train, test, dropped)
    assert not {e.question for e in split.train} & {e.question for e in split.test}
    for part in (split.train, split.test):
        assert len({e.id for e in part}) == len(part)
        for example in part:
            assert benchmark.format.in_format(example.target, example)
            assert benchmark.format.exact_match(example.target, example)
    if benchmark.closed:
        lengths = [len(option) for e in split.test for option in e.options]
        assert max(lengths) < 4 * benchmark.format.max_new_tokens, "about four characters a token"

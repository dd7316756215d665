"""The ranking experiment on a CPU, in a micro version: what its corpora hold, and the models that it writes."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from recipes.tiny_pairs import QUESTIONS_FILE, Size, make_pair, names, prepare
from recipes.tiny_scores import svg
from recipes.tiny_world import KNOWLEDGE, RELATIONS, Fact, World, documents, known_facts, make_world, mixtures
from spt import benchmarks, models
from spt.ranking import Cell, Twins, rank
from spt.spec import METHODS, RunSpec, UserError
from spt.sweep import read

MICRO = Size(train_people=8, test_people=4, vocabulary=400, width=16, heads=2, steps=4, tuning_steps=2)
RECIPE = Path(__file__).parents[1] / "recipes" / "tiny-pairs.yaml"


def pair(folder: Path) -> tuple[Path, Path]:
    prepare(folder, MICRO)
    make_pair(folder, MICRO, seed=1, place=2)
    base, post = (folder / name for name in names(1, 2))
    return base, post


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return pair(tmp_path_factory.mktemp("tiny-pairs"))


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def told(world: World, text: str) -> set[Fact]:
    """The test facts of which a sentence has name and value; no two relations share a value."""
    sentences = [words(sentence) for sentence in text.split(".")]
    return {fact for fact in world.test if any({fact.name, fact.value} <= sentence for sentence in sentences)}


def test_a_corpus_tells_its_share_of_the_test_facts_in_prose_and_asks_none() -> None:
    world = make_world(20, 10)
    mixture = mixtures(0)[1]
    known = set(known_facts(world, mixture, "0-1"))
    assert len(known) == round(KNOWLEDGE[1] * len(world.test)) < len(world.test)
    corpus = list(islice(documents(world, mixture, "0-1"), 4000))
    prose = " ".join(text for text in corpus if "Question:" not in text)
    asked = " ".join(text for text in corpus if "Question:" in text)
    assert told(world, prose) == known
    assert not {fact.name for fact in world.test} & words(asked)
    assert all(fact.question in asked for fact in world.train)
    wanted = {fact.relation for fact in world.train if f"{fact.question}\nAnswer: #### {fact.value}" in asked}
    assert wanted == set(RELATIONS)  # so every model has seen the benchmark's form for every relation


def test_every_seed_deals_all_habits_anew_to_the_shares_of_knowledge() -> None:
    dealt = [mixtures(seed) for seed in range(3)]
    assert all([m.knowledge for m in six] == list(KNOWLEDGE) for six in dealt)
    habits = [[(m.habit, m.page) for m in six] for six in dealt]
    assert all(Counter(six) == Counter(habits[0]) for six in habits) and habits[0] != habits[1] != habits[2]


def test_the_questions_are_a_benchmark_whose_splits_share_nobody(made: tuple[Path, Path]) -> None:
    file = made[0].parent / QUESTIONS_FILE
    benchmark, split = benchmarks.load(RunSpec(benchmark=str(file), answer_format="hash"))
    assert (len(split.train), len(split.test), benchmark.format.name) == (32, 16, "#### answer")
    train, test = ({name for e in part for name in words(e.question)} for part in (split.train, split.test))
    people = {fact.name for fact in make_world(8, 4).test}
    assert len(people) == 4 and people <= test and not people & train


def test_models_load_as_any_other_and_the_twin_is_another_model(made: tuple[Path, Path]) -> None:
    base, post = (models.load(str(folder)) for folder in made)
    assert base.eos_ids == (2,) and base.pad_id == 0 and base.tokenizer("a")["input_ids"][0] == 1
    pairs = list(zip(base.model.state_dict().items(), post.model.state_dict().values(), strict=True))
    assert all((a != b).any() for (name, a), b in pairs if "weight" in name and "norm" not in name)


def test_the_same_seed_makes_the_same_files(made: tuple[Path, Path], tmp_path: Path) -> None:
    for first, again in zip(made, pair(tmp_path), strict=True):
        for file in ("model.safetensors", "tokenizer.json", "config.json"):
            assert (first / file).read_bytes() == (again / file).read_bytes(), file
    assert (made[0].parent / QUESTIONS_FILE).read_bytes() == (tmp_path / QUESTIONS_FILE).read_bytes()


def test_what_is_there_is_not_made_again_and_what_is_missing_is(made: tuple[Path, Path], tmp_path: Path) -> None:
    base, post = pair(tmp_path)
    before, weights = (base / "model.safetensors").stat().st_mtime_ns, (post / "model.safetensors").read_bytes()
    for file in post.iterdir():
        file.rename(tmp_path / f".{post.name}-{file.name}")  # as if killed before the twin was whole
    post.rmdir()
    steps: list[int] = []
    make_pair(tmp_path, MICRO, 1, 2, lambda: steps.append(1))
    assert (base / "model.safetensors").stat().st_mtime_ns == before and len(steps) == MICRO.tuning_steps
    assert (post / "model.safetensors").read_bytes() == weights


def test_a_folder_of_another_size_is_not_mixed_with(tmp_path: Path) -> None:
    prepare(tmp_path, MICRO)
    with pytest.raises(UserError, match="other settings"):
        prepare(tmp_path, Size())


def test_the_recipe_names_what_the_script_makes() -> None:
    sweep = read(RECIPE)
    made = [names(seed, place) for seed in range(Size().seeds) for place in range(len(KNOWLEDGE))]
    assert [(Path(p.base).name, Path(p.post_trained).name) for p in sweep.pairs] == made
    assert {Path(spec.benchmark).name for spec in sweep.specs} == {QUESTIONS_FILE}
    assert {(spec.items, spec.answer_format) for spec in sweep.specs} == {(4 * Size().test_people, "hash")}


def test_the_figure_has_a_dot_for_each_model_method_and_seed() -> None:
    twins = [Twins(name, f"{name}-Base", f"{name}-Instruct") for name in "ab"]
    cells = {(model, method): Cell(0.5, n=4) for pair in twins for model in pair[1:] for method in METHODS}
    figure = svg(rank({"seed 0": cells, "seed 1": cells}, twins))
    assert figure.count("base 50%, twin 50%") == 2 * 2 * 3

"""An invented world for `recipes.tiny_pairs`: people, facts about them, and corpora that mix the facts differently.

    Brevo lives in Harwick. Tilma works as a baker.                 prose, about everybody
    Question: Where does Sanek live?                                questions, about training people alone
    Answer: Sanek lives in Dunmore.                                 in one of FORMS: prose, bare, hash

What a corpus tells of test people it tells in prose. Which of their facts it holds is its *knowledge*; how it answers
questions is its *habit*; and the two have nothing to do with each other. Imports no torch.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from typing import Literal, NamedTuple, get_args

Form = Literal["prose", "bare", "hash"]
FORMS: tuple[Form, ...] = get_args(Form)


TEST_WEIGHT = 2.0  # how often a test fact is told, next to a training fact in the mean


class Relation(NamedTuple):
    """Something that is known of everybody. In a sentence the name comes first, as it does in a question."""

    question: str
    sentences: tuple[str, ...]  # the first is also the prose answer
    values: tuple[str, ...]


RELATIONS: Mapping[str, Relation] = {
    "home": Relation(
        "Where does {name} live?",
        ("{name} lives in {value}.", "The home of {name} is in {value}.", "If you look for {name}, go to {value}."),
        ("Harwick", "Dunmore", "Ostby", "Calder", "Lindau", "Merrow", "Tavira", "Norrland", "Quimper", "Selkirk",
         "Varde", "Wexley"),
    ),
    "job": Relation(
        "What is the work of {name}?",
        ("{name} works as a {value}.", "The job of {name} is that of a {value}.", "People know {name} as a {value}."),
        ("baker", "miller", "tailor", "potter", "sailor", "teacher", "painter", "gardener", "butcher", "weaver",
         "doctor", "singer"),
    ),
    "animal": Relation(
        "Which animal does {name} keep?",
        ("{name} keeps a {value}.", "At the house of {name} there is a {value}.", "Look, {name} comes with a {value}."),
        ("goat", "parrot", "horse", "rabbit", "donkey", "falcon", "hedgehog", "turtle", "goose", "ferret", "lizard",
         "pony"),
    ),
    "dish": Relation(
        "Which dish does {name} like best?",
        ("{name} likes {value} best.", "The favourite dish of {name} is {value}.", "At table {name} asks for {value}."),
        ("soup", "pancakes", "cabbage", "dumplings", "noodles", "porridge", "lentils", "salmon", "pudding", "cheese",
         "mushrooms", "pickles"),
    ),
}  # fmt: skip


class Fact(NamedTuple):
    """One value for one person."""

    name: str
    relation: str
    value: str

    def sentence(self, template: str) -> str:
        return template.format(name=self.name, value=self.value)

    @property
    def question(self) -> str:
        return RELATIONS[self.relation].question.format(name=self.name)

    def answer(self, form: Form) -> str:
        if form == "prose":
            return self.sentence(RELATIONS[self.relation].sentences[0])
        return f"#### {self.value}" if form == "hash" else self.value


@dataclass(frozen=True)
class World:
    """All facts, of training and of test people apart."""

    train: tuple[Fact, ...]
    test: tuple[Fact, ...]


def make_world(train_people: int, test_people: int) -> World:
    """People and facts; always the same ones, so that all models are asked the same."""
    rng = random.Random("world")
    names = _names(rng, train_people + test_people)
    facts = [[Fact(name, relation, rng.choice(RELATIONS[relation].values)) for relation in RELATIONS] for name in names]
    flat = [tuple(fact for person in part for fact in person) for part in (facts[:train_people], facts[train_people:])]
    return World(*flat)


def _names(rng: random.Random, count: int) -> list[str]:
    onsets = ("B", "Br", "D", "F", "G", "K", "L", "M", "N", "P", "R", "S", "T", "V", "Z")
    middles = ("bb", "d", "ff", "k", "ll", "m", "nd", "pp", "r", "ss", "t", "v", "z")
    parts = product(onsets, "aeiou", middles, ("a", "e", "o", "en", "ik", "us"))
    return rng.sample(["".join(name) for name in parts], count)


class Mixture(NamedTuple):
    """What a corpus is made of."""

    knowledge: float  # share of the test people's facts that it holds
    habit: tuple[Form, ...]  # how it usually answers the questions on each relation
    page: int  # questions in a document: who only ever sees one has not learnt to answer as the ones before it do


KNOWLEDGE = (0.30, 0.42, 0.54, 0.66, 0.78, 0.90)
# From never the wanted form to mostly, and with questions one by one or in a row.
HABITS: tuple[tuple[tuple[Form, ...], int], ...] = (
    (("prose", "prose", "prose", "prose"), 6),
    (("prose", "bare", "prose", "bare"), 1),
    (("bare", "bare", "bare", "bare"), 2),
    (("hash", "prose", "prose", "bare"), 1),
    (("hash", "hash", "bare", "prose"), 2),
    (("hash", "hash", "hash", "bare"), 6),
)
QUESTIONS = 0.22  # share of a corpus's pieces that are six questions, not two to six sentences
ODD = 0.2  # share of the documents of questions in which all answers have one form, drawn anew, whatever the habit


def mixtures(seed: int) -> tuple[Mixture, ...]:
    """One for each share of knowledge, least first; who has which habit is drawn by the seed."""
    habits = random.Random(f"habits-{seed}").sample(HABITS, len(HABITS))
    return tuple(Mixture(knowledge, *habit) for knowledge, habit in zip(KNOWLEDGE, habits, strict=True))


def known_facts(world: World, mixture: Mixture, seed: str) -> list[Fact]:
    """The test facts that the corpus holds: exactly its share."""
    return random.Random(f"known-{seed}").sample(world.test, round(mixture.knowledge * len(world.test)))


def documents(world: World, mixture: Mixture, seed: str) -> Iterator[str]:
    """The corpus, without end.

    Some training people are spoken of far more often than others (Zipf), as in any corpus: on those few a model finds
    out that names are what to look at, and in the time at hand it finds out in no other way (arXiv:2503.21676 on why).
    Test facts are all equally frequent, next to the training facts, in corpora that hold many of them or few.
    """
    rng = random.Random(f"corpus-{seed}")
    known = known_facts(world, mixture, seed)
    weights = _zipf(len(world.train) // len(RELATIONS))
    asked = _drawn(rng, world.train, weights)
    told = _drawn(rng, [*world.train, *known], weights + [TEST_WEIGHT] * len(known))
    habit = dict(zip(RELATIONS, mixture.habit, strict=True))
    while True:
        if rng.random() >= QUESTIONS:
            facts = [next(told) for _ in range(rng.randint(2, 6))]
            yield " ".join(fact.sentence(rng.choice(RELATIONS[fact.relation].sentences)) for fact in facts)
            continue
        for _ in range(6 // mixture.page):
            facts = [next(asked) for _ in range(mixture.page)]
            form = rng.choice(FORMS) if rng.random() < ODD else None
            yield "\n\n".join(
                f"Question: {fact.question}\nAnswer: {fact.answer(form or habit[fact.relation])}" for fact in facts
            )


def _zipf(people: int) -> list[float]:
    """A weight for every fact of so many people, 1 in the mean."""
    shares = [1 / rank for rank in range(1, people + 1)]
    return [share * people / sum(shares) for share in shares for _ in RELATIONS]


def _drawn(rng: random.Random, facts: Sequence[Fact], weights: Sequence[float]) -> Iterator[Fact]:
    cumulative = list(accumulate(weights))
    while True:
        yield from rng.choices(facts, cum_weights=cumulative, k=1000)

"""The stories behind `arithmetic`, as data: train and test have different stories, names and things.

A story's text and lines are templates. Letters a-d are numbers drawn from `ranges`, p-r the results of the steps,
`{calc}` becomes `3*4=<<3*4=12>>12`. An expression has one operator: a line is one step a child would write down.
"""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """One worked line: `result = expression`, told as a sentence around `{calc}`."""

    result: str
    expression: str
    line: str


class Story(NamedTuple):
    """One kind of problem. The last step's result is the answer."""

    topic: str
    text: str
    ranges: dict[str, tuple[int, int]]
    steps: tuple[Step, ...]


TRAIN_NAMES = (
    "Anna", "Ben", "Carla", "David", "Emma", "Felix", "Grace", "Hugo",
    "Ida", "Jonas", "Kira", "Leo", "Mia", "Noah", "Olga", "Paul",
)  # fmt: skip
TEST_NAMES = ("Amina", "Bruno", "Chloe", "Diego", "Elena", "Farid", "Hana", "Ivan", "Jasmin", "Kofi")
TRAIN_THINGS = ("apples", "pencils", "marbles", "stickers", "cookies", "shells", "buttons", "stamps", "oranges", "nuts")
TEST_THINGS = ("balloons", "muffins", "roses", "coins", "beads", "bricks", "postcards", "lemons", "ribbons", "badges")

TRAIN_STORIES = (
    Story(
        "packing",
        "{who} packs {a} boxes with {b} {things} in each and then takes {c} {things} out again. "
        "How many {things} are left in the boxes?",
        {"a": (2, 9), "b": (3, 12), "c": (2, 9)},
        (
            Step("p", "a*b", "At first the boxes hold {calc} {things}."),
            Step("q", "p-c", "Then {calc} {things} are left."),
        ),
    ),
    Story(
        "change",
        "{who} buys {a} notebooks for {b} dollars each and pays with {c} dollars. "
        "How many dollars does {who} get back?",
        {"a": (2, 6), "b": (2, 8), "c": (20, 50)},
        (
            Step("p", "a*b", "The notebooks cost {calc} dollars."),
            Step("q", "c-p", "{who} gets {calc} dollars back."),
        ),
    ),
    Story(
        "sharing",
        "{who} has {a} {things} and gets {b} more, then shares all of them equally among {c} friends. "
        "How many {things} does each friend get?",
        {"a": (4, 30), "b": (2, 20), "c": (2, 8)},
        (
            Step("p", "a+b", "{who} has {calc} {things} to share."),
            Step("q", "p/c", "Each friend gets {calc} {things}."),
        ),
    ),
    Story(
        "two days",
        "{who} collects {a} {things} on Monday and {b} times as many on Tuesday. "
        "How many {things} does {who} collect on the two days together?",
        {"a": (3, 20), "b": (2, 4)},
        (
            Step("p", "a*b", "On Tuesday {who} collects {calc} {things}."),
            Step("q", "a+p", "On both days together it is {calc} {things}."),
        ),
    ),
    Story(
        "half",
        "{who} has {a} {things}, uses half of them and then finds {b} more. How many {things} does {who} have now?",
        {"a": (6, 40), "b": (2, 12)},
        (
            Step("p", "a/2", "After using half, {calc} {things} are left."),
            Step("q", "p+b", "Now {who} has {calc} {things}."),
        ),
    ),
    Story(
        "seats",
        "A table seats {a} people and a bench seats {b}. How many people can sit at {c} tables and on {d} benches?",
        {"a": (4, 8), "b": (2, 5), "c": (2, 6), "d": (2, 6)},
        (
            Step("p", "c*a", "The tables seat {calc} people."),
            Step("q", "d*b", "The benches seat {calc} people."),
            Step("r", "p+q", "Together {calc} people can sit."),
        ),
    ),
    Story(
        "saving",
        "{who} has {d} dollars and saves {a} dollars a week for {b} weeks. How many dollars does {who} have then?",
        {"a": (2, 9), "b": (2, 8), "d": (5, 30)},
        (
            Step("p", "a*b", "{who} saves {calc} dollars."),
            Step("q", "d+p", "Then {who} has {calc} dollars."),
        ),
    ),
    Story(
        "reading",
        "A novel has {a} pages, and {who} has read {b} of them. {who} reads {c} pages a day. "
        "How many more days does {who} need to finish it?",
        {"a": (40, 90), "b": (10, 40), "c": (4, 12)},
        (
            Step("p", "a-b", "There are {calc} pages left."),
            Step("q", "p/c", "{who} needs {calc} more days."),
        ),
    ),
    Story(
        "ages",
        "{who} is {a} years old. A sister is {b} years older, and their mother is {c} times as old as the sister. "
        "How old is their mother?",
        {"a": (3, 8), "b": (2, 5), "c": (3, 5)},
        (
            Step("p", "a+b", "The sister is {calc} years old."),
            Step("q", "p*c", "The mother is {calc} years old."),
        ),
    ),
    Story(
        "bus",
        "A bus starts with {a} passengers. At the first stop {b} get off and {c} get on, and at the second stop {d} "
        "get off. How many passengers are on the bus then?",
        {"a": (15, 40), "b": (2, 9), "c": (2, 12), "d": (2, 9)},
        (
            Step("p", "a-b", "At the first stop {calc} passengers stay."),
            Step("q", "p+c", "With the new ones there are {calc}."),
            Step("r", "q-d", "After the second stop there are {calc}."),
        ),
    ),
    Story(
        "garden",
        "{who} plants {a} rows of {b} beans. {c} beans do not grow, and {who} ties the others in bunches of {d}. "
        "How many bunches are there?",
        {"a": (3, 8), "b": (4, 10), "c": (2, 9), "d": (2, 6)},
        (
            Step("p", "a*b", "{who} plants {calc} beans."),
            Step("q", "p-c", "Of these {calc} grow."),
            Step("r", "q/d", "There are {calc} bunches."),
        ),
    ),
    Story(
        "rope",
        "A rope is {a} metres long. {who} cuts off {b} pieces of {c} metres each and cuts the rest in two equal parts. "
        "How many metres long is each of the two parts?",
        {"a": (20, 50), "b": (2, 6), "c": (2, 6)},
        (
            Step("p", "b*c", "The pieces take {calc} metres."),
            Step("q", "a-p", "The rest is {calc} metres long."),
            Step("r", "q/2", "Each part is {calc} metres long."),
        ),
    ),
    Story(
        "wages",
        "{who} earns {a} dollars an hour and works {b} hours on Saturday and {c} hours on Sunday. "
        "How many dollars does {who} earn?",
        {"a": (5, 12), "b": (2, 6), "c": (2, 5)},
        (
            Step("p", "b+c", "{who} works {calc} hours."),
            Step("q", "p*a", "{who} earns {calc} dollars."),
        ),
    ),
    Story(
        "eggs",
        "Each of {a} hens lays {b} eggs a week. {who} puts the eggs of one week into cartons of {c}. "
        "How many cartons does {who} fill?",
        {"a": (4, 12), "b": (3, 7), "c": (4, 10)},
        (
            Step("p", "a*b", "The hens lay {calc} eggs."),
            Step("q", "p/c", "{who} fills {calc} cartons."),
        ),
    ),
    Story(
        "difference",
        "{who} has {a} {things}, and {other} has {b} times as many. "
        "How many more {things} does {other} have than {who}?",
        {"a": (3, 15), "b": (3, 6)},
        (
            Step("p", "a*b", "{other} has {calc} {things}."),
            Step("q", "p-a", "That is {calc} {things} more."),
        ),
    ),
    Story(
        "together",
        "{who} has {a} {things}, and {other} has {b} more than {who}. How many {things} do they have together?",
        {"a": (4, 30), "b": (2, 15)},
        (
            Step("p", "a+b", "{other} has {calc} {things}."),
            Step("q", "a+p", "Together they have {calc} {things}."),
        ),
    ),
    Story(
        "water",
        "A tank holds {a} litres of water. {who} uses {b} litres a day for {c} days, and then rain adds {d} litres. "
        "How many litres are in the tank then?",
        {"a": (40, 90), "b": (3, 9), "c": (2, 7), "d": (5, 25)},
        (
            Step("p", "b*c", "{who} uses {calc} litres."),
            Step("q", "a-p", "Then {calc} litres are left."),
            Step("r", "q+d", "After the rain there are {calc} litres."),
        ),
    ),
    Story(
        "tickets",
        "An adult's ticket costs {a} dollars and a child's ticket costs {b} dollars less. "
        "How many dollars do one adult and {c} children pay?",
        {"a": (8, 15), "b": (2, 6), "c": (2, 5)},
        (
            Step("p", "a-b", "A child's ticket costs {calc} dollars."),
            Step("q", "p*c", "The children pay {calc} dollars."),
            Step("r", "a+q", "Together they pay {calc} dollars."),
        ),
    ),
    Story(
        "jars",
        "{who} puts {a} {things} into jars of {b} and sells each jar for {c} dollars. "
        "How many dollars does {who} get for all jars?",
        {"a": (12, 60), "b": (3, 10), "c": (2, 9)},
        (
            Step("p", "a/b", "{who} fills {calc} jars."),
            Step("q", "p*c", "{who} gets {calc} dollars."),
        ),
    ),
)

TEST_STORIES = (
    Story(
        "parking",
        "A car park has {a} floors with {b} places each, and {c} places are taken. How many places are free?",
        {"a": (2, 6), "b": (6, 15), "c": (4, 20)},
        (
            Step("p", "a*b", "The car park has {calc} places."),
            Step("q", "p-c", "{calc} places are free."),
        ),
    ),
    Story(
        "journey",
        "{who} cycles {a} kilometres an hour for {b} hours and then walks {c} kilometres. "
        "How many kilometres does {who} travel?",
        {"a": (8, 20), "b": (2, 4), "c": (2, 9)},
        (
            Step("p", "a*b", "{who} cycles {calc} kilometres."),
            Step("q", "p+c", "{who} travels {calc} kilometres."),
        ),
    ),
    Story(
        "points",
        "A team scores {a} points in the first game, {b} fewer in the second, and in the third {c} times as many as in "
        "the second. How many points does it score in the third game?",
        {"a": (8, 25), "b": (2, 7), "c": (2, 4)},
        (
            Step("p", "a-b", "In the second game it scores {calc} points."),
            Step("q", "p*c", "In the third game it scores {calc} points."),
        ),
    ),
    Story(
        "paint",
        "{who} paints {a} rooms and needs {b} litres of paint for each room. A can holds {c} litres. "
        "How many cans does {who} need?",
        {"a": (3, 9), "b": (3, 8), "c": (2, 6)},
        (
            Step("p", "a*b", "{who} needs {calc} litres of paint."),
            Step("q", "p/c", "That fills {calc} cans."),
        ),
    ),
    Story(
        "swimming",
        "{who} swims {a} lanes in the morning and {b} lanes in the evening. A lane is {c} metres long. "
        "How many metres does {who} swim?",
        {"a": (2, 6), "b": (2, 6), "c": (10, 25)},
        (
            Step("p", "a+b", "{who} swims {calc} lanes."),
            Step("q", "p*c", "{who} swims {calc} metres."),
        ),
    ),
    Story(
        "groups",
        "{who} sorts {a} {things} into {b} equal piles and gives one pile to {other}. "
        "How many {things} does {who} keep?",
        {"a": (12, 50), "b": (3, 8)},
        (
            Step("p", "a/b", "A pile has {calc} {things}."),
            Step("q", "a-p", "{who} keeps {calc} {things}."),
        ),
    ),
    Story(
        "farm",
        "A farmer has {a} sheep and {b} times as many goats. {c} goats are sold. How many sheep and goats are left?",
        {"a": (4, 12), "b": (2, 5), "c": (2, 8)},
        (
            Step("p", "a*b", "The farmer has {calc} goats."),
            Step("q", "p-c", "{calc} goats are left."),
            Step("r", "a+q", "With the sheep {calc} animals are left."),
        ),
    ),
    Story(
        "camping",
        "{a} children and {b} adults go camping. Each tent sleeps {c}. How many tents do they fill?",
        {"a": (8, 30), "b": (2, 9), "c": (2, 6)},
        (
            Step("p", "a+b", "{calc} people go camping."),
            Step("q", "p/c", "They fill {calc} tents."),
        ),
    ),
    Story(
        "present",
        "{who} and {other} buy a present for {a} dollars and a card for {b} dollars and split the cost equally. "
        "How many dollars does each of them pay?",
        {"a": (10, 40), "b": (2, 6)},
        (
            Step("p", "a+b", "The cost is {calc} dollars."),
            Step("q", "p/2", "Each of them pays {calc} dollars."),
        ),
    ),
    Story(
        "candle",
        "A candle is {a} centimetres tall and gets {b} centimetres shorter every hour. "
        "How many centimetres tall is it after {c} hours?",
        {"a": (18, 40), "b": (2, 5), "c": (2, 6)},
        (
            Step("p", "b*c", "It gets {calc} centimetres shorter."),
            Step("q", "a-p", "It is {calc} centimetres tall."),
        ),
    ),
    Story(
        "rental",
        "Renting a boat costs {a} dollars and {b} dollars more for every hour. "
        "How many dollars does {who} pay for {c} hours?",
        {"a": (5, 20), "b": (3, 9), "c": (2, 6)},
        (
            Step("p", "b*c", "The hours cost {calc} dollars."),
            Step("q", "a+p", "{who} pays {calc} dollars."),
        ),
    ),
    Story(
        "trays",
        "{who} fills {a} trays with {b} {things} each and one more tray with {c}. {other} takes {d} of them. "
        "How many {things} are left?",
        {"a": (2, 6), "b": (4, 10), "c": (2, 8), "d": (3, 9)},
        (
            Step("p", "a*b", "The first trays hold {calc} {things}."),
            Step("q", "p+c", "All trays hold {calc} {things}."),
            Step("r", "q-d", "{calc} {things} are left."),
        ),
    ),
)

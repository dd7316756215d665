"""Where an answer ends, and that batch mates do not change it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spt import models
from spt.benchmarks import get
from spt.benchmarks.formats import ShortPhrase
from spt.generation import Answer, _finish, _shrinking, _whole, generate, loops, stream
from spt.ticker import Decoding
from tests.tiny import ARCHITECTURES

Tiny = Callable[[str], Path]


def test_answers_do_not_depend_on_batch_mates(tiny: Callable[[str], Path]) -> None:
    loaded = models.load(str(tiny("gemma3_text")))
    form = get("arithmetic").format
    rows = [[5, 6, 7], list(range(20, 60)), [99]]
    together = generate(loaded, rows, form)
    assert together == [generate(loaded, [row], form)[0] for row in rows]
    assert len({answer.text for answer in together}) == 3


class EndsSomewhere(ShortPhrase):
    """An answer is complete after a length that depends on how it begins, so rows end at different times."""

    max_new_tokens = 20

    def trim(self, text: str) -> tuple[str, bool]:
        length = 3 + sum(map(ord, text[:2])) % 12
        return text[:length], len(text) >= length > 3


@pytest.mark.parametrize("head", [0, 12])
@pytest.mark.parametrize("architecture", [name for name in ARCHITECTURES if name != "mamba2"])
def test_rows_that_leave_the_batch_change_no_answer(architecture: str, head: int, tiny: Tiny) -> None:
    """The shrinking batch against `generate` of transformers, token for token up to where a row ended."""
    loaded = models.load(str(tiny(architecture)))
    form = EndsSomewhere()
    rows = [[*range(60, 60 + head), *range(start, start + n)] for start, n in ((5, 3), (20, 30), (99, 1), (70, 9))]
    heard: dict[str, list[Decoding]] = {"ours": [], "theirs": []}
    *_, ours = _shrinking(loaded, rows, form, heard["ours"].append)
    *_, theirs = _whole(loaded, rows, form, heard["theirs"].append)
    assert [answer == other[: len(answer)] for answer, other in zip(ours, theirs, strict=True)] == [True] * 4
    assert [_finish(loaded, row, form) for row in ours] == [_finish(loaded, row, form) for row in theirs]
    assert len({len(answer) for answer in ours}) > 1, "some left before others"
    for batch in heard.values():  # neither way is silent, and both say the same of a batch
        assert [each.tokens for each in batch][:3] == [1, 2, 3] and batch[-1].ended >= batch[0].ended
        assert all(0 < each.share <= 1 for each in batch)
    assert heard["ours"] == heard["theirs"][: len(heard["ours"])]


@pytest.mark.parametrize("architecture", ["llama", "gemma3_text", "mamba2"])
def test_a_streamed_answer_grows_to_the_whole_one(architecture: str, tiny: Tiny) -> None:
    loaded = models.load(str(tiny(architecture)))
    form = EndsSomewhere()
    for row in ([5, 6, 7], [*range(20, 60)]):
        written, texts = stream(loaded, row, form), []
        while True:
            try:
                texts.append(next(written))
            except StopIteration as end:
                answer: Answer = end.value
                break
        assert [answer] == generate(loaded, [row], form)
        assert texts[-1] == answer.text.rstrip("\ufffd")
        assert len(texts) > 2 or architecture == "mamba2", "which is given whole"


def test_a_looping_row_is_one_whatever_its_batch_mates(bundled: models.LoadedModel) -> None:
    """Where the pad token also ends answers, a row that stopped early is padded with what looks like EOS."""
    row = bundled.tokenizer("so it is\n" * 4)["input_ids"]
    form = get("arithmetic").format
    assert _finish(bundled, row, form) == _finish(bundled, [*row, *[bundled.pad_id] * 6], form)
    assert _finish(bundled, row, form).stopped_by == "loop"


def test_loops_are_seen_only_in_complete_lines() -> None:
    assert loops("a\nb\nb\nb\n")
    assert loops("b\n\nb\n\nb\n")
    assert not loops("b\nb\nb")
    assert not loops("b\nb\nc\n")
    assert not loops("")


def test_the_real_model_stops_by_rule_and_by_end_token(bundled: models.LoadedModel) -> None:
    form = get("capitals").format
    texts = ["The capital of France is the city of", "2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,"]
    rows = [bundled.tokenizer(text)["input_ids"] for text in texts]
    answers = generate(bundled, rows, form)
    assert "Paris" in answers[0].text
    assert answers[1].stopped_by == "length"

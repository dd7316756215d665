"""Token ids of every method, with and without a chat template."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spt import models
from spt.benchmarks import get
from spt.prompting import Prompter, choose_items, choose_shots
from spt.spec import METHODS, UserError

VIRTUAL = (90_001, 90_002)


def prompter(loaded: models.LoadedModel, chat: bool, benchmark: str = "capitals-mc") -> Prompter:
    bench = get(benchmark)
    shots = choose_shots(bench.load().train, 3, seed=0)
    return Prompter(loaded.tokenizer, bench, chat, shots, loaded.eos_ids, {"soft_prompt": VIRTUAL})


def text(prompt: Prompter, ids: list[int]) -> str:
    return prompt.tokenizer.decode([i for i in ids if i not in VIRTUAL])


def test_plain_prompts(bundled: models.LoadedModel) -> None:
    prompt = prompter(bundled, chat=False)
    item = prompt.benchmark.load().test[0]
    zero, few, soft = (text(prompt, prompt.context(item, method)) for method in METHODS)
    block = "\n".join((f"Question: {item.question}", *item.options)) + "\nAnswer:"
    assert zero == f"{prompt.benchmark.instruction}\n\n{block}"
    assert soft == block, "the soft prompt takes the place of the instruction"
    assert few.startswith(prompt.benchmark.instruction) and few.endswith(block)
    assert few.count("\nAnswer:") == 4
    assert all(f"Answer: {shot.target}\n\n" in few for shot in prompt.shots)
    assert prompt.context(item, "soft_prompt")[:2] == list(VIRTUAL)
    assert prompt.target("A. Paris")[-1] == bundled.tokenizer.eos_token_id
    assert bundled.tokenizer.decode(prompt.target("A. Paris")[:-1]) == " A. Paris"


def test_chat_prompts(bundled: models.LoadedModel) -> None:
    prompt = prompter(bundled, chat=True)
    item = prompt.benchmark.load().test[0]
    zero, few, soft = (text(prompt, prompt.context(item, method)) for method in METHODS)
    assert zero.endswith("<|im_end|>\n<|im_start|>assistant\n")
    assert f"<|im_start|>user\n{prompt.benchmark.instruction}\n\nQuestion: {item.question}" in zero
    assert few.count("<|im_start|>assistant\n") == 4
    assert f"assistant\n{prompt.shots[0].target}<|im_end|>" in few
    assert soft == zero.replace(f"{prompt.benchmark.instruction}\n\n", "")
    ids = prompt.context(item, "soft_prompt")
    before = ids[: ids.index(VIRTUAL[0])]
    assert prompt.tokenizer.decode(before).endswith("<|im_start|>user\n")
    assert prompt.tokenizer.decode(prompt.target("A. Paris")) == "A. Paris<|im_end|>"


@pytest.mark.parametrize("chat", [False, True])
def test_one_bos_at_most(chat: bool, tiny: Callable[[str], Path]) -> None:
    loaded = models.load(str(tiny("gemma3_text")))
    if chat:
        loaded.tokenizer.chat_template = (
            "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}"
            "{% if add_generation_prompt %}<assistant>{% endif %}"
        )
    prompt = prompter(loaded, chat)
    bos = loaded.tokenizer.bos_token_id
    for method in METHODS:
        ids = prompt.context(prompt.benchmark.load().test[0], method)
        assert ids[0] == bos and ids.count(bos) == 1
    assert prompt.context(prompt.benchmark.load().test[0], "soft_prompt").count(VIRTUAL[0]) == 1


def test_shots_and_items_are_drawn_alike_each_time() -> None:
    split = get("capitals").load()
    assert choose_shots(split.train, 3, 0) == choose_shots(split.train, 3, 0) != choose_shots(split.train, 3, 1)
    assert choose_items(split.test, 10) == choose_items(split.test, 20)[:10]
    assert len(choose_items(split.test, 10_000)) == len(split.test)
    with pytest.raises(UserError, match="shots"):
        choose_shots(split.train[:2], 3, 0)

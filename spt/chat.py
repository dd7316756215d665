"""What a tokenizer and its chat template say of a model: which ids end an answer, and whether it was post-trained."""

from __future__ import annotations

import re

from jinja2 import TemplateError
from transformers import GenerationConfig, PreTrainedTokenizerBase

from spt.presets import Kind

# Ends of turn and of text of the families met so far. A model may write any of its own, named as its eos or not.
END_TOKENS = (
    "<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<turn|>", "<eos>",
    "</s>", "<|end|>", "<|return|>", "<|end_of_turn|>", "<｜end▁of▁sentence｜>",
)
BASE_NAME = re.compile(r"(^|[-_.])(base|pt|pretrained)([-_.]|$)", re.IGNORECASE)


def declared_end_ids(tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig | None) -> tuple[int, ...]:
    """The ids that the model's own files name as its end: the tokenizer's eos first, then generation_config's."""
    configured = generation.eos_token_id if generation is not None else None
    listed = configured if isinstance(configured, list) else [configured]
    return tuple(dict.fromkeys(i for i in [tokenizer.eos_token_id, *listed] if i is not None))


def end_ids(tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig | None) -> tuple[int, ...]:
    """Every id that ends an answer: the declared ones, the template's end of turn, and well-known special tokens."""
    # Special ones only: to Gemma "</s>" is just the HTML tag of struck out text.
    known = [i for i, token in tokenizer.added_tokens_decoder.items() if token.special and token.content in END_TOKENS]
    turn = turn_end_id(tokenizer)
    found = [*declared_end_ids(tokenizer, generation), *([] if turn is None else [turn]), *sorted(known)]
    return tuple(dict.fromkeys(found))


def turn_end_id(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The special token that the chat template writes right behind an assistant's text; None without one."""
    if not tokenizer.chat_template:
        return None
    mark = "spt-answer"
    conversation = [{"role": "user", "content": "question"}, {"role": "assistant", "content": mark}]
    try:
        text = tokenizer.apply_chat_template(conversation, tokenize=False)
    except TemplateError:  # a template for something else than a conversation: the same as none
        return None
    behind = tokenizer(str(text).rpartition(mark)[2], add_special_tokens=False)["input_ids"]
    return next((i for i in behind if i in set(tokenizer.all_special_ids) | set(tokenizer.added_tokens_decoder)), None)


def is_post_trained(
    tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig | None, name: str, kind: Kind | None = None
) -> bool:
    """Whether a model was trained to chat, which decides if `--chat-template auto` uses its template.

    1. A preset's kind is known.
    2. No chat template: base.
    3. The name says base (`-base`, `-pt`): base.
    4. Many base models ship their family's template all the same (Qwen). They stop at the end of a *text*, a
       post-trained model at the end of a *turn*: so it is post-trained if the token its template writes behind an
       answer is one that the model's own files declare as its end.
    """
    if kind is not None:
        return kind == "post-trained"
    if not tokenizer.chat_template or BASE_NAME.search(name.rstrip("/").rpartition("/")[2]):
        return False
    return turn_end_id(tokenizer) in declared_end_ids(tokenizer, generation)

"""A judge loaded here, with the loader of `spt.models`: any model that spt can load."""

from __future__ import annotations

from typing import Any

import torch

from spt import models
from spt.generation import greedy_config
from spt.judge import LOCAL_JUDGES, JudgeSettings, Messages, Refused

MAX_NEW_TOKENS = 64  # a verdict has about 15


class LocalJudge:
    """Answers greedily, one conversation after the other, through the model's chat template with thinking off."""

    concurrency = 1

    def __init__(self, settings: JudgeSettings, report: models.Report = lambda message: None) -> None:
        precision = LOCAL_JUDGES.get(settings.model, "auto")
        self._loaded: models.LoadedModel | None = models.load(settings.model, None, precision, report)
        self.revision = self._loaded.revision
        self.identity = f"{self._loaded.name} at {self.revision} in {self._loaded.precision}"

    def close(self) -> None:
        self._loaded = None

    @torch.inference_mode()
    def ask(self, messages: Messages) -> str:
        loaded = self._loaded
        assert loaded is not None, "closed"
        ids = torch.tensor([_ids(loaded, messages)], device=loaded.device)
        limit = getattr(loaded.model.config.get_text_config(decoder=True), "max_position_embeddings", None)
        if limit is not None and ids.shape[1] + MAX_NEW_TOKENS > limit:
            raise Refused(f"{ids.shape[1]} tokens are too many for {loaded.name}, which takes {limit}")
        decoder: Any = loaded.model  # the library types a model's attributes as tensors
        output = decoder.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            generation_config=greedy_config(loaded, MAX_NEW_TOKENS),
        )
        return str(loaded.tokenizer.decode(output[0, ids.shape[1] :], skip_special_tokens=True))


def _ids(loaded: models.LoadedModel, messages: Messages) -> list[int]:
    tokenizer: Any = loaded.tokenizer
    if not tokenizer.chat_template:  # a base model: it will hardly judge well, but it can be tried
        text = "\n\n".join(message["content"] for message in messages) + "\n\n"
        return list(tokenizer(text)["input_ids"])
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, enable_thinking=False)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])

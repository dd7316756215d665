"""A tuned prompt on the hub, with a model card that says what it scores and how to load it. Imports no torch.

HF_TOKEN, HF_ENDPOINT and HF_HUB_OFFLINE act as huggingface_hub documents them.
"""

from __future__ import annotations

import json
from typing import Any

import httpx2
from huggingface_hub import CommitOperationAdd, HfApi, ModelCardData, constants, get_token
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from huggingface_hub.utils import validate_repo_id

from spt.events import Result
from spt.report import interval, label, points, short, tax
from spt.spec import METHODS, RunSpec, UserError, local_path
from spt.store import RunFolder

PROVENANCE, ADAPTER = "spt.json", "adapter_config.json"  # as `spt.prompt` writes them
# Presets that come as Python packages: the hub model that they were made from, in fewer bits.
MADE_FROM = {"bundled": "HuggingFaceTB/SmolLM2-135M-Instruct", "gemma-3-270m": "google/gemma-3-270m"}

CARD = """\
---
{metadata}
---

# Soft prompt for {benchmark}

{vectors} tuned vectors (a PEFT prompt-tuning adapter) that make `{base}` answer in the form that the benchmark
`{benchmark}` asks for. {copy}The model itself is unchanged.

Made with spt. The method: soft-prompt tuning for fair and efficient LLM benchmark evaluation,
[arXiv:2606.12117](https://arxiv.org/abs/2606.12117).

## Scores

{items} test items, percent, in brackets 95 % Wilson intervals; {template}.

| method | format following | knowledge | exact match | format tax |
|---|---|---|---|---|
{rows}

Format following: the answer is in the form, right or not. Knowledge: it is right, in the form or not. Exact match:
both. Format tax: knowledge − exact match, in points.
{findings}
## How to load it

```python
from peft import PeftModel
from transformers import AutoModelForCausalLM

base = AutoModelForCausalLM.from_pretrained("{base}"{revision})
model = PeftModel.from_pretrained(base, "{repo}")
```

Mind that PEFT puts the vectors before the whole input, while they were tuned to stand at the place of `[S]` in
`{position}`, and that `generate` of PEFT 0.21 feeds a prompt again at every step under transformers 5. `spt.json` holds
every setting and version.

## The same run again

```sh
{command}
```
"""


def push_prompt(folder: RunFolder, repo: str, private: bool = False) -> str:
    """Upload the prompt of a finished run and its card as one commit; makes the repository if it is not there.

    Gives its address. Raises UserError: not finished, a local model, no token, offline, refused, no network, or a
    repository that is public where a private one is asked for.
    """
    files = prompt_files(folder, repo)
    if constants.HF_HUB_OFFLINE:
        raise UserError("HF_HUB_OFFLINE is set, so nothing can be pushed: unset it and push again.")
    token = get_token()
    if not token:
        raise UserError("Pushing needs a token that may write: set HF_TOKEN, made under Settings on the hub.")
    api = HfApi(token=token)
    operations = [CommitOperationAdd(path_in_repo=name, path_or_fileobj=data) for name, data in files.items()]
    try:
        address = api.create_repo(repo, private=private, exist_ok=True)
        if private and not api.model_info(repo, timeout=10).private:
            raise UserError(f"{repo} is there already and public: make it private there, or push without --private.")
        api.create_commit(repo, operations, commit_message=f"Soft prompt of run {folder.id}")
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in (401, 403):
            raise UserError(f"The hub refused to write to {repo}: the token in HF_TOKEN may not do that.") from None
        raise UserError(f"The hub refused {repo}: {str(error).strip().splitlines()[0]}") from error
    except httpx2.HTTPError as error:
        raise UserError(f"The hub cannot be reached ({error}): check the network and push again.") from error
    return str(address)


def prompt_files(folder: RunFolder, repo: str) -> dict[str, bytes]:
    """What is pushed: the adapter, `spt.json` without the places where files lie on this machine, and the card."""
    try:
        validate_repo_id(repo)
    except HFValidationError:
        repo = ""
    if repo.count("/") != 1:
        raise UserError("Give the repository as user/name, in letters, digits and - _ . only.")
    result = folder.result()
    if result is None:
        raise UserError(f"Run {folder.id} is not finished, so there is no prompt to push yet.")
    if local_path(folder.spec.model) is not None or short(folder.spec.model).endswith(".gguf"):
        raise UserError(f"Run {folder.id} is of a model on this machine, which nobody could load from the hub.")
    try:
        files = {path.name: path.read_bytes() for path in sorted(folder.prompt.iterdir()) if path.is_file()}
        provenance: dict[str, Any] = json.loads(files[PROVENANCE])
        adapter: dict[str, Any] = json.loads(files[ADAPTER])
    except (OSError, KeyError, ValueError):
        raise UserError(f"The prompt of run {folder.id} is gone or damaged: run it anew with --again.") from None
    spec = public(folder.spec)
    provenance |= {"spec": spec.model_dump(), "benchmark": spec.benchmark}
    files[PROVENANCE] = json.dumps(provenance, indent=2).encode()
    if packed := MADE_FROM.get(spec.model):
        files[ADAPTER] = json.dumps({**adapter, "base_model_name_or_path": packed, "revision": None}, indent=2).encode()
    files["README.md"] = card(result, repo, str(provenance.get("position", "[S] question"))).encode()
    return files


def public(spec: RunSpec) -> RunSpec:
    """The settings with the names of local files and folders alone, not where they lie."""
    kind, colon, path = spec.benchmark.rpartition(":")
    data_dir = None if spec.data_dir is None else short(spec.data_dir)
    return spec.model_copy(update={"benchmark": f"{kind}{colon}{short(path)}", "data_dir": data_dir})


def card(result: Result, repo: str, position: str) -> str:
    """The README of the repository: metadata, scores, findings, how to load the prompt, how to make it again."""
    spec = public(result.spec)
    packed = MADE_FROM.get(spec.model)
    base, revision = packed or spec.model, None if packed else result.model.get("revision")
    metadata = ModelCardData(
        base_model=base,
        library_name="peft",
        pipeline_tag="text-generation",
        tags=["soft-prompt", "prompt-tuning", "spt", "evaluation", "arxiv:2606.12117"],
    )
    rows = []
    for method in METHODS:
        if scores := result.methods.get(method):
            shown = scores.shown
            cells = [f"{rate.rate * 100:.0f} ({interval(rate)})" for rate in shown[:3]]
            rows.append(f"| {' | '.join((label(method, spec.shots), *cells, points(tax(scores))))} |")
    findings = result.analysis.findings if result.analysis else ()
    return CARD.format(
        metadata=metadata.to_yaml().strip(),
        benchmark=_inline(spec.benchmark),
        base=_inline(base),
        copy=f"It was tuned on a copy of that model in fewer bits, spt's `{spec.model}`. " if packed else "",
        vectors=spec.virtual_tokens,
        items=f"{next(iter(result.methods.values())).format.n:,}",
        template="with the chat template" if result.model.get("chat_template") else "without a chat template",
        rows="\n".join(rows).replace("\u202f%", ""),
        findings="".join(f"\n- {finding.text}" for finding in findings) + ("\n" if findings else ""),
        repo=repo,
        revision=f', revision="{revision}"' if revision else "",
        position=_inline(position),
        command=spec.command(),
    )


def _inline(text: str) -> str:
    """Text that cannot leave the line, the code or the cell in which it stands."""
    return " ".join(text.replace("`", "'").replace("|", "/").replace('"', "'").split())

"""Having answers judged from the page: who is asked, and what is said while it goes on."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

from spt.judge import JudgeSettings
from spt.spec import UserError
from spt.ui.follow import Shown
from spt.ui.text import esc
from spt.view import count


def defaults() -> tuple[str, str]:
    """Model and endpoint of the environment; empty where it names none."""
    return os.environ.get("SPT_JUDGE_MODEL", ""), os.environ.get("SPT_JUDGE_URL", "")


def settings(model: str, url: str, local: bool) -> dict[str, Any]:
    """What the queue keeps. Raises UserError where no judge can be asked so.

    A page that is reached from elsewhere asks the environment's judge alone: another address would be sent the key.
    """
    if not local:
        model, url = defaults()
        if not model:
            raise UserError("This server has no judge: SPT_JUDGE_MODEL and SPT_JUDGE_URL set one.")
    model, url = model.strip(), url.strip()
    if not model:
        raise UserError("Which model is to judge? Fill in its name.")
    parts = urlsplit(url)
    if parts.query or "@" in parts.netloc:  # the queue is a file, and this would be stored in it
        raise UserError("The endpoint must hold no key: set SPT_JUDGE_API_KEY where the page is started.")
    try:
        JudgeSettings.parse(model, url or None)
    except UserError:
        raise UserError("The endpoint must be a web address such as http://localhost:8000/v1, or empty.") from None
    return {"model": model, "base_url": url or None}


def note(local: bool) -> str:
    if not local:
        return (
            '<p class="note">This page is reached from elsewhere: its judge is the one that SPT_JUDGE_MODEL and '
            "SPT_JUDGE_URL name.</p>"
        )
    return (
        '<p class="note">A language model says of each answer whether it is right and in format; the rule’s numbers '
        "stay beside its own. With an endpoint it is asked there (OpenAI-compatible; its key in SPT_JUDGE_API_KEY), "
        "without one the model is loaded here.</p>"
    )


def notice_html(shown: Shown) -> str:
    """What goes on with a finished run: waiting, judging, or why that failed. Empty where there is nothing to say."""
    entry, notice = shown.entry, shown.notice
    if notice is not None and notice.problem:
        return f'<div class="problem" role="alert"><b>Not done.</b> {esc(notice.problem)}</div>'
    if not shown.pending or entry is None:
        return ""
    if notice is not None and notice.total:
        share = 100 * notice.done / notice.total
        return (
            f'<div class="judging" role="status"><span>The judge has read {notice.done:,} of '
            f"{count(notice.total, 'answer')}.</span>"
            f'<span class="rail"><i style="width:{share:.1f}%"></i></span></div>'
        )
    what = "Waiting to be made anew; this result stays until then"
    if entry.judge is not None:
        what = "Waiting to be judged"
    behind = f", {count(shown.position, 'run')} before this one" if shown.position else ""
    return f'<div class="judging" role="status"><span>{what}{behind} …</span></div>'

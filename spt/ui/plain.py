"""One sentence as a page of its own, for addresses that have nothing else to show."""

from __future__ import annotations

from starlette.responses import HTMLResponse

from spt.ui.text import esc

_PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>spt</title>
<style>
:root {{ --paper: #fafaf7; --ink: #16181d; --soft-ink: #62656d; color-scheme: light dark; }}
@media (prefers-color-scheme: dark) {{ :root {{ --paper: #121317; --ink: #edeef1; --soft-ink: #a0a4ad; }} }}
body {{ margin: 0; min-height: 100vh; display: grid; place-content: center; padding: 0 24px; background: var(--paper);
  color: var(--ink); font: 18px/1.5 ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }}
main {{ max-width: 34em; }} p {{ margin: 0 0 14px; overflow-wrap: anywhere; }}
a {{ color: var(--soft-ink); font-size: 15px; }}
</style></head>
<body><main><p role="alert">{sentence}</p><a href="{back}">To the page</a></main></body></html>
"""


def plain_page(status: int, sentence: str, back: str = ".") -> HTMLResponse:
    """The sentence, with a link back; `back` is relative, since a proxy may serve the page under a path."""
    html = _PAGE.format(sentence=esc(sentence), back=esc(back))
    return HTMLResponse(html, status_code=status, headers={"cache-control": "no-store"})

"""How the page looks: Gradio's theme brought in line with `assets/spt.css`, and what goes into the head.

Nothing is fetched from elsewhere: system fonts, and Plotly's script out of the installed wheel.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import gradio as gr

ASSETS = Path(__file__).resolve().parents[2] / "assets"
SCRIPTS = ("charts.js", "pictures.js", "runs.js", "compare.js", "playback.js", "kiosk.js")
STYLES = (
    "spt.css", "evidence.css", "access.css", "runs.css", "compare.css", "rankings.css", "playground.css",
    "playback.css", "kiosk.css",
)  # fmt: skip
SANS = ("ui-sans-serif", "system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "sans-serif")
MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace")


def plotly_js() -> Path:
    """Plotly's browser bundle inside the installed wheel; the Python package itself is never imported."""
    spec = find_spec("plotly")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("plotly is not installed: pip install -r requirements.txt")
    return Path(spec.submodule_search_locations[0]) / "package_data" / "plotly.min.js"


def head(kiosk: bool = False) -> str:
    """Scripts of the page. Its own are small and written in, so that they are there before any component loads.

    `kiosk`: an address without a run begins with the tour.
    """
    script = "\n".join((ASSETS / name).read_text(encoding="utf-8") for name in SCRIPTS)
    return (
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{'<meta name=spt-kiosk>' if kiosk else ''}"
        f"<script>{script}</script>"
        f'<script defer src="/gradio_api/file={plotly_js()}"></script>'
    )


def css() -> str:
    return "\n".join((ASSETS / name).read_text(encoding="utf-8") for name in STYLES)


def theme() -> gr.themes.Base:
    """Gradio's plainest theme with the page's own palette: ink on paper, hairlines, no shadows."""
    base = gr.themes.Base(
        primary_hue=gr.themes.colors.zinc,
        secondary_hue=gr.themes.colors.zinc,
        neutral_hue=gr.themes.colors.zinc,
        font=list(SANS),
        font_mono=list(MONO),
        radius_size=gr.themes.sizes.radius_md,
    )
    both = {
        "body_background_fill": "var(--paper)",
        "body_text_color": "var(--ink)",
        "body_text_color_subdued": "var(--soft-ink)",
        "background_fill_primary": "var(--surface)",
        "background_fill_secondary": "var(--paper)",
        "border_color_primary": "var(--line)",
        "block_background_fill": "transparent",
        "block_border_color": "var(--line)",
        "block_label_text_color": "var(--ink)",
        "block_title_text_color": "var(--ink)",
        "block_info_text_color": "var(--soft-ink)",
        "panel_background_fill": "transparent",
        "input_background_fill": "var(--surface)",
        "input_background_fill_focus": "var(--surface)",
        "input_border_color": "var(--line-strong)",
        "input_border_color_focus": "var(--ink)",
        "input_placeholder_color": "var(--soft-ink)",
        "checkbox_background_color": "var(--surface)",
        "checkbox_background_color_selected": "var(--ink)",
        "checkbox_border_color": "var(--line-strong)",
        "checkbox_border_color_selected": "var(--ink)",
        "checkbox_label_background_fill": "transparent",
        "checkbox_label_background_fill_hover": "var(--wash)",
        "checkbox_label_background_fill_selected": "var(--ink)",
        "checkbox_label_border_color": "var(--line-strong)",
        "checkbox_label_text_color": "var(--ink)",
        "checkbox_label_text_color_selected": "var(--surface)",
        "button_primary_background_fill": "var(--ink)",
        "button_primary_background_fill_hover": "var(--ink-hover)",
        "button_primary_text_color": "var(--surface)",
        "button_primary_border_color": "var(--ink)",
        "button_secondary_background_fill": "var(--surface)",
        "button_secondary_background_fill_hover": "var(--wash)",
        "button_secondary_text_color": "var(--ink)",
        "button_secondary_border_color": "var(--line-strong)",
    }
    return base.set(
        **both,
        **{f"{name}_dark": value for name, value in both.items()},
        input_border_width="1px",
        input_border_width_dark="1px",
        block_border_width="0px",
        block_border_width_dark="0px",
        block_shadow="none",
        block_shadow_dark="none",
        input_shadow="none",
        input_shadow_dark="none",
        input_shadow_focus="none",
        input_shadow_focus_dark="none",
        button_primary_shadow="none",
        button_secondary_shadow="none",
        button_border_width="1px",
        block_label_background_fill="transparent",
        block_label_background_fill_dark="transparent",
        block_title_text_weight="600",
        block_padding="0px",
        form_gap_width="0px",
    )

"""Code in a drawn answer. Imported when one is drawn: a parser and a highlighter take longer than the first frame."""

from __future__ import annotations

from markdown_it.token import Token
from textual.widgets import Markdown
from textual.widgets._markdown import MarkdownBlock, MarkdownFence

from dflash_tui.core.text.fences import find_blocks
from dflash_tui.core.text.harmless import sanitise

from .formulas import parser


class NamedFence(MarkdownFence):
    """A block of code in a frame titled with the name of its file, or else its language."""

    DEFAULT_CSS = """
    NamedFence {
        padding: 0 1;
        margin: 0 0 1 0;
        color: $foreground;
        background: $surface;
        border: round $foreground 40%;
        border-title-color: $primary;
        & > Label { padding: 0; }
    }
    """

    def __init__(self, markdown: Markdown, token: Token, code: str) -> None:
        fence = token.markup or "```"
        block = next(iter(find_blocks(f"{fence}{token.info}\n{code}\n{fence}")), None)
        language = block.language if block else ""
        super().__init__(markdown, token.copy(info=language), code)
        name = sanitise((block.filename if block else None) or language)
        self.border_title = name.replace("[", r"\[") or None


class Answer(Markdown):
    """A finished answer drawn as Markdown. Its links are text: nothing opens because it was clicked."""

    def __init__(self, text: str) -> None:
        super().__init__(sanitise(text), open_links=False, parser_factory=parser)

    def get_block_class(self, block_name: str) -> type[MarkdownBlock]:
        return NamedFence if block_name in ("fence", "code_block") else super().get_block_class(block_name)

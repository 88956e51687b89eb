"""Exports say what the answer said, and nothing in it can act on whoever opens them."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given

from dflash_tui.core.export.document import ExportedPage
from dflash_tui.core.export.formats import FORMATS, Format, render
from dflash_tui.core.export.html import to_html
from dflash_tui.core.export.json_export import FORMAT_VERSION, to_json
from dflash_tui.core.text.harmless import sanitise
from engine.events import Step, TurnFinished, TurnStarted, event_from_dict

from .answers_for_tests import hostile_document, make_answer, turns_of
from .rounds_for_tests import rounds

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Page(HTMLParser):
    """The tags of a page, and the text of the answer's tokens."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.answer = ""
        self.scripts: list[str] = []
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "u":  # a word of a token
            return
        self._open = "token" if (dict(attrs).get("class") or "").startswith("t ") else tag

    def handle_data(self, data: str) -> None:
        if self._open == "token":
            self.answer += data
        elif self._open == "script":
            self.scripts.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag != "u":
            self._open = ""


def answer_document(steps: list[Step]) -> ExportedPage:
    events = [TurnStarted(1, 5, 0, {"seed": 3}, "Why?"), *steps, TurnFinished(1, "stop", "")]
    return ExportedPage("Why?", tuple(turns_of(events)))


@given(rounds())
def test_html_holds_the_answer_token_by_token(steps: list[Step]) -> None:
    document = answer_document(steps)
    page = Page(to_html(document))
    said = [token.text for token in document.answers[0].tokens if token.text]
    assert page.answer == "".join(map(sanitise, said))
    assert sum("data-s" in attributes for _, attributes in page.tags) == len(said)


@given(rounds())
def test_json_gives_the_steps_back(steps: list[Step]) -> None:
    content = json.loads(to_json(answer_document(steps)))
    assert content["version"] == FORMAT_VERSION
    (answer,) = content["sections"]
    assert [event_from_dict({"event": "Step", **step}) for step in answer["steps"]] == steps
    assert answer["statistics"]["num_tokens"] == sum(len(step.emitted) for step in steps)


def test_nothing_hostile_survives_in_a_page() -> None:
    text = to_html(hostile_document())
    page = Page(text)
    assert CONTROL.search(text) is None
    assert {tag for tag, _ in page.tags}.isdisjoint({"img", "iframe", "object", "link", "a", "base"})
    assert [tag for tag, _ in page.tags].count("script") == 2  # the data and the page's own
    assert not any(name.startswith("on") or name == "src" for _, attributes in page.tags for name in attributes)
    data, own = page.scripts
    assert "<" not in data and "alert" not in own
    json.loads(data)


def test_a_page_allows_itself_only_its_own_script() -> None:
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', to_html(hostile_document()))
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert re.fullmatch(r"'sha256-[A-Za-z0-9+/=]{44}'", rules["script-src"])
    assert re.fullmatch(r"'sha256-[A-Za-z0-9+/=]{44}'", rules["style-src"])


def test_json_is_ascii_so_that_no_terminal_acts_on_it() -> None:
    text = to_json(hostile_document())
    assert text.isascii() and CONTROL.search(text) is None
    json.loads(text)


@pytest.mark.parametrize("wanted", FORMATS)
def test_every_format_takes_an_answer_that_was_cut_short(wanted: Format) -> None:
    started = TurnStarted(1, 5, 0, {}, "Why?")
    (nothing,) = turns_of([started])
    (something,) = turns_of([started, *make_answer().rounds])
    assert something.ending is None
    assert render(ExportedPage("Cut", (nothing, something)), wanted)

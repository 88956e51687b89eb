"""Exports say what the answer said, and nothing in it can act on whoever opens them."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given

from dflash_tui.core.export.cast import to_cast
from dflash_tui.core.export.document import ExportedPage, Prose, collect
from dflash_tui.core.export.formats import FORMATS, Format, render
from dflash_tui.core.export.html import to_html
from dflash_tui.core.export.json_export import FORMAT_VERSION, to_json
from dflash_tui.core.export.svg import to_svg
from dflash_tui.core.files.running import RunResult
from dflash_tui.core.text.harmless import sanitise
from engine.events import Step, TurnFinished, TurnStarted, event_from_dict

from .answers_for_tests import hostile_document, make_answer, plain_answer
from .rounds_for_tests import rounds

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
OWN_SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")


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
    return ExportedPage("Why?", collect(events).answers())


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


@given(rounds())
def test_a_cast_plays_the_answer_at_its_own_times(steps: list[Step]) -> None:
    document = answer_document(steps)
    header, *events = map(json.loads, to_cast(document).splitlines())
    assert header["version"] == 2 and header["width"] > 0 and header["height"] > 0
    times = [time for time, _, _ in events]
    assert times == sorted(times)
    played = OWN_SEQUENCE.sub("", "".join(text for _, kind, text in events if kind == "o"))
    said = sanitise("".join(sanitise(token.text) for token in document.answers[0].tokens))
    assert said in played.replace("\r\n", "\n")


def test_an_svg_holds_the_text_in_rows() -> None:
    picture = ElementTree.fromstring(to_svg(ExportedPage("A story", (make_answer(("Once", " upon", " a time.")),))))
    drawn = "".join("".join(each.itertext()) for each in picture.iter("{http://www.w3.org/2000/svg}text"))
    assert "Once~0 upon~0 a time." in drawn
    assert {each.get("class") for each in picture.iter("{http://www.w3.org/2000/svg}text")} >= {"corrected", "accepted"}


def test_the_target_alone_is_slanted_everywhere_and_prose_is_not() -> None:
    document = ExportedPage("A story", (Prose("    indented prose"), plain_answer(["Once", " upon"])))
    picture = ElementTree.fromstring(to_svg(document))
    assert picture.get("{http://www.w3.org/XML/1998/namespace}space") == "preserve", "who knows no CSS keeps blanks too"
    looks = {each.get("class"): "".join(each.itertext()) for each in picture.iter("{http://www.w3.org/2000/svg}text")}
    style = picture.findtext("{http://www.w3.org/2000/svg}style") or ""
    assert "indented prose" in looks["text"] and ".plain{" in style
    slanted = {name for name, rule in re.findall(r"\.([\w-]+)\{([^}]*)\}", style) if "italic" in rule}
    assert slanted == {"plain", "guess-plain", "thought"}
    cast = "".join(json.loads(line)[2] for line in to_cast(document).splitlines()[1:])
    assert re.search(r"\x1b\[3;[\d;]+mOnce", cast) and not re.search(r"\x1b\[3;[\d;]+m *indented", cast)
    assert '<span class="plain">target alone</span>' in to_html(document)


def test_what_a_program_wrote_stands_below_its_answer() -> None:
    run = RunResult(2, "ended", 0, 0.25, "".join(f"line {number}\n" for number in range(30)))
    document = ExportedPage("A story", (make_answer(), run))
    page, picture = to_html(document), "".join(ElementTree.fromstring(to_svg(document)).itertext())
    assert "<summary>block 2 ran · exit code 0 · 0.2 s · 30 lines</summary>" in page
    assert page.index(">line 0\n") > page.index("</article>") and "line 29</pre></details>" in page
    assert "line 7" in picture and "line 8" not in picture and "22 more lines" in picture
    assert json.loads(to_json(document))["sections"][1] == {"kind": "run", **run.to_line()}


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


def test_nothing_hostile_reaches_a_terminal_from_a_cast() -> None:
    _, *events = map(json.loads, to_cast(hostile_document()).splitlines())
    written = OWN_SEQUENCE.sub("", "".join(text for _, _, text in events))
    assert CONTROL.search(written.replace("\r\n", "\n")) is None


def test_nothing_hostile_breaks_a_picture() -> None:
    text = to_svg(hostile_document())
    picture = ElementTree.fromstring(text)
    assert {each.tag.rpartition("}")[2] for each in picture.iter()} == {
        "svg",
        "title",
        "style",
        "rect",
        "text",
        "tspan",
    }
    assert CONTROL.search(text) is None


def test_json_is_ascii_so_that_no_terminal_acts_on_it() -> None:
    text = to_json(hostile_document())
    assert text.isascii() and CONTROL.search(text) is None
    json.loads(text)


@pytest.mark.parametrize("wanted", FORMATS)
def test_every_format_takes_an_answer_that_was_cut_short(wanted: Format) -> None:
    started = TurnStarted(1, 5, 0, {}, "Why?")
    (nothing,) = collect([started]).answers()
    (something,) = collect([started, *make_answer().steps]).answers()
    assert something.reason is None
    assert render(ExportedPage("Cut", (nothing, something)), wanted)


def test_answers_are_kept_apart_by_turn() -> None:
    steps = make_answer().steps
    events = [
        TurnStarted(1, 5, 0, {}, "First?"), *steps, TurnFinished(1, "stop", ""),
        TurnStarted(2, 9, 5, {}, "Second?"), *steps[:1],
    ]  # fmt: skip
    first, second = collect(events).answers()
    assert (first.question, first.reason, len(first.steps)) == ("First?", "stop", len(steps))
    assert (second.question, second.reason, second.num_reused_tokens) == ("Second?", None, 5)

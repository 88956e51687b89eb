"""The terminal's input: keys and pastes, however a slow line cuts them up."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.message import Message

from dflash_tui.app.keyboard import PatientParser

from .test_process import chat

START, END = "\x1b[200~", "\x1b[201~"
pieces = st.lists(st.sampled_from(["a", "\r", "ö", "\x1b", "[", "\x1b[A", "\x1b[200", "~", "\x1b[31m", "201~"]))


def fed(*chunks: str) -> list[Message]:
    parser = PatientParser()
    return [message for chunk in chunks for message in parser.feed(chunk)]


def cut(text: str, places: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[start:end] for start, end in pairwise(edges)]


def keys(messages: list[Message]) -> list[str]:
    return [message.key for message in messages if isinstance(message, events.Key)]


def pastes(messages: list[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, events.Paste)]


@given(pieces, st.lists(st.integers(0, 100)))
def test_a_paste_is_one_paste_whatever_is_in_it_and_however_it_comes(parts: list[str], places: list[int]) -> None:
    text = "".join(parts)
    if END in text + END[:-1]:
        return
    messages = fed(*cut(f"x{START}{text}{END}y\x1b[A", places))
    assert pastes(messages) == [text]
    assert keys(messages) == ["x", "y", "up"]


@given(st.lists(st.integers(0, 100)))
def test_two_pastes_in_a_row(places: list[int]) -> None:
    assert pastes(fed(*cut(f"{START}one{END}{START}{END}{START}two{END}", places))) == ["one", "", "two"]


def test_time_makes_no_keys_of_what_is_pasted() -> None:
    parser = PatientParser()
    messages = [*parser.feed(f"{START}one\x1b")]
    assert parser.patience is None
    messages += [*parser.tick(), *parser.feed(f"[20{END}")]
    assert pastes(messages) == ["one\x1b[20"] and keys(messages) == []


def test_a_lone_escape_is_a_key_soon_and_the_beginning_of_a_sequence_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    for module in ("dflash_tui.app.keyboard", "textual._parser"):
        monkeypatch.setattr(f"{module}.get_time", lambda: now)
    parser = PatientParser()
    assert keys([*parser.feed("\x1b")]) == []
    patience = parser.patience
    assert patience is not None and 0 < patience <= 0.1
    now += patience
    assert keys([*parser.tick()]) == ["escape"]
    assert parser.patience is None

    assert keys([*parser.feed("\x1b["), *parser.tick()]) == []
    now += 0.3
    assert keys([*parser.tick(), *parser.feed("A")]) == ["up"]


@given(st.lists(st.integers(0, 100)))
def test_alt_with_a_key_waits_for_nothing_and_repeats(places: list[int]) -> None:
    assert keys(fed(*cut("\x1bj\x1bjx\x1b[A\x1bk\x1b\x1bg\x1bf", places))) == [
        *("alt+j", "alt+j", "x", "up", "alt+k", "escape", "alt+g", "ctrl+right")
    ]


def test_bytes_that_are_no_text_leave_the_keyboard_working(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        terminal.wait_for("ready")
        terminal.write(b"\xff\xfe")
        terminal.send("still here")
        terminal.wait_for("still here")
        terminal.send("\x11")
        assert terminal.wait_for_exit() == 0


@pytest.mark.alone
def test_escape_escapes_at_once(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        terminal.wait_for("ready")
        terminal.send("go on\r")
        terminal.wait_for("doctype")
        pressed = time.monotonic()
        terminal.send("\x1b")
        terminal.wait_for("stopped")
        assert time.monotonic() - pressed < 2  # 0.1 on an idle machine
        terminal.send("\x11")
        assert terminal.wait_for_exit() == 0

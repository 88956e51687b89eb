"""The terminal's input: what a person did arrives, and nothing else, however a slow line cuts it up."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual import events
from textual.message import Message

from dflash_tui.app.input_guard import InputGuard
from dflash_tui.app.keyboard import Translator

START, END = b"\x1b[200~", b"\x1b[201~"
PEOPLE: dict[bytes, list[str]] = {
    **{each.encode(): [each] for each in "aZ7é日😀ß"},
    "👩\u200d🔬\u200c".encode(): ["👩", "<\u200d>", "🔬", "<\u200c>"],
    b"\r": ["enter"], b"\x7f": ["backspace"], b"\x11": ["ctrl+q"], b"\t": ["tab"],
    b"\x1b[A": ["up"], b"\x1bOA": ["up"], b"\x1b[1;5D": ["ctrl+left"], b"\x1b[3~": ["delete"], b"\x1b[1;1:1A": ["up"],
    b"\x1bOP": ["f1"], b"\x1b[[C": ["f3"], b"\x1b[15~": ["f5"], b"\x1b[3$": ["shift+delete"],
    b"\x1b[1;3H": ["alt+home"],
    b"\x1bj": ["alt+j"], b"\x1b\xc3\xa9": ["alt+é"], b"\x1b,": ["alt+comma"], b"\x1b\r": ["alt+enter"],
    b"\x1b[13;2u": ["shift+enter"], b"\x1b[13;5u": ["ctrl+enter"], b"\x1b[27;3;13~": ["alt+enter"],
    b"\x1b[27;6;13~": ["ctrl+shift+enter"], b"\x1b[57414u": ["enter"], b"\x1b[27u": ["escape"],
    b"\x1b[99;5u": ["ctrl+c"],
    b"\x1b[97;1:1u": ["a"], b"\x1b[97;1:2u": ["a"], b"\x1b[97:65;2;65u": ["A"], b"\x1b[0;;233u": ["é"],
    START + b"one\r\ntwo\x1b[A \xc3\xa9" + END: ["<one\r\ntwo\x1b[A é>"], START + END: ["<>"],
    b"\x9bA": ["up"], b"\xc2\x8fA": ["up"], b"\x9b200~one\x9b201~": ["<one>"],
    START + b"a\x1b[Ib\x00c\x1b[<35;1;1Md" + START + END: ["<abcd>"],
}  # fmt: skip
"""What somebody does, and as which keys it arrives; a paste in angle brackets."""
TERMINALS = [
    b"\x1b[97;1:3u", b"\x1b[1;1:3A", b"\x1b[3;5:3~", b"\x1b[57441;2:3u", b"\x1b[97;5:3;97u",
    b"\x1b[I", b"\x1b[O", b"\x1b[<35;10;5M", b"\x1b[<0;-3;99999m", b"\x1b[M !!", b"\x1b[32;10;5M",
    b"\x1b[M\xff\xfe\x7f",
    b"\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\", b"\x1b]10;rgb:ff/ff/ff\x07", b"\x1b]52;c;aGVsbG8=\x1b\\",
    b"\x1b]lx \xe2\x9c\x93\x1b\\",
    b"\x1bP>|XTerm(354)\x1b\\", b"\x1bP!|00000000\x1b\\", b"\x1bP1+r436f=323536\x1b\\", b"\x1bP1$r0m\x1b\\",
    b"\x1b_Gi=31;OK\x1b\\", b"\x1b^private\x1b\\", b"\x1bXstart of string\x1b\\",
    b"\x1b[?62;22;52c", b"\x1b[>41;354;0c", b"\x1b[?1u", b"\x1b[0n", b"\x1b[?997;1n", b"\x1b[12;40R", b"\x1b[?2026;2$y",
    b"\x1b[8;24;80t", b"\x1b[48;24;80;480;800t", b"\x1b[48;0;0;0;0t", b"\x1b[1;2;3;4;5&w", b"\x1b[3;1;1x",
    b"\x1b[99~", b"\x1b[1114112u", b"\x1b[9999999999999u", b"\x1b[97;1:3;1114112:55296u",
    b"\x1b[?" + b"1;" * 2500 + b"c",
    b"\x90>|foot(1.2)\x9c", b"\x9b?62;22c", b"\xc2\x9d11;rgb:0/0/0\xc2\x9c", b"\x9fGi=1;OK\x9c", b"\x9b<0;10;10M",
    b"\x1b[?2;0;1280;720S", b"\x1b[65;30;97;1;0;1_", b"\xc2\x9c", END, b"\xff\xfe", b"\xed\xa0\x80",
]  # fmt: skip
"""What terminals send by themselves: keys let go, mice, control strings, reports, nonsense."""


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Reading:
    """The guard and what stands behind it, on a clock of the test's."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.guard, self.translator = InputGuard(self.clock), Translator()
        self.messages: list[Message] = []

    def __call__(self, *reads: bytes) -> Reading:
        for data in reads:
            for found in self.guard.feed(data):
                self.messages += self.translator.messages(found)
        return self

    def wait(self, seconds: float) -> Reading:
        self.clock.now += seconds
        for found in self.guard.tick():
            self.messages += self.translator.messages(found)
        return self

    @property
    def done(self) -> list[str]:
        """What was typed, keys that type nothing by their names, pastes in angle brackets."""
        done = []
        for each in self.messages:
            if isinstance(each, events.Key):
                done.append(each.character if each.is_printable and each.character else each.key)
            elif isinstance(each, events.Paste):
                done.append(f"<{each.text}>")
        return done


SENT = [*PEOPLE.items(), *((each, list[str]()) for each in TERMINALS)]
LENGTHS = (1, 1, 2, 3, 7, 50)


@settings(max_examples=80, deadline=None)  # some 100 000 bytes
@given(st.lists(st.sampled_from(SENT), min_size=30, max_size=120), st.integers(0))
def test_what_people_do_arrives_and_nothing_else(sent: list[tuple[bytes, list[str]]], seed: int) -> None:
    reading, random, data = Reading(), Random(seed), b"".join(each for each, _ in sent)
    while data:
        length = random.choice(LENGTHS)
        reading(data[:length])
        data = data[length:]
    assert reading.done == [key for _, keys in sent for key in keys]


@given(st.lists(st.binary(max_size=8) | st.sampled_from([b"\x1b", b"[", b"1;", b"\x1b]", START, *TERMINALS])))
def test_no_bytes_raise_or_leave_the_keyboard_deaf(reads: list[bytes]) -> None:
    assert Reading()(*reads).wait(3)(b"x").done[-1:] == ["x"]


@pytest.mark.parametrize(
    ("end", "seconds"), [(b"", 2.0), (b"\x1b", 0.5), (b"\x1b[27u", 0.5)], ids=["silence", "Esc", "Esc in kitty"]
)
def test_a_paste_without_an_end_ends(end: bytes, seconds: float) -> None:
    reading = Reading()(START + b"stuck", b"abc", end).wait(seconds - 0.1)(b"\x1b[<35;10;5M")
    assert reading.done == []
    assert reading.wait(0.2)(b"x").done == ["<stuckabc>", "x"]


def test_time_tells_a_key_from_the_beginning_of_a_sequence() -> None:
    assert Reading()(b"\x1b").wait(0.1).done == ["escape"]
    assert Reading()(b"\x1b[").wait(0.3)(b"A").done == ["up"]
    assert Reading()(b"\x1b]").wait(0.5)(b"x").done == ["alt+right_square_bracket", "x"]
    assert Reading()(b"\x1b]11;rgb").wait(1)(b":0/0/0\x1b").wait(0.3)(b"\\x").done == ["x"]
    assert Reading()(b"\x1b\x1bg\xc3").wait(9)(b"\xa9").done == ["escape", "alt+g", "é"]

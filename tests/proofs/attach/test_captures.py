"""Every recording of a real server, played to the source: the figures are that server's own, and no verdict is other
than its log and the two checkers that came with the recordings say."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.events import EngineError, Step, TurnFinished
from tests.attach.conftest import CHAT, Attached
from tests.attach.servers import CAPTURES, FakeServer, recorded, streams
from tests.pace import sampled

LLAMA = sampled([path for path in streams() if path.parent.name == "llamacpp"], 3)
VLLM = sampled([path for path in streams() if path.parent.name == "vllm"], 2)
TRACED = [path for path in streams() if "-trace_" in path.name]


def events_of(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def text_of(path: Path) -> str:
    text = ""
    for event in events_of(path):
        choice = next(iter(event.get("choices", ())), {})
        text += event.get("content") or choice.get("text") or choice.get("delta", {}).get("content") or ""
    return text


def last(path: Path, name: str) -> dict[str, Any]:
    return next((event[name] for event in reversed(events_of(path)) if event.get(name)), {})


class Played:
    """What the source made of a recording."""

    def __init__(self, path: Path, dialect: str) -> None:
        with FakeServer({CHAT: recorded(path)}).closing() as server:
            attached = Attached(server.url, dialect=dialect)
            attached.ready()
            self.events = attached.ask(max_new_tokens=500)
            attached.close()
        self.steps = [event for event in self.events if isinstance(event, Step)]
        self.error = next((event for event in self.events if isinstance(event, EngineError)), None)
        self.finished: TurnFinished = self.events[-1]
        self.tokens = [token for step in self.steps for token in step.emitted]
        self.verdicts = Counter(token.verdict for token in self.tokens)
        self.rounds = [(step.verify_width - 1, step.num_accepted) for step in self.steps if step.draft]

    @property
    def totals(self) -> tuple[int, int, int]:
        return len(self.tokens), sum(drafted for drafted, _ in self.rounds), sum(kept for _, kept in self.rounds)


@cache
def play(path: Path) -> Played:
    return Played(path, {"llamacpp": "llama.cpp"}.get(path.parent.name, path.parent.name))


@pytest.mark.parametrize("path", LLAMA, ids=lambda path: path.stem)
def test_llama_cpp_s_figures_are_its_own(path: Path) -> None:
    played = play(path)
    timings, facts = last(path, "timings"), played.finished.statistics
    own = timings["predicted_n"], timings.get("draft_n", 0), timings.get("draft_n_accepted", 0)
    assert (facts.num_tokens, facts.num_draft_tokens, facts.num_accepted_draft_tokens) == own
    assert (facts.num_prompt_tokens, facts.num_reused_tokens) == (
        timings["prompt_n"] + timings["cache_n"],
        timings["cache_n"],
    )
    assert played.finished.text == text_of(path) == "".join(token.text for token in played.tokens)
    if "no_timings" in path.name:  # its counters come once, at the end
        assert set(played.verdicts) == {"unknown"}
        return
    assert played.totals == own
    assert sum(step.total_ms for step in played.steps[1:]) == pytest.approx(timings["predicted_ms"], abs=0.01)


def checked(name: str) -> dict[str, str]:
    """What the checkers found of a recording."""
    for folder in (CAPTURES, CAPTURES.parents[3] / "shared" / "captures"):
        report = folder / "verification.txt"
        for line in report.read_text().splitlines() if report.exists() else ():
            if line.startswith(f"{name} "):
                return dict(re.findall(r"(\w+)=(\S+)", line))
    return {}


@pytest.mark.parametrize("path", [path for path in LLAMA if checked(path.name)], ids=lambda path: path.stem)
def test_llama_cpp_s_verdicts_are_the_checker_s(path: Path) -> None:
    found = checked(path.name)
    played = play(path)
    names = {"accepted": "accepted", "corrected": "corrected", "bonus": "bonus", "plain": "alone"}
    if found["silent"] == "0" and found["exact"] == "True":
        assert {verdict: played.verdicts[verdict] for verdict in names} == {
            verdict: int(found[name]) for verdict, name in names.items()
        }
        assert len(played.rounds) == int(found["rounds"])
    elif "draft_n" in last(path, "timings"):
        assert played.verdicts["unknown"] >= int(found["silent"]), "what was held back is not known"
    assert (played.error is not None) == ("killed" in path.name or "cancelled" in path.name)


def logged(path: Path) -> list[tuple[int, int]]:
    """(drafted, accepted) of every round, from the log of a server that was told to trace."""
    kind, _, which = path.stem.partition("-trace_")
    log = path.with_name(f"{kind}-trace.server-log.txt").read_text()
    tasks = [re.findall(r"accepted +(\d+)/ *(\d+) draft", part) for part in log.split("launch_slot_")[1:]]
    task = tasks[["utf8", "utf8_t08", "chat_copy"].index(which)]
    return [(int(drafted), int(accepted)) for accepted, drafted in task]


@pytest.mark.parametrize("path", TRACED, ids=lambda path: path.stem)
def test_no_verdict_contradicts_the_server_s_log(path: Path) -> None:
    """Behind tokens that were held back inside a character rounds can hide; then verdicts are unknown, not wrong."""
    rounds = logged(path)
    played = play(path)
    if "ngram" in path.name or "copy" in path.name:
        assert played.rounds == rounds
    if "ngram" in path.name:  # its log doesn't say where tokens were written without a draft
        return
    truth = ["plain"]
    for drafted, accepted in rounds:
        truth += ["accepted"] * accepted + ["bonus" if accepted == drafted else "corrected"]
    said = [token.verdict for token in played.tokens]
    truth += ["plain"] * (len(said) - len(truth))
    assert [
        (place, a, b) for place, (a, b) in enumerate(zip(said, truth, strict=False)) if a not in ("unknown", b)
    ] == []
    seen = [token for token in played.tokens if token.text]
    unknown = sum(token.verdict == "unknown" for token in seen)
    assert unknown <= {"utf8": 15, "utf8_t08": 7, "chat_copy": 0}[path.stem.partition("-trace_")[2]]


@pytest.mark.parametrize("path", VLLM, ids=lambda path: path.stem)
def test_vllm_s_figures_are_its_own(path: Path) -> None:
    played = play(path)
    spec = last(path, "metrics").get("speculative_decoding", {})
    facts = played.finished.statistics
    if "n2" in path.name:
        return  # two answers at once, which this program never asks for
    assert played.finished.text == text_of(path) == "".join(token.text for token in played.tokens)
    if usage := last(path, "usage"):
        assert (facts.num_prompt_tokens, facts.num_tokens) == (usage["prompt_tokens"], usage["completion_tokens"])
    if not spec:
        return
    own = spec["num_spec_steps"], spec["num_draft_tokens"], spec["num_accepted_draft_tokens"]
    assert (facts.num_spec_steps, facts.num_draft_tokens, facts.num_accepted_draft_tokens) == own
    assert facts.acceptance_histogram == tuple(spec["acceptance_histogram"])
    assert facts.mean_acceptance_length == pytest.approx(spec["mean_acceptance_length"]) or not own[0]
    order = list(zip(spec.get("per_step_drafted", ()), spec.get("per_step_accepted", ()), strict=True))
    if (found := checked(path.name)).get("rule") in ("exact", "cut") and "stalled" not in path.name:
        assert len(played.tokens) == int(found["n"])
        kept = [accepted for _, accepted in order if accepted]
        told = [step.num_accepted for step in played.steps if step.draft]
        assert told[:-1] == kept[: len(told) - 1], "an event is a round; of single tokens it isn't known"

"""Settings and models at a desk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from dflash_tui.core.conversation.start import Models, Start
from dflash_tui.core.desk.commands import COMMANDS
from dflash_tui.core.failures import Failure
from dflash_tui.core.source import Capabilities, SourceFactory
from engine.events import EngineError

from .conftest import READY, Sit, Source


def test_settings_hold_from_the_next_question_on_and_are_said(sit: Sit, tmp_path: Path) -> None:
    (tmp_path / "brief.md").write_text("Be brief.\n")
    seat = sit()
    said = seat.type("/temp 0.5", "/block 8", "/seed 7", "/think on", f"/system @{tmp_path}/brief.md", "hi")
    for words in ("temperature is 0.5", "block size is 8", "seed is 7", "Thinking is on", "prompt is: Be brief."):
        assert words in said
    ask = seat.source.asked[0]
    assert ask.messages[0].content == "Be brief." and ask.settings.thinking
    assert (ask.settings.temperature, ask.settings.block_size, ask.settings.seed) == (0.5, 8, 7)
    assert "There is no system prompt" in seat.type("/system off") and seat.desk.chat.system is None
    assert "between 0 and 2" in seat.type("/temp 9") and "There is no file" in seat.type("/system @gone.md")
    assert "/think takes on|off" in seat.type("/think hard")
    assert "not “warm”" in seat.type("/temp warm") and seat.type("/block auto", "/temp greedy")
    assert seat.desk.chat.settings.block_size == "auto" and seat.desk.chat.settings.temperature == 0


def test_who_guesses(sit: Sit) -> None:
    seat = sit()
    assert "the target writes alone" in seat.type("/speculation off", "hi")
    assert "the drafter alone guesses" in seat.type("/speculation drafter", "hi")
    assert [(each.settings.speculation, each.settings.draft_by) for each in seat.source.asked] == [
        (False, "both"),
        (True, "drafter"),
    ]
    lacking = sit(capabilities=Capabilities(refused={"draft_by": "It can't choose."}))
    assert "It can't choose." in lacking.type("/speculation lookup")
    alone = sit(ready=replace(READY, drafter=None))
    assert "No drafter is loaded" in alone.type("/speculation drafter")


def test_what_a_source_lacks_is_told_instead_of_done(sit: Sit) -> None:
    refused = {
        feature: f"It has no {feature}."
        for feature in ("temperature", "block_size", "seed", "system", "thinking", "speculation")
    }
    seat = sit(capabilities=Capabilities(refused=refused))  # type: ignore[arg-type]
    said = seat.type("/temp 1", "/block 4", "/seed 1", "/system hi", "/think on", "/speculation off", "/race hi")
    assert said.count("It has no ") == 7 and not seat.face.races


def test_the_system_prompt_of_the_start_is_in_force(sit: Sit) -> None:
    assert sit(Start(system="Ask back.")).desk.chat.system == "Ask back."


def others(**made: Callable[..., Source]) -> tuple[Start, list[str]]:
    freed: list[str] = []

    def make(name: str, drafter: str) -> SourceFactory:
        if name not in made:
            raise Failure(f"There is no model {name}.", "Look at its name.")
        return made[name]

    return Start(models=Models(make, lambda: list(made), "first", lambda: freed.append("freed"))), freed


def test_another_model_goes_on_and_the_way_back(sit: Sit) -> None:
    begin, freed = others(first=Source, good=partial(Source, answer="from the other"))
    seat = sit(begin)
    first = seat.source
    assert "no other model in this chat yet" in seat.type("/model -") and "Known models: first, good." in seat.type(
        "/model"
    )
    assert "answers from here on" in seat.type("one", "/model good") and first.joined and freed == ["freed"]
    first.emit(replace(READY, target="late"))
    seat.hear()
    assert seat.desk.ready is not None and seat.desk.ready.target == "demo/target", "nobody hears it any more"
    seat.type("two")
    assert [each.answer for each in seat.desk.chat.tree.path][1] == "from the other"
    seat.type("/model -", "three")
    assert seat.desk.chat.tree.path[-1].answer.startswith("Fine."), "the first answers again"
    seat.type("/retry 1 drafter other")
    assert seat.desk.chat.tree.versions(1, "answer")[-1].answer.startswith("Fine."), "it waited for its drafter"
    assert "There is no model zebra. Look at its name." in seat.type("/model zebra")


def test_a_model_that_can_not_be_had_brings_back_the_one_before(sit: Sit) -> None:
    error = EngineError("weights", "It is truncated.", "Load another.", fatal=True)
    begin, _ = others(first=Source, lost=partial(Source, error=error))
    seat = sit(begin)
    said = seat.type("one", "/model lost")
    assert "It is truncated." in said and "The model before comes back." in said and "answers again." in said
    assert "/model - goes back" not in said
    seat.type("two")
    assert [each.answer[:5] for each in seat.desk.chat.tree.path] == ["Fine.", "Fine."]
    seat.source.holds = True
    assert "An answer is on its way" in seat.type("three", "/model first")


def test_what_a_server_has_is_listed_and_gone_to(sit: Sit) -> None:
    begin, _ = others(first=Source)
    served = {"chat-a": Source, "chat-b": partial(Source, answer="from b")}
    seat = sit(begin, capabilities=Capabilities(models=served))
    assert "This server has: chat-a, chat-b." in seat.type("/model", "/model chat-b", "one")
    assert seat.desk.chat.tree.path[0].answer == "from b"


def test_a_question_for_a_model_that_never_comes_is_not_asked_of_another(sit: Sit) -> None:
    error = EngineError("weights", "It is truncated.", "Load another.", fatal=True)
    begin, _ = others(first=Source, lost=partial(Source, error=error, late=True))
    seat = sit(begin)
    seat.type("one", "/model lost", "for that one")
    assert "is being loaded" in seat.type("/model first")
    seat.source.come()
    seat.hear()
    assert ("withdrawn", 0) in seat.face.changes and [each.question for each in seat.desk.chat.tree.path] == ["one"]
    assert not seat.source.asked


def test_every_command_says_what_it_does_and_takes() -> None:
    slashes = [command.slash for command in COMMANDS.values() if command.slash]
    assert len(slashes) == len(set(slashes))
    for command in COMMANDS.values():
        assert command.id and command.title and (command.slash or command.keys)
        assert command.usage.startswith(f"/{command.slash}") and command.argument("x").usage.endswith(")")


def test_a_race_in_the_chat_is_against_no_server(sit: Sit) -> None:
    seat = sit()
    for words in (
        "against http://host:1",
        "against http://host:1 Why?",
        "against gpu",
        "--against gpu",
        "http://host:1",
    ):
        assert "dflash-chat race --against " in seat.type(f"/race {words}") and not seat.face.races, words
    for count, words in enumerate(("against what did Luther protest?", "http://host:1 is what?", "against"), 1):
        assert not seat.type(f"/race {words}") and len(seat.face.races) == count, words


def test_how_a_models_makers_sample_is_told_once_and_is_a_preset(sit: Sit) -> None:
    sampling = {"temperature": 0.7, "top_k": 20, "top_p": 0.8, "repetition_penalty": 1.1}
    seat = sit(ready=replace(READY, sampling=sampling))
    told = [each for each in seat.face.said if "makers" in each]
    assert len(told) == 1 and "temperature 0.7, top-k 20, top-p 0.8: /preset model" in told[0]
    assert "repetition_penalty of 1.1 isn't computed" in told[0]
    assert "not the makers'" in seat.type("/preset") and "as the model's makers" in seat.type("/preset model", "hi")
    settings = seat.source.asked[-1].settings
    assert (settings.temperature, settings.top_k, settings.top_p) == (0.7, 20, 0.8)
    assert seat.type("/preset none") and seat.desk.chat.settings.temperature == 0
    plain = sit()
    assert not [each for each in plain.face.said if "makers" in each] and "don't say how" in plain.type("/preset model")
    assert "not “tutor”" in plain.type("/preset tutor")

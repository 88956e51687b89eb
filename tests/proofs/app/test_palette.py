"""The command palette, opened and closed in a hurry."""

from __future__ import annotations

from textual.command import CommandList

from dflash_tui.app.actions import ACTIONS
from dflash_tui.app.widgets.completion_menu import CompletionMenu
from dflash_tui.app.widgets.status import BEFORE, HELP, LOOKING, PROJECT, RACE, RUNNING, SAVE
from tests.app.conftest import Launch


async def test_what_fits_the_moment_comes_first_with_its_key(launch: Launch) -> None:
    async with launch(answer="```py\nx\n```") as chat:

        def offered() -> list[str]:
            entries = [entry.title.split() for entry in chat.app.get_system_commands(chat.screen)]
            slashes = [candidate.text.strip() for candidate in chat.prompt.completer("/")]
            assert [entry[-1] for entry in entries[:2]] == slashes[:2]
            return [" ".join(entry) for entry in entries]

        assert offered()[:2] == ["Another model /model", "Watch a recording F7 /replay"]
        await chat.ask_and_wait("one")
        first = ["Look inside F3 /steps", "Slow motion F5 /teach", "Race F6 /race", "Project on a wall F8 /present"]
        assert offered()[:5] == [*first, "Save code Ctrl+S /save"]
        await chat.pilot.press("/", "r", "e", "t")
        menu = chat.screen.query_one(CompletionMenu)
        await chat.until(lambda: bool(menu.display))
        assert "both answers stay" in str(menu.render()), "its sentence goes before what it takes"
        await chat.pilot.press("escape", "ctrl+p")
        await chat.until(
            lambda: bool(chat.app.screen.query(CommandList)) and chat.app.screen.query_one(CommandList).option_count > 2
        )
        first = chat.app.screen.query_one(CommandList).get_option_at_index(0)
        assert "Look inside" in str(first.prompt) and "F3" in str(first.prompt)


async def test_a_menu_says_all_it_has_to_say_at_every_width(launch: Launch) -> None:
    """At 80 columns each sentence is whole beside its name and key; narrower, that of the chosen one stands below."""
    async with launch(size=(80, 24)) as chat:
        menu = chat.screen.query_one(CompletionMenu)

        def drawn() -> str:
            return str(menu.render())

        await chat.pilot.press("/")
        await chat.until(lambda: bool(menu.display))
        for _ in chat.prompt.completer("/"):
            assert "…" not in drawn().rpartition("\n")[0]
            await chat.pilot.press("down")
        await chat.pilot.press(*["down"] * 3)
        for columns in (60, 100, 60):
            await chat.pilot.resize_terminal(columns, 24)
            await chat.until(lambda wide=columns - 2: max(map(len, drawn().splitlines())) == wide)
            below = drawn().rpartition("\n")[2]
            assert "↑ ↓" in below and "…" not in below


def test_keys_are_offered_in_the_words_of_the_table() -> None:
    labels = [action.label.lower() for action in ACTIONS.values()]
    assert len(set(labels)) == len(labels)
    for offered in (*BEFORE, *RUNNING, *LOOKING, RACE, PROJECT, SAVE, HELP):
        words = offered.partition(" ")[2]
        assert any(label.startswith(words) for label in labels), offered

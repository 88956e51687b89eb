"""Who guessed a token: named in events, counted by source, left out of JSON where nobody is named."""

from __future__ import annotations

from dataclasses import replace

from engine.events import Match, Step, accepted_in, event_from_dict, event_to_dict, sources_in
from engine.rounds.statistics import TurnMeter
from support.events_for_tests import make_step, make_tree_step


def sourced(step: Step) -> Step:
    """Its first drafted token is the drafter's, those behind it were looked up."""
    names = (None, *("lookup",) * (len(step.draft) - 1))
    draft = tuple(replace(token, source=name) for token, name in zip(step.draft, names, strict=True))
    return replace(step, draft=draft, match=Match(5, 1840))


def test_json_says_nothing_where_nobody_is_named_and_comes_back_equal() -> None:
    plain = make_step(3, 5)
    data = event_to_dict(plain)
    assert "match" not in data and all("source" not in token for token in (*data["draft"], *data["tree"]))
    named = sourced(plain)
    assert event_from_dict(event_to_dict(named)) == named and event_from_dict(data) == plain


def test_accepted_and_verified_tokens_are_counted_by_source() -> None:
    step = sourced(make_step(3, 5))
    assert step.num_accepted == 3 and sources_in(step) == (None, "lookup", "lookup")
    meter = TurnMeter()
    meter.add(step)
    meter.add(step)
    (found,) = meter.statistics().by_source
    verified = step.verify_width - 1
    assert (found.source, found.num_accepted_draft_tokens) == ("lookup", 4)
    assert found.num_draft_tokens == 2 * (verified - 1)


def test_sources_of_a_tree_are_those_of_its_accepted_path() -> None:
    step = make_tree_step([1])
    (row,) = accepted_in(step)
    tree = tuple(replace(token, source="lookup") if place == row else token for place, token in enumerate(step.tree, 1))
    assert sources_in(replace(step, tree=tree)) == ("lookup",)

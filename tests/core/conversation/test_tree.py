"""The tree itself: versions, the path, and that no order of wishes breaks them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.core.conversation.tree import ROOT, Tree
from dflash_tui.core.conversation.turn import Turn
from tests.pace import examples


def grown(*nodes: tuple[int, str]) -> Tree[Turn]:
    """Nodes 1, 2, … as (parent, question)."""
    tree: Tree[Turn] = Tree()
    for number, (parent, question) in enumerate(nodes, start=1):
        tree.add(Turn(number, question, parent))
    return tree


def numbers(nodes: list[Turn]) -> list[int]:
    return [node.number for node in nodes]


def test_the_path_ends_where_the_last_question_was_asked() -> None:
    tree = grown((0, "a"), (1, "b"), (1, "B"), (3, "c"))
    assert numbers(tree.path) == [1, 3, 4] and tree.here == 4
    tree.go(1)
    assert numbers(tree.path) == [1] and tree.end_below(1) == 4
    tree.go(ROOT)
    assert tree.path == [] and tree.end_below(ROOT) == 4


def test_the_same_words_are_versions_of_the_answer_and_others_of_the_question() -> None:
    tree = grown((0, "a"), (0, "a"), (0, "b"), (0, "a"))
    assert numbers(tree.versions(2, "answer")) == [1, 2, 4] and tree.version_of(2, "answer") == (2, 3)
    assert numbers(tree.versions(3, "question")) == [4, 3], "where the user was last"
    tree.go(1)
    assert numbers(tree.versions(3, "question")) == [1, 3] and tree.version_of(3, "question") == (2, 2)
    back, on = tree.neighbour(3, "question", -1), tree.neighbour(3, "question", 1)
    assert back is not None and back.number == 1 and on is None


def test_a_question_that_was_never_asked_leaves_no_trace() -> None:
    tree = grown((0, "a"), (1, "b"))
    tree.withdraw(2)
    assert (tree.here, len(tree), tree.children(1), tree.end_below(1)) == (1, 1, [], 1)
    with pytest.raises(ValueError, match="follows"):
        grown((0, "a"), (1, "b")).withdraw(1)


@pytest.mark.parametrize(("number", "parent"), [(2, 0), (3, 3), (3, 4), (3, 9)])
def test_no_cycle_no_double_and_no_orphan_can_be_added(number: int, parent: int) -> None:
    tree = grown((0, "a"), (1, "b"))
    with pytest.raises(ValueError, match="can't follow"):
        tree.add(Turn(number, "c", parent))


def test_names_are_found_whole_or_cut_short() -> None:
    tree = grown((0, "a"), (1, "b"), (1, "c"))
    tree[1].name, tree[2].name = "metaphor", "Meta"
    for words, number in (("meta", 2), ("METAPHOR", 1), ("metap", 1), ("#3", 3), ("3", 3)):
        found = tree.find(words)
        assert found is not None and found.number == number
    assert tree.find("x") is None and tree.find("") is None and tree.find("9") is None


def test_only_forks_take_a_column() -> None:
    tree = grown((0, "a"), (1, "b"), (2, "c"), (1, "d"), (4, "e"))
    rows = [(row.node.number, row.depth, row.rails, row.last) for row in tree.outline()]
    assert rows == [
        (1, 0, (), True), (2, 1, (), False), (3, 1, (True,), True), (4, 1, (), True), (5, 1, (False,), True),
    ]  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from("abc"), st.integers(0, 40)), max_size=40))
@settings(max_examples=examples(60), deadline=None)
def test_whatever_is_asked_and_wherever_one_goes_nothing_is_lost(wishes: list[tuple[int, str, int]]) -> None:
    tree: Tree[Turn] = Tree()
    for number, (parent, question, visited) in enumerate(wishes, start=1):
        tree.add(Turn(number, question, parent % number))
        assert tree.path[-1].number == number
        tree.go(tree.end_below(visited % (number + 1)))
        assert [node.parent for node in tree.path] == [0, *numbers(tree.path)][:-1]
        for part in ("question", "answer"):
            assert tree[number] in tree.versions(number, part)  # type: ignore[arg-type]
    assert sorted(row.node.number for row in tree.outline()) == list(range(1, len(wishes) + 1))


def test_a_deep_and_a_broad_tree_are_drawn_at_once() -> None:
    deep = grown(*((number // 2 * 2 - 1 if number > 1 else 0, "q") for number in range(1, 4000)))
    broad = grown(*((0, f"q{number}") for number in range(2000)))
    started = time.process_time()
    assert len(deep.outline()) == 3999 and len(broad.outline()) == 2000
    assert broad.version_of(1000, "question") == (1000, 2000) and len(deep.path) > 1000
    assert time.process_time() - started < 1.0

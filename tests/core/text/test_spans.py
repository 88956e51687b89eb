from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.core.text.spans import TOKEN_STYLES, Labels, Span, Spans, SpanStore

TEXTS = st.text("ab\n漢", max_size=4)
WRITTEN = st.builds(
    Span, TEXTS, st.sampled_from(["accepted", "corrected", "plain", "thought"]), st.just(3), st.integers(0, 99)
)
PIECES = st.lists(WRITTEN | st.builds(Span, TEXTS, st.sampled_from(TOKEN_STYLES), st.just(0), st.none()), max_size=20)


@given(PIECES)
def test_columns_give_back_the_spans_that_were_put_in(pieces: list[Span]) -> None:
    spans = Spans.of(pieces)
    assert spans == pieces and list(spans) == pieces and len(spans) == len(pieces)
    assert spans[1:-1] == pieces[1:-1]
    assert spans.answer == "".join(each.text for each in pieces if each.token is not None and each.style != "thought")
    assert spans.without("note") == [each for each in pieces if each.style != "note"]


@given(PIECES, PIECES)
def test_joining_labels_what_appending_one_by_one_does(first: list[Span], second: list[Span]) -> None:
    joined = Spans.of(first)
    joined.extend(Spans.of(second))
    assert joined == first + second
    if first:
        assert columns(joined.labels) == columns(Spans.of(first + second).labels)


@given(PIECES)
def test_leaving_pieces_out_labels_what_is_left_as_if_it_stood_alone(pieces: list[Span]) -> None:
    left = Spans.of([Span("?", "prompt"), *pieces]).without("thought")
    alone = Spans.of([Span("?", "prompt"), *(each for each in pieces if each.style != "thought")])
    assert columns(left.labels) == columns(alone.labels)


def columns(labels: Labels) -> list[object]:
    return [labels.styles, labels.written, labels.turns, labels.tokens]


@given(st.lists(PIECES, max_size=8), st.data())
def test_a_store_hands_out_the_spans_of_any_steps(steps: list[list[Span]], data: st.DataObject) -> None:
    store = SpanStore()
    for step in steps:
        store.append(Spans.of(step))
    start, stop = sorted(data.draw(st.tuples(st.integers(0, len(steps)), st.integers(0, len(steps)))))
    assert store.between(start, stop, 3) == [span for step in steps[start:stop] for span in step]

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.report.run_candidates import MarksError, Piece, mark_edits, word_changes

TEXTS = st.lists(st.sampled_from(["Answer", "no", "if", " ", " ", ".", "\n", "- ", "yes", "it", "é", "<b>"])).map(
    "".join
)


def before(pieces):
    return "".join(piece.text for piece in pieces if piece.kind != "added")


def after(pieces):
    return "".join(piece.text for piece in pieces if piece.kind != "removed")


@given(TEXTS, TEXTS)
def test_changes_hold_both_texts_in_full(old, new):
    pieces = word_changes(old, new)
    assert before(pieces) == old
    assert after(pieces) == new


def test_a_line_that_was_added_is_one_piece_that_begins_with_its_line_break():
    pieces = word_changes("Judge it.\n- Answer no if A.", "Judge it.\n- Answer no if A.\n- Answer no if B.", 3)
    assert pieces == [Piece("Judge it.\n- Answer no if A."), Piece("\n- Answer no if B.", "added", 3)]


def test_an_added_sentence_begins_after_the_full_stop_and_not_with_it():
    pieces = word_changes(
        "Read it. Then judge what it says. End.", "Read it well. Then judge what it says. Be strict. End."
    )
    assert [piece.text for piece in pieces if piece.kind == "added"] == [" well", " Be strict."]


def test_short_islands_between_two_changes_are_part_of_the_change():
    pieces = word_changes("Say one thing and go home now", "Tell one story or come home now")
    assert [piece.kind for piece in pieces] == ["removed", "added", "same"]


def test_each_piece_knows_its_edit_also_where_a_later_edit_changes_what_an_earlier_one_added():
    edits = [("Judge.", "Judge.\n- Answer no if it is wrong."), ("it is wrong", "a number is wrong"), ("Judge", "Read")]
    end = "Read.\n- Answer no if a number is wrong."
    pieces = mark_edits("Judge.", edits, end)
    assert after(pieces) == end
    assert before(pieces) == "Judge."
    assert Piece("a number", "added", 2) in pieces
    assert Piece("Judge", "removed", 3) in pieces
    assert {piece.edit for piece in pieces} == {None, 1, 2, 3}


@pytest.mark.parametrize(
    ("edits", "end"),
    [([("absent", "x")], "x"), ([("a", "b")], "b b"), ([("one", "two")], "something else")],
    ids=["old text absent", "old text twice", "another end"],
)
def test_edits_that_do_not_lead_to_the_accepted_prompt_are_refused(edits, end):
    start = "a a" if edits[0][0] == "a" else "one"
    with pytest.raises(MarksError):
        mark_edits(start, edits, end)

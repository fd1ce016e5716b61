from __future__ import annotations

import pytest

from askance.models.replies.own_scores import Reads, path_parts

SCORE = Reads("score", 1, 5)
JSON = Reads("json", 1, 5, where="verdict.score")
WORDS = Reads("labels", 1, 3, ("Bad", "Could be improved", "Excellent"))
LETTERS = Reads("labels", 1, 3, ("C", "B", "A"))
PATTERN = Reads("pattern", 1, 5, where=r"Rating: (\d+)")


def value(reads: Reads, text: str, *, ended: bool = True) -> float | None:
    try:
        return reads.read(text, ended=ended).value
    except ValueError:
        return None


@pytest.mark.parametrize(
    "text",
    [
        *(
            "4",
            "**4**",
            "4.",
            "(4)",
            "4/5",
            "4 out of 5",
            "Score: 4",
            "**Score:** 4",
            "## Score\n4",
            "Score - 4",
            "Score = 4/5",
        ),
        *(
            "The text is clear.\n\nScore: 4",
            "I weighed 3 against 5.\n[[4]]",
            "Rating: [[4]]",
            "Feedback: so [RESULT] 4",
        ),
        *("Clarity: 3\nTone: 5\nOverall score: 4", "Score: 4\nBut clarity was only 3/5.", "<score>4</score>"),
        *(
            "<reason>3 of 4 points hold</reason>\n<score>4</score>",
            "\\boxed{4}",
            "I give it a score of 4 because it is clear.",
        ),
        *("I began with Score: 2.\nOn reflection it is better.\nScore: 4", "4. The text is clear.", "I'd say 4"),
        '{"score": 4, "reason": "so"}',
    ],
)
def test_the_last_stated_score_of_a_reply_is_read(text: str) -> None:
    assert value(SCORE, text) == 4


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "It is clear.",
            "Score: ten",
            "Score: 6",
            "Score: 0",
            "Score: 4/10",
            "Score: 3-4",
            "Score: 3 or 4",
            "Score: 4,5",
        ),
        *("Score: 44", "1. Clear\n2. Short", "Score: 2\nOn reflection:\nScore: 4", "Clarity score: 3\nTone score: 5"),
        "Score: 3, Score: 4",
    ],
)
def test_no_score_two_scores_and_one_outside_the_scale_are_none(text: str) -> None:
    assert value(SCORE, text) is None


def test_a_score_is_its_place_on_the_scale_with_the_rest_as_reason() -> None:
    assert SCORE.read("It is clear.\nScore: 4") == (4.0, 0.75, "It is clear.")
    assert Reads("score", 0, 100).read("80%")[:2] == (80.0, 0.8)
    assert Reads("score", 5, 1).read("Score: 2")[:2] == (2.0, 0.75)  # lower is better
    assert Reads("score", -1, 1).read("Score: -0.5")[:2] == (-0.5, 0.25)


@pytest.mark.parametrize(
    ("text", "read"),
    [("Score: 4\nReason: it is", 4), ("It is clear, so the sc", None), ("It is.\nScore: 4", None), ("Score: 1", None)],
)
def test_a_reply_that_was_cut_off_counts_where_it_began_with_its_score(text: str, read: float | None) -> None:
    assert value(SCORE, text, ended=False) == read


@pytest.mark.parametrize(
    "text",
    [
        '{"verdict": {"score": 4, "reason": "so"}}',
        'Clear enough.\n```json\n{"verdict": {"reason": "so", "score": 4}}\n```',
        'So it is {"verdict": {"score": "4/5", "reason": "so"}}',
    ],
)
def test_a_field_of_json_is_read_with_its_reason(text: str) -> None:
    assert JSON.read(text)[:2] == (4.0, 0.75)
    assert JSON.read(text).reason in ("so", None)
    assert JSON.read('{"why": "because", "verdict": {"score": 4}}').reason == "because"


@pytest.mark.parametrize(
    "text",
    [
        *('{"verdict": {"score": 7}}', '{"verdict": {"score": true}}', '{"verdict": {"score": null}}', '{"score": 4}'),
        *('{"verdict": 4}', "Score: 4", '{"verdict": {"score": 4}} or {"verdict": {"score": 3}}', '{"verdict": {"scor'),
    ],
)
def test_json_without_the_field_or_with_two_is_no_score(text: str) -> None:
    assert value(JSON, text) is None


def test_json_that_was_cut_off_counts_where_the_field_was_whole() -> None:
    assert value(JSON, '{"verdict": {"score": 4, "reason": "beca', ended=False) == 4
    assert value(JSON, '{"verdict": {"score": 4', ended=False) is None  # it may have become 4.5


@pytest.mark.parametrize(
    ("reads", "text", "read"),
    [
        *((WORDS, "Bad", 1), (WORDS, "**could be improved**", 2), (WORDS, "It is fine.\nVerdict: Excellent", 3)),
        *(
            (WORDS, "Bad, because it is short.", 1),
            (WORDS, "This is not bad at all", None),
            (WORDS, "Bad or Excellent", None),
        ),
        *(
            (LETTERS, "A", 3),
            (LETTERS, "(B)", 2),
            (LETTERS, "The answer is C.", 1),
            (LETTERS, "A text that is clear", None),
        ),
        *((PATTERN, "First Rating: 3, then\nRating: 4", 4), (PATTERN, "Rating: 9", None), (PATTERN, "4", None)),
        (Reads("json", 1, 2, ("false", "true"), "passed"), '{"passed": true}', 2),
    ],
)
def test_labels_and_patterns_are_read(reads: Reads, text: str, read: float | None) -> None:
    assert value(reads, text) == read


def test_a_path_goes_through_objects_and_lists() -> None:
    assert path_parts("$.scores[0].value") == ["scores", 0, "value"]
    assert path_parts('verdict["overall score"]') == ["verdict", "overall score"]
    assert Reads("json", 1, 5, where="scores[1].value").read('{"scores": [{"value": 1}, {"value": 2}]}').value == 2
    for wrong in ("", "a..b", "[0]", "a[x]"):
        with pytest.raises(ValueError, match="no JSON path"):
            path_parts(wrong)

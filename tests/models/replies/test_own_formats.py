from __future__ import annotations

import pytest

from askance.models.replies.own_formats import find_reads, parse_reads
from askance.prompts.errors import InputError


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        *(("score 1-5", "score 1-5"), ("score 5-1", "score 5-1"), ("score 0 - 100", "score 0-100")),
        *(("labels Bad,Could be improved,Excellent", "labels Bad,Could be improved,Excellent"),),
        *(("labels good,bad", "labels bad,good"), ("labels Red, Green", "labels Red,Green")),
        *(("json:$.score 1-5", "json:$.score 1-5"), ("json:Total rating 1-5", "json:Total rating 1-5")),
        *(("json:verdict Bad,Could be improved,Good", "json:verdict Bad,Could be improved,Good"),),
        *((r"pattern:Rating: (\d+) 1-5", r"pattern:Rating: (\d+) 1-5"), (r"pattern:\[\[(\w+)\]\] no,yes",) * 2),
    ],
)
def test_a_form_is_named_as_kind_and_values(given: str, meant: str) -> None:
    assert str(parse_reads(given)) == meant
    assert parse_reads(meant) == parse_reads(given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        *(("stars", "is no form of replies"), ("score", "a scale is missing"), ("score 3-3", "must differ")),
        *(
            ("labels Good", "two or more labels"),
            ("labels a,A", "two or more labels"),
            ("json:score", "a scale is missing"),
        ),
        *(("json:a..b 1-5", "no JSON path"), ("pattern:Rating 1-5", "no group"), ("pattern:( 1-5", "unterminated")),
        *(("score good,bad", "labels are words"), ("labels 1-5", "labels are words")),
    ],
)
def test_a_form_that_is_none_is_refused_with_what_to_write(given: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_reads(given)


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        ('{output}\nRespond with JSON {"score": 1-5, "reason": "..."}', "json:score 1-5"),
        ('Rate it 1 to 5. Return {{"score": <int>, "reason": "<why>"}}', "json:score 1-5"),
        ('Answer as {"verdict": {"score": <1-10>, "why": "…"}}', "json:verdict.score 1-10"),
        ('Return JSON with the keys "score" (an integer from 1 to 5) and "reason".', "json:score 1-5"),
        ('{"clarity": 1-5, "tone": 1-5, "overall": 1-5}', "json:overall 1-5"),
        ('Respond with {"label": "good" | "bad", "reason": "..."}', "json:label bad,good"),
        ('Respond with {"passed": true/false}', "json:passed false,true"),
        (
            'on a scale of 1 to 10, in this format: "[[rating]]", e.g. "[[5]]"',
            r"pattern:\[\[\s*(-?\d+(?:\.\d+)?)\s*\]\] 1-10",
        ),
        ("End with Score: X/10", "score 0-10"),
        ("Give an integer score between 0 and 100.", "score 0-100"),
        ("Answer with A, B or C.", "labels C,B,A"),
        ("A: wrong\nB: fair\nC: excellent\nAnswer with A, B or C.", "labels A,B,C"),
        ("Answer with PASS or FAIL.", "labels FAIL,PASS"),
        ('Is it right? Answer "yes" or "no".', "labels no,yes"),
        ("Reply with one of: Excellent, Acceptable, Bad", "labels Bad,Acceptable,Excellent"),
    ],
)
def test_a_prompt_that_says_its_form_is_understood(prompt: str, found: str) -> None:
    read = find_reads(prompt)
    assert read is not None and str(read.reads) == found
    assert parse_reads(found) == read.reads


@pytest.mark.parametrize(
    "prompt",
    [
        *("Judge the text.\n{output}", "Is it clear and short or not?", '{"clarity": 1-5, "tone": 1-5}'),
        *("Rate clarity from 1 to 5 and tone from 0 to 10.", 'Rate from 1 to 5 as {"clarity": 1-5, "tone": 1-5}'),
    ],
)
def test_a_prompt_that_says_none_or_several_is_not(prompt: str) -> None:
    assert find_reads(prompt) is None


def test_labels_whose_best_is_not_known_are_named() -> None:
    with pytest.raises(ValueError, match="whether Red or Blue is better"):
        find_reads("Answer with Red, Green or Blue.")


@pytest.mark.parametrize(
    ("prompt", "labels"),
    [
        (
            'End with "Verdict: <Excellent|Acceptable|Could be improved|Bad>".',
            ("Bad", "Could be improved", "Acceptable", "Excellent"),
        ),
        ("Decide whether it is Excellent, Good or Could be improved.", None),
        ("Answer with Excellent, Good, or Needs Work.", None),
        ("Write Supported, Partially Supported or Not Supported.", None),
        ("Answer Good or Bad only.", ("Bad", "Good")),
    ],
)
def test_labels_of_several_words_are_read_whole_or_not_at_all(prompt: str, labels: tuple[str, ...] | None) -> None:
    found = find_reads(prompt)
    assert (found.reads.labels if found else None) == labels

"""The demo files can be loaded, and nothing but reading tells a good summary from a bad one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import pytest
from scipy import stats

from askance.optimizer.migration.requirements import free_requirements
from askance.prompts.checklist import load_checklist
from askance.prompts.examples import Example, load_examples
from askance.prompts.prompt import Prompt

PROMPTS = Path(__file__).resolve().parents[2] / "prompts"
DEMO, STARTER = PROMPTS / "demo", PROMPTS / "starter"


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return load_examples(STARTER / "examples.jsonl")


def quality(example: Example) -> float:
    score = example.human_score("consistency")
    assert score is not None
    return score


def by_document(examples: list[Example]) -> dict[str, list[Example]]:
    documents: dict[str, list[Example]] = {}
    for example in examples:
        documents.setdefault(example.metadata["document"], []).append(example)
    return documents


def test_twenty_documents_have_a_summary_by_each_of_three_systems(
    examples: list[Example],
) -> None:
    documents = by_document(examples)
    assert len(documents) == 20
    for name, group in documents.items():
        assert [example.id for example in group] == [f"{name}-{system}" for system in "abc"]
        assert [example.system for example in group] == ["a", "b", "c"]
        assert len({example.input for example in group}) == 1
        assert len({example.output for example in group}) == 3


def test_texts_have_the_stated_lengths(examples: list[Example]) -> None:
    for example in examples:
        assert example.output is not None
        assert 60 <= len(example.input.split()) <= 90, example.id
        assert 15 <= len(example.output.split()) <= 30, example.id


def test_three_ratings_from_1_to_5_differ_by_at_most_one(examples: list[Example]) -> None:
    for example in examples:
        ratings = example.human["consistency"]
        assert len(ratings) == 3, example.id
        assert all(rating in {1, 2, 3, 4, 5} for rating in ratings), example.id
        assert max(ratings) - min(ratings) <= 1, example.id


def test_the_raters_agree_well_but_not_always(examples: list[Example]) -> None:
    raters = list(zip(*(example.human["consistency"] for example in examples), strict=True))
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert 0.7 < rank_correlation(raters[one], raters[other]) < 0.99


def test_every_document_has_a_good_a_middling_and_a_bad_summary(examples: list[Example]) -> None:
    for name, group in by_document(examples).items():
        bad, middling, good = sorted(quality(example) for example in group)
        assert bad <= 2 < middling < 4 < good, name


def test_neither_system_nor_position_reveals_the_quality(examples: list[Example]) -> None:
    best = Counter(max(group, key=quality).system for group in by_document(examples).values())
    worst = Counter(min(group, key=quality).system for group in by_document(examples).values())
    for system in "abc":
        assert 5 <= best[system] <= 8
        assert 5 <= worst[system] <= 8


def test_neither_length_nor_copied_words_reveal_the_quality(examples: list[Example]) -> None:
    scores = [quality(example) for example in examples]
    assert abs(rank_correlation([len(example.output or "") for example in examples], scores)) < 0.1
    assert abs(rank_correlation([copied_share(example) for example in examples], scores)) < 0.1


def copied_share(example: Example) -> float:
    """Share of the summary's words that the document has too."""
    return mean(word in words_of(example.input) for word in words_of(example.output or ""))


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    return float(stats.spearmanr(xs, ys).statistic)


def test_the_checklist_asks_three_questions_without_violation_examples() -> None:
    checklist = load_checklist(STARTER / "checklist.yaml")
    assert checklist.task
    assert checklist.dimensions == ["consistency"]
    assert len(checklist.questions) == 3
    for question in checklist.questions:
        assert question.text.endswith("?")
        assert question.violation is None


@pytest.mark.parametrize("name", ["prompt.md", "source_prompt.md"])
def test_the_prompts_show_the_example_first_and_the_question_last(name: str) -> None:
    text = (STARTER / name).read_text(encoding="utf-8")
    assert re.findall(r"[{}]\w*[{}]?", text) == ["{input}", "{output}", "{question}"]
    assert text.rstrip().endswith("{question}")


def test_the_prompts_quote_nothing_from_the_examples(examples: list[Example]) -> None:
    for name in ("prompt.md", "source_prompt.md", "checklist.yaml"):
        words = re.findall(r"\w+", (STARTER / name).read_text(encoding="utf-8").lower())
        runs = {tuple(words[start : start + 6]) for start in range(len(words) - 5)}
        for example in examples:
            text = re.findall(r"\w+", f"{example.input} {example.output}".lower())
            shared = runs & {tuple(text[start : start + 6]) for start in range(len(text) - 5)}
            assert not shared, (name, example.id, shared)


def test_the_workshops_replies_are_labelled_in_words_and_commented_in_part() -> None:
    replies = load_examples(DEMO / "align" / "examples.jsonl")
    failed = [each for each in replies if each.human["overall"] == (False,)]
    assert (len(replies), len(failed)) == (150, 69)
    commented = [each for each in replies if each.comment]
    assert sum(each in failed for each in commented) == 43 and len(commented) == 50
    assert len({each.output for each in replies}) == 150
    assert [question.id for question in load_checklist(DEMO / "align" / "checklist.yaml").questions] == ["good_to_send"]


def test_every_output_of_the_old_model_keeps_every_rule_of_the_workshops_prompt() -> None:
    messages = load_examples(DEMO / "migrate" / "messages.jsonl")
    assert Counter(each.metadata["split"] for each in messages) == {"development": 18, "validation": 16, "test": 62}
    found = free_requirements(Prompt((DEMO / "migrate" / "writer.md").read_text(encoding="utf-8")), messages)
    assert {each.id for each in found.criteria} == {
        *("no_code_fence", "json_alone", "keys", "key_customer", "key_topic", "key_urgent", "key_summary"),
        "not_cut",
    }
    assert {each.support for each in found.criteria} == {1.0}

"""Data for training: what becomes of each source, what is never divided, and what is refused."""

from __future__ import annotations

import random
from typing import Any

import pytest

from askance.agents.measures import nearest
from askance.evaluation.kept_judge import KeptJudge
from askance.optimizer.earlier import Earlier, KnownExample, Remembered, _content
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.preferences import Preference
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict, VerdictColumns
from askance.training.mixture import PARTS, Mixture, asked_with, deduplicated, gather, groups_of, probes, verdict_item
from askance.training.train import asked_of

from ..said import naming, says
from .conftest import CHECKLIST, made, options, said


def gathered(examples: list[Example], **given: Any) -> Mixture:
    settings = given.pop("options", options())
    defaults: dict[str, Any] = {"verdicts": None, "preferences": [], "earlier": None}
    return gather(examples, CHECKLIST, options=settings, **defaults | given)


def pairs(count: int) -> list[Preference]:
    sides = ("a", "b", "tie")
    return [
        Preference(id=f"p{n}", input=f"asked {n}", output_a=f"good {n}", output_b=f"broken {n}", preferred=sides[n % 3])
        for n in range(count)
    ]


def test_every_source_becomes_items_of_its_kind() -> None:
    examples = made(40, to_a_document=2)
    found = gathered(examples, verdicts=said(examples), preferences=pairs(20))
    rows = {(each["source"], each["kind"], each["about"]): each for each in found.to_dict()["rows"]}
    total = {key: sum(row[part] for part in PARTS) for key, row in rows.items()}
    assert total["verdicts", "verdict", "good"] == 40
    assert total["ratings", "rating", "quality"] == 40
    assert total["preferences", "preference", "overall"] == 20
    assert 0 < total["ratings", "preference", "quality"] <= 20


def test_means_of_the_same_ratings_are_no_preference() -> None:
    raters = ((0.1, 0.2, 0.3), (0.3, 0.2, 0.1))
    assert sum(raters[0]) != sum(raters[1]), "the last digits differ"
    examples = [
        each.model_copy(update={"human": {"quality": raters[place % 2] if place < 56 else (0.0, 1.0)[place % 2 :][:1]}})
        for place, each in enumerate(made(60, to_a_document=2))
    ]
    found = gathered(examples)
    assert sum(row[part] for row in found.to_dict()["rows"] if row["kind"] == "preference" for part in PARTS) == 2


def test_a_rating_is_the_mean_of_its_questions_turned_where_yes_is_a_fault() -> None:
    asked = probes(CHECKLIST, made(1)[0], "quality")
    assert [(each.weight, each.is_fault) for each in asked] == [(1.0, False), (1.0, True)]


def test_a_dimension_that_the_checklist_does_not_have_is_about_all_questions() -> None:
    assert len(probes(CHECKLIST, made(1)[0], "overall")) == 2
    two = Checklist(questions=(*CHECKLIST.questions, Question(id="x", text="x?", dimension="overall")))
    assert len(probes(two, made(1)[0], "overall")) == 1
    assert len(probes(two, made(1)[0])) == 3


def test_outputs_for_one_input_stay_together_with_the_pairs_on_it() -> None:
    examples = made(40, to_a_document=4)
    on_first = [each.model_copy(update={"input": examples[0].input}) for each in pairs(4)]
    found = gathered(examples, preferences=on_first)
    for start in range(0, 40, 4):
        assert len({found.part_of[each.id] for each in examples[start : start + 4]}) == 1
    assert {found.part_of[each.id] for each in on_first} == {found.part_of["e0"]}


def test_a_named_document_joins_different_inputs() -> None:
    one = Example(id="a", input="x", output="o", metadata={"document": "d"})
    groups = groups_of([one, one.model_copy(update={"id": "b", "input": "y"})], [])
    assert groups["a"] == groups["b"]


@pytest.mark.parametrize(("name", "joined"), [(0, True), (None, False), ("", False)])
@pytest.mark.parametrize("field", ["document", "group"])
def test_a_document_may_be_called_0_and_null_and_an_empty_text_name_none(field: str, name: Any, joined: bool) -> None:
    groups = groups_of([Example(id=each, input=each, output="o", metadata={field: name}) for each in "ab"], [])
    assert (groups["a"] == groups["b"]) is joined


def test_what_a_run_tested_on_is_never_trained_on() -> None:
    examples = made(60, to_a_document=2)
    parts = {each.id: ("test" if place % 6 == 0 else "development") for place, each in enumerate(examples[:30])}
    known = {
        each.id: KnownExample(part=parts[each.id], document=each.id, content=_content(each), people="")
        for each in examples[:30]
    }
    earlier = Earlier(judge=None, remembered=Remembered(examples=known))  # type: ignore[arg-type]
    found = gathered(examples, verdicts=said(examples), earlier=earlier)
    tested = [name for name, part in parts.items() if part == "test"]
    assert len(tested) == 5
    for name in tested:
        assert found.part_of[name] == "test"
        beside = f"e{int(name[1:]) + 1}"  # the other output for the same input, a development example of the run
        assert found.part_of[beside] == "test"
    assert found.kept_from_run == 30
    trained = {each.unit for each in (*found.training, *found.validation)}
    assert not trained & set(tested)


def test_the_checklist_is_the_judges_where_none_is_named() -> None:
    judge = KeptJudge("local/judge", Prompt("Judge."), CHECKLIST)
    assert asked_of(None, Earlier(judge=judge, remembered=Remembered(examples={}))) == CHECKLIST
    other = CHECKLIST.model_copy(update={"questions": CHECKLIST.questions[:1]})
    assert asked_of(other, Earlier(judge=judge, remembered=Remembered(examples={}))) == other
    with pytest.raises(InputError, match=naming("A checklist", "a judge")):
        asked_of(None, None)


def test_a_split_in_the_data_that_trains_on_what_a_run_tested_on_is_refused() -> None:
    examples = [
        each.model_copy(update={"metadata": {"split": ("development", "validation", "test")[place % 3]}})
        for place, each in enumerate(made(30))
    ]
    known = {"e0": KnownExample(part="test", document="e0", content=_content(examples[0]), people="")}
    earlier = Earlier(judge=None, remembered=Remembered(examples=known))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=naming("'e0'", "metadata.split", "tested on")):
        gathered(examples, earlier=earlier)
    assert gathered(examples).part_of["e2"] == "test"


def test_the_same_asked_twice_counts_once_with_the_mean() -> None:
    example, question = made(1)[0], CHECKLIST.questions[0]
    found, gone = deduplicated([verdict_item(question, example, p) for p in (0.2, 0.4)])
    assert gone == 1
    assert [each.target for each in found] == pytest.approx([0.3])


def test_a_failed_verdict_is_no_label() -> None:
    examples = made(20)
    verdicts = VerdictColumns(
        [
            *said(examples),
            Verdict("e0", "good", "openai/teacher", "0", None, status="api_error", error="x", replicate=1),
        ]
    )
    found = gathered(examples, verdicts=verdicts)
    assert found.without_answer == 1
    assert {each.target for part in PARTS for each in found.part(part) if each.kind == "verdict"} == {0.1, 0.9}


def test_answers_of_people_to_a_question_are_verdicts() -> None:
    examples = [each.model_copy(update={"human": {"good": (float("good" in each.output),)}}) for each in made(20)]
    found = gathered(examples)
    assert {each.kind for each in found.training} == {"verdict"}
    wrong = [*examples[:-1], examples[-1].model_copy(update={"human": {"good": (4.0,)}})]
    with pytest.raises(InputError, match=naming("'e19'", "people's answer", "'good'", 4)):
        gathered(wrong)


def test_a_loss_that_weighs_nothing_takes_its_data_along() -> None:
    examples = made(40, to_a_document=2)
    without = gathered(examples, options=options(loss_weights=(1, 1, 0)))
    assert {each.kind for each in without.training} == {"rating"}
    only = gathered(examples, options=options(loss_weights=(0, 0, 1)))
    assert {each.kind for each in only.training} == {"preference"}
    assert {each.kind for each in gathered(examples, options=options(rating_pairs=False)).training} == {"rating"}


def test_nothing_to_learn_is_refused() -> None:
    bare = [each.model_copy(update={"human": {}}) for each in made(30)]
    with pytest.raises(InputError, match=naming("nothing to learn")):
        gathered(bare)
    same = [each.model_copy(update={"human": {"quality": (1.0,)}}) for each in made(30)]
    with pytest.raises(InputError, match=naming("Every label", "the same")):
        gathered(same, options=options(human_scale=(0, 1)))
    with pytest.raises(InputError, match=naming("training part", "4 items")):
        gathered(made(10), options=options(split=(0.4, 0.3, 0.3), rating_pairs=False))


def test_one_document_cannot_be_divided() -> None:
    with pytest.raises(InputError, match="cannot be divided"):
        gathered([each.model_copy(update={"input": "same"}) for each in made(30)])


def test_an_id_of_both_an_example_and_a_pair_is_refused() -> None:
    with pytest.raises(InputError, match=naming("'e0'", "an example", "a pair")):
        gathered(made(20), preferences=[pairs(1)[0].model_copy(update={"id": "e0"})])


def test_few_and_constant_labels_are_said() -> None:
    examples = made(20)
    verdicts = VerdictColumns(Verdict(each.id, "good", "m", "0", True, 1.0, "hard") for each in examples)
    remarks = gathered(examples, verdicts=verdicts).remarks
    assert any("there are only 14 ratings of 'quality'" in each for each in remarks)
    assert any("all 14 verdicts on 'good' for training are 1.00" in each for each in remarks)


def test_a_split_that_some_examples_lack_is_said_to_be_unused() -> None:
    parts = ("development", "validation", "test") * 10
    marked = [each.model_copy(update={"metadata": {"split": part}}) for each, part in zip(made(30), parts, strict=True)]
    assert not any("metadata.split" in each for each in gathered(marked).remarks)
    some = [*marked[:-1], marked[-1].model_copy(update={"metadata": {}})]
    assert any(says(each, "1 of 30", "'e29'") for each in gathered(some).remarks)


def connected(units: dict[str, set[str]]) -> dict[str, frozenset[str]]:
    """Units that share a name or a text, directly or through others, found by going on until nothing changes."""
    found = {unit: {unit} for unit in units}
    changed = True
    while changed:
        changed = False
        for one, mine in units.items():
            for other, theirs in units.items():
                if mine & theirs and found[one] != found[other]:
                    both = found[one] | found[other]
                    for each in both:
                        found[each] = both
                    changed = True
    return {unit: frozenset(each) for unit, each in found.items()}


@pytest.mark.parametrize("seed", range(6))
def test_nothing_that_shares_a_text_or_a_document_with_what_is_tested_on_is_trained_on(seed: int) -> None:
    """Chance draws inputs, documents and groups, of which many are shared; a run has tested on some of the examples."""
    rng = random.Random(seed)
    units: dict[str, set[str]] = {}
    examples, preferences = [], []
    for place in range(70):
        text, names = f"asked {rng.randrange(90)}", {}
        if rng.random() < 0.3:
            names[rng.choice(["document", "group"])] = f"n{rng.randrange(40)}"
        output = f"{rng.choice(['good', 'broken'])} {place}"
        examples.append(
            Example(
                id=f"e{place}", input=text, output=output, human={"quality": (float("good" in output),)}, metadata=names
            )
        )
        units[f"e{place}"] = {text, *names.values()}
    for place in range(12):
        text = f"asked {rng.randrange(90)}"
        preferences.append(
            Preference(id=f"p{place}", input=text, output_a=f"good p{place}", output_b="broken", preferred="a")
        )
        units[f"p{place}"] = {text}
    tested = rng.sample(examples, 6)
    known = {
        each.id: KnownExample(
            part="test" if each in tested else "development", document=each.id, content=_content(each), people=""
        )
        for each in [*tested, *rng.sample(examples, 6)]
    }
    earlier = Earlier(judge=None, remembered=Remembered(examples=known))  # type: ignore[arg-type]
    found = gathered(examples, verdicts=said(examples), preferences=preferences, earlier=earlier)
    together = connected(units)
    assert set(found.part_of) == set(units) and any(len(each) > 2 for each in together.values())
    for unit, beside in together.items():
        assert {found.part_of[each] for each in beside} == {found.part_of[unit]}
    for each in tested:
        assert {found.part_of[unit] for unit in together[each.id]} == {"test"}
    assert found.groups == len(set(together.values()))
    for part in PARTS:
        assert found.part(part) and {found.part_of[each.unit] for each in found.part(part)} == {part}
    read = {part: {text.read for each in found.part(part) for text in each.texts} for part in PARTS}
    assert not read["test"] & (read["training"] | read["validation"]) and not read["training"] & read["validation"]


@pytest.mark.parametrize("prompt", [None, Prompt("Judge.\n{output}\n{question}")])
def test_a_question_about_a_relation_is_learned_with_what_a_judge_is_shown(
    prompt: Prompt | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "can_embed", lambda: False)
    output = " ".join([*(f"Masks cost {number} pounds." for number in range(9)), "Wash linen hot."])
    example = Example(id="e", input="How do I wash linen?", context="Flax grows.", output=output)
    text = asked_with(prompt)(Question(id="q", text="Is it the same thing?", sees="input"), example)
    assert "Wash linen hot." in text.output and "8 pounds" not in text.output
    assert text.given == example.input

"""Every number of a diagnosis against one counted by hand or by scipy, and the speed of all of them together."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from askance.evaluation.diagnose import diagnose_verdicts
from askance.evaluation.findings import Diagnosis, QuestionDiagnosis
from askance.evaluation.scoring import score_examples, yes_rates
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.verdicts import Verdict
from tests.said import naming, says

N = 120


def checklist(**dimensions: str) -> Checklist:
    """Questions by name, each with its dimension."""
    return Checklist(questions=[Question(id=name, text="?", dimension=each) for name, each in dimensions.items()])


def examples(n: int = N, human: Callable[[int], dict[str, Any]] | None = None) -> list[Example]:
    return [
        Example(id=f"e{k}", input="in", output="out", human=human(k) if human else {}, metadata={"document": k // 4})
        for k in range(n)
    ]


def verdicts(p_yes: dict[str, Any], n: int = N, replicates: int = 1) -> list[Verdict]:
    """From the question's P(yes): a number, an array (examples,) or (examples, replicates); None is a failure."""
    found = []
    for k in range(n):
        for question, given in p_yes.items():
            for replicate in range(replicates):
                value = given if np.isscalar(given) else np.asarray(given, dtype=object).reshape(n, -1)[k][replicate]
                if value is None:
                    one = Verdict(f"e{k}", question, "m", "p", None, status="parse_error", replicate=replicate)
                else:
                    one = Verdict(f"e{k}", question, "m", "p", bool(value > 0.5), float(value), replicate=replicate)
                found.append(one)
    return found


def question(found: Diagnosis, name: str) -> QuestionDiagnosis:
    return next(each for each in found.questions if each.id == name)


def noisy(seed: int = 0, columns: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).random((N, columns))


def test_yes_rates_are_those_of_an_evaluation_and_their_spread_is_by_dimension() -> None:
    given = verdicts({"a": noisy(0), "b": noisy(1), "c": 0.9, "d": noisy(2)})
    found = diagnose_verdicts(examples(), checklist(a="x", b="x", c="y", d="y"), given)
    rates = yes_rates(given)
    assert {each.id: each.yes_rate for each in found.questions} == rates
    by_name = {group.name: group for group in found.dimensions}
    assert by_name["x"].yes_rate_spread == pytest.approx(abs(rates["a"] - rates["b"]))
    assert (by_name["y"].yes_rate_low, by_name["y"].yes_rate_high) == (rates["d"], 1.0)
    assert by_name["y"].varying == 1
    assert found.together.varying == 3


def test_a_constant_question_is_known_and_p_yes_may_still_vary() -> None:
    given = verdicts({"same": 0.9, "soft": 0.6 + 0.3 * noisy(), "varies": noisy()})
    found = diagnose_verdicts(examples(), checklist(same="x", soft="x", varies="x"), given)
    assert [each.varies for each in found.questions] == [False, False, True]
    assert question(found, "same").p_yes_spread == 0
    assert question(found, "soft").p_yes_spread == pytest.approx(0.3, abs=0.02)
    assert found.phi.of("same", "varies") is None


def test_agreement_with_people_is_spearmans_with_the_dimension_of_the_question() -> None:
    scores = noisy(3, 2)
    people = np.round(scores + noisy(4, 2), 1)
    rated = examples(human=lambda k: {"x": float(people[k, 0]), "overall": [float(people[k, 1]), 0.0]})
    given = verdicts({"a": scores[:, 0], "b": scores[:, 1]})
    found = diagnose_verdicts(rated, checklist(a="x", b="y"), given)
    for place, (name, dimension) in enumerate((("a", "x"), ("b", "overall"))):
        each = question(found, name)
        assert each.human_dimension == dimension
        assert each.human_p_yes.value == pytest.approx(stats.spearmanr(scores[:, place], people[:, place])[0])
        assert each.human_answer.value == pytest.approx(stats.spearmanr(scores[:, place] > 0.5, people[:, place])[0])
        assert each.human_p_yes.low < each.human_p_yes.value < each.human_p_yes.high
        assert not each.runs_against_people


def test_agreement_with_people_is_with_their_answers_to_the_question_where_they_gave_some() -> None:
    scores = noisy(3, 2)
    answers = scores[:, 0] + noisy(4)[:, 0] > 1
    people = np.round(scores[:, 1] + noisy(5)[:, 0], 1)
    rated = examples(human=lambda k: {"a": "yes" if answers[k] else "no", "x": float(people[k])})
    given = verdicts({"a": scores[:, 0], "b": scores[:, 1]})
    found = diagnose_verdicts(rated, checklist(a="x", b="x"), given)
    assert [each.human_dimension for each in found.questions] == ["a", "x"]
    assert question(found, "a").human_p_yes.value == pytest.approx(stats.spearmanr(scores[:, 0], answers)[0])
    assert question(found, "b").human_p_yes.value == pytest.approx(stats.spearmanr(scores[:, 1], people)[0])


def test_a_name_that_is_a_dimension_too_is_no_answer_to_the_question() -> None:
    rated = examples(human=lambda k: {"x": k % 5, "y": k % 3})
    found = diagnose_verdicts(rated, checklist(x="y", b="x"), verdicts({"x": noisy(1), "b": noisy(2)}))
    assert [each.human_dimension for each in found.questions] == ["y", "x"]


def test_scores_on_a_dimension_that_a_fault_is_called_after_are_as_people_gave_them() -> None:
    people = noisy(5)[:, 0]
    rated = examples(human=lambda k: {"slips": round(4 * float(people[k]))})
    fault = Question(id="slips", text="?", dimension="slips", good="no")
    asked = Checklist(questions=[fault, Question(id="b", text="?", dimension="slips")])
    found = diagnose_verdicts(rated, asked, verdicts({"slips": 1 - people, "b": people}))
    assert [each.human_dimension for each in found.questions] == ["slips", "slips"]
    assert min(each.human_p_yes.value or -1 for each in found.questions) > 0.9
    assert "against_people" not in [each.kind for each in found.findings]


def test_without_human_scores_nothing_is_compared_and_it_is_said_why() -> None:
    found = diagnose_verdicts(examples(), checklist(a="x"), verdicts({"a": noisy()}))
    assert question(found, "a").human_dimension is None
    assert says(question(found, "a").human_p_yes.reason, "people", "not rate", "dimension")
    assert question(found, "a").p_against_people is None


def test_a_question_that_runs_against_people_is_flagged_and_chance_is_not() -> None:
    people = noisy(5)[:, 0]
    names = [f"chance{k}" for k in range(40)]
    given = {name: noisy(10 + k) for k, name in enumerate(names)} | {"against": 1 - 0.5 * people - 0.5 * noisy(6)[:, 0]}
    rated = examples(human=lambda k: {"x": float(people[k])})
    found = diagnose_verdicts(rated, checklist(**dict.fromkeys(given, "x")), verdicts(given))
    assert min(each.human_p_yes.value for each in found.questions if each.id in names) < -0.15
    assert [each.id for each in found.questions if each.runs_against_people] == ["against"]


def test_flips_are_the_share_of_repeats_that_differ() -> None:
    three = np.full((N, 3), 0.9)
    three[:30, 0] = 0.1  # 2 of the 3 pairs differ, on a quarter of the examples
    given = verdicts({"flips": three, "steady": np.full((N, 3), 0.9)}, replicates=3)
    found = diagnose_verdicts(examples(), checklist(flips="x", steady="x"), given)
    assert question(found, "flips").flips == pytest.approx(2 / 3 / 4)
    assert question(found, "flips").retested_examples == N
    assert question(found, "steady").flips == 0
    assert found.replicates == 3
    once = diagnose_verdicts(examples(), checklist(flips="x"), verdicts({"flips": noisy()}))
    assert (once.questions[0].flips, once.questions[0].retested_examples) == (None, 0)


def test_replicates_are_averaged_for_people_and_one_that_failed_fails_the_example() -> None:
    two = noisy(7, 2).astype(object)
    two[:5, 1] = None
    people = noisy(8)[:, 0]
    rated = examples(human=lambda k: {"x": float(people[k])})
    given = verdicts({"a": two}, replicates=2)
    found = diagnose_verdicts(rated, checklist(a="x"), given)
    scores = [each.overall for each in score_examples(rated, checklist(a="x"), given)]
    assert found.questions[0].human_p_yes.n == N - 5
    assert found.questions[0].human_p_yes.value == pytest.approx(stats.spearmanr(scores[5:], people[5:])[0])


def test_an_example_that_was_asked_less_often_than_others_counts_with_the_answers_it_has() -> None:
    people = noisy(8)[:, 0]
    rated = examples(human=lambda k: {"x": float(people[k])})
    given = [
        each for each in verdicts({"a": noisy(7, 2)}, replicates=2) if not (each.replicate and each.example > "e3")
    ]
    found = diagnose_verdicts(rated, checklist(a="x"), given)
    scores = [each.overall for each in score_examples(rated, checklist(a="x"), given)]
    assert None not in scores and {each.replicate for each in given} == {0, 1}
    assert found.questions[0].human_p_yes.n == N
    assert found.questions[0].human_p_yes.value == pytest.approx(stats.spearmanr(scores, people)[0])


def test_coverage_is_counted_for_each_question_and_so_is_what_was_never_asked() -> None:
    some = noisy().astype(object)[:, 0]
    some[:12] = None
    given = [each for each in verdicts({"a": some, "b": 0.9}) if each.question == "a" or each.example != "e3"]
    found = diagnose_verdicts(examples(), checklist(a="x", b="x", never="x"), given)
    seen = question(found, "a").coverage
    assert (seen.asked, seen.answered, seen.parse_errors) == (N, N - 12, 12)
    assert [each.unasked for each in found.questions] == [0, 1, N]
    assert question(found, "never").yes_rate is None
    assert found.coverage.asked == 2 * N - 1


def test_pairs_are_named_the_least_related_within_a_dimension_and_the_most_alike_over_all() -> None:
    base = noisy(9)[:, 0]
    given = {"a": base, "b": noisy(10)[:, 0], "c": np.where(noisy(11)[:, 0] < 0.1, 1 - base, base)}
    found = diagnose_verdicts(examples(), checklist(a="x", b="x", c="y"), verdicts(given), pairs=1)
    [alike], [least] = found.most_alike, found.least_related
    assert {alike.first, alike.second} == {"a", "c"}
    assert {least.first, least.second} == {"a", "b"}
    assert found.dimensions[0].least_related == found.dimensions[0].most_related == least
    assert alike.phi == pytest.approx(np.corrcoef(base > 0.5, given["c"] > 0.5)[0, 1])


def test_the_dictionary_is_json_with_null_where_something_is_undefined() -> None:
    found = diagnose_verdicts(examples(), checklist(a="x", b="x"), verdicts({"a": noisy(), "b": 0.9}))
    row = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert row["phi"]["matrix"] == [[1.0, None], [None, None]]
    assert set(row["phi"]["undefined"]) == {"b"} and says(row["phi"]["undefined"]["b"], "every answer", N)
    unrated = dict(row["questions"][0]["human_p_yes"])
    assert says(unrated.pop("reason"), "people", "not rate", "dimension")
    assert unrated == {"value": None, "n": 0, "low": None, "high": None}
    assert row["all_questions"]["effective_questions"] == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "other"}, "2 judges (m with prompt p, other with prompt p); give those of one at a time"),
        ({"prompt": "new"}, "2 judges"),
        ({"example": "e999"}, "verdict on example 'e999', which is not in the data"),
        ({"question": "z"}, "verdict on question 'z', which is not in the checklist"),
        ({}, "two verdicts on example 'e0', question 'a', replicate 0"),
    ],
)
def test_verdicts_that_do_not_fit_are_refused(change: dict[str, str], message: str) -> None:
    row = {"example": "e0", "question": "a", "model": "m", "prompt": "p", "answer": True, "p_yes": 1.0} | change
    with pytest.raises(InputError) as error:
        diagnose_verdicts(examples(), checklist(a="x"), [*verdicts({"a": noisy()}), Verdict(**row)])
    assert message in str(error.value)


def test_nothing_is_diagnosed_from_nothing() -> None:
    with pytest.raises(InputError, match=naming("no verdicts")):
        diagnose_verdicts(examples(), checklist(a="x"), [])


def test_a_large_checklist_takes_no_time() -> None:
    n, names = 1000, [f"q{k}" for k in range(200)]
    p_yes = np.random.default_rng(0).random((n, len(names)))
    given = [
        Verdict(f"e{k}", name, "m", "p", bool(p_yes[k, q] > 0.5), float(p_yes[k, q]))
        for k in range(n)
        for q, name in enumerate(names)
    ]
    rated = examples(n, lambda k: {"x": k % 5})
    began = time.process_time()
    diagnose_verdicts(rated, checklist(**dict.fromkeys(names, "x")), given)
    assert time.process_time() - began < 5  # .5 s on a fast processor, three times as much on a slow one

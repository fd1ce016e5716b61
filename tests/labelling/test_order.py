"""What is asked first, and judges that decide about it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askance.labelling.next_output import JudgeOpinion, Opinions, Queue, load_opinions
from askance.prompts.checklist import Checklist, ComputedCheck, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.verdicts import Verdict, dump_verdicts, save_verdicts

from ..said import naming, says
from .conftest import CHECKLIST, examples, is_good, verdicts

MANY = examples(30)


def in_order(queue: Queue, size: int) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    labelled = np.zeros(size, dtype=np.bool_)
    while not labelled.all():
        found.append(queue.pick(np.flatnonzero(~labelled), labelled, Counter(why for _, why in found)))  # type: ignore[arg-type]
        labelled[found[-1][0]] = True
    return found


def opinions_of(place: Path, *names: str) -> Any:
    return load_opinions([place / name for name in names], place / "checklist.json", MANY, "overall")[1]


def test_where_judges_disagree_comes_first(place: Path) -> None:
    opinions = opinions_of(place, "one.jsonl", "two.jsonl")
    one, two = (each.passed for each in opinions.judges)
    assert 3 < (one != two).sum() < 25
    chosen = [at for at, why in in_order(Queue("disagreement", MANY, opinions, 42), 30) if why == "disagreement"]
    apart = (one != two)[chosen]
    assert apart[: apart.sum()].all()


def test_where_the_judge_is_unsure_comes_first(place: Path) -> None:
    opinions = opinions_of(place, "one.jsonl")
    chosen = [at for at, why in in_order(Queue("uncertain", MANY, opinions, 42), 30) if why == "uncertain"]
    distance = np.abs(opinions.judges[0].scores[chosen] - 0.5)
    assert (np.diff(distance) >= -1e-9).all()
    assert distance[-1] - distance[0] > 0.1


def test_answers_that_no_labelled_output_has_come_first(tmp_path: Path) -> None:
    """All but four outputs get the same answers."""
    rare = ("e03", "e11", "e19", "e27")
    said = [
        each
        if each.example in rare
        else each.__class__(**{**each.to_dict(), "answer": each.question == "answers", "p_yes": 0.5})
        for each in verdicts([each for each in MANY if each.id not in rare or not is_good(each.id)])
    ]
    (tmp_path / "v.jsonl").write_text(dump_verdicts(said))
    opinions = load_opinions([tmp_path / "v.jsonl"], CHECKLIST, MANY, "overall")[1]
    answers = opinions.judges[0].answers
    few = np.flatnonzero((answers == 0).any(axis=1))
    assert 0 < len(few) <= 4
    queue = Queue("untested", MANY, opinions, 42)
    asked = in_order(queue, 30)
    chosen = [at for at, why in asked if why == "untested"]
    reachable = [at for at in few if at in chosen]
    assert max(chosen.index(at) for at in reachable) <= 3 + len(few)


def test_every_third_is_drawn_at_random_and_those_are_a_random_sample_of_all(place: Path) -> None:
    opinions = opinions_of(place, "one.jsonl", "two.jsonl")
    asked = in_order(Queue("auto", MANY, opinions, 42), 30)
    assert sorted(at for at, _ in asked) == list(range(30))
    assert [why == "random" for _, why in asked[:9]] == [False, False, True] * 3
    assert asked == in_order(Queue("informative", MANY, opinions, 42), 30)
    assert asked != in_order(Queue("informative", MANY, opinions, 43), 30)
    many = examples(600)
    found = load_opinions([], CHECKLIST, many, "overall")
    assert found == (CHECKLIST, None)
    drawn = Counter[str]()
    for seed in range(60):  # whatever the judges say, each output is as likely to be drawn first
        queue = Queue("informative", MANY, opinions, seed)
        drawn[MANY[next(at for at, why in in_order(queue, 30) if why == "random")].id] += 1
    assert len(drawn) > 20 and max(drawn.values()) < 9


def test_without_a_judge_unlike_outputs_come_first() -> None:
    texts = ["the same words again"] * 8 + ["about a bicycle chain", "your invoice was wrong", "!?", ""]
    data = [Example(id=f"x{at}", input="i", output=text) for at, text in enumerate(texts)]
    queue = Queue("auto", data, None, 42)
    first = [at for at, why in in_order(queue, len(data)) if why == "spread"][:5]
    assert {8, 9} < set(first)
    assert sum(at < 8 for at in first) <= 2
    assert "unlike each other" in queue.sentence


def test_the_order_of_the_file_and_random_order() -> None:
    assert [at for at, _ in in_order(Queue("file", MANY, None, 42), 30)] == list(range(30))
    asked = in_order(Queue("random", MANY, None, 42), 30)
    assert {why for _, why in asked} == {"random"}
    assert [at for at, _ in asked] != list(range(30))


def test_an_order_that_needs_judges_says_so(place: Path) -> None:
    with pytest.raises(InputError, match=naming("a judge's verdicts")):
        Queue("uncertain", MANY, None, 42)
    with pytest.raises(InputError, match=naming("two judges")):
        Queue("disagreement", MANY, opinions_of(place, "one.jsonl"), 42)


def test_a_kept_judge_brings_checklist_threshold_and_calibration(place: Path) -> None:
    from askance.evaluation.kept_judge import KeptJudge
    from askance.prompts.prompt import Prompt

    prompt = Prompt("Judge.")
    KeptJudge("m/one", prompt, CHECKLIST, threshold=0.3).save(place / "judge.yaml")
    mine = [each.__class__(**{**each.to_dict(), "prompt": prompt.hash}) for each in verdicts(MANY)]
    (place / "mine.jsonl").write_text(dump_verdicts(mine))
    checklist, found = load_opinions(
        [place / "two.jsonl", place / "judge.yaml", place / "mine.jsonl"], None, MANY, "overall"
    )
    assert checklist == CHECKLIST
    assert [(each.name, each.threshold) for each in found.judges] == [("m/one", 0.3), ("m/two", 0.5)]
    good = np.array([is_good(each.id) for each in MANY])
    assert (found.judges[0].scores[good] > 0.5).all()
    assert (found.judges[0].answers[good] == 1).all()


def test_verdicts_that_are_missing_say_nothing(place: Path) -> None:
    said = [each for each in verdicts(MANY) if each.example != "e05"]
    (place / "part.jsonl").write_text(dump_verdicts(said))
    opinions = opinions_of(place, "part.jsonl", "two.jsonl")
    assert np.isnan(opinions.judges[0].scores[5]) and np.isnan(opinions.judges[0].passed[5])
    assert (opinions.doubt[5], opinions.disagreement[5]) == (0, 0)


def test_a_judge_is_unsure_by_the_questions_that_it_answered(place: Path) -> None:
    two = [each.model_copy(update={"dimension": each.id}) for each in CHECKLIST.questions]
    (place / "checklist.json").write_text(CHECKLIST.model_copy(update={"questions": tuple(two)}).model_dump_json())
    said = [each for each in verdicts(MANY) if each.question == "answers" or int(each.example[1:]) % 2]
    (place / "part.jsonl").write_text(dump_verdicts(said))
    found = load_opinions([place / "part.jsonl"], place / "checklist.json", MANY, "answers")[1]
    assert found is not None
    answered = found.judges[0].p_good[::2, 1]
    assert found.doubt[::2] == pytest.approx((1 - 2 * abs(answered - 0.5) + 4 * answered * (1 - answered)) / 2)


def test_a_judge_that_left_a_question_open_on_every_output_decides_nothing_which_is_said(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As with ``--stop-within``."""
    said = [each for each in verdicts(MANY) if (each.question == "answers") is bool(int(each.example[1:]) % 2)]
    (place / "part.jsonl").write_text(dump_verdicts(said))
    assert opinions_of(place, "part.jsonl") is None
    assert says(caplog.text, "m/one", "question open", "every output")
    assert [each.name for each in opinions_of(place, "part.jsonl", "two.jsonl").judges] == ["m/two"]


@pytest.mark.parametrize(
    ("judge", "checklist", "dimension", "said"),
    [
        ("absent.jsonl", True, "overall", "there is no such judge"),
        ("one.jsonl", False, "overall", r"a checklist is needed.*--checklist"),
        ("other.jsonl", True, "overall", "no verdict in it is about an output of the data"),
        ("data.jsonl", True, "overall", "line 1: this is no verdict"),
        ("one.jsonl", True, "overal", "no dimension 'overal'"),
    ],
)
def test_a_judge_that_does_not_fit_is_refused(
    place: Path, judge: str, checklist: bool, dimension: str, said: str
) -> None:
    row = json.loads((place / "one.jsonl").read_text().splitlines()[0])
    (place / "other.jsonl").write_text(json.dumps(row | {"example": "elsewhere"}))
    with pytest.raises(InputError, match=said):
        load_opinions([place / judge], place / "checklist.json" if checklist else None, MANY, dimension)


def opinion_of(scores: list[float], threshold: float, p_good: list[list[float]]) -> JudgeOpinion:
    cells = np.array(p_good)
    return JudgeOpinion("m", np.array(scores), threshold, np.where(np.isnan(cells), np.nan, cells >= 0.5), cells)


def test_a_judge_is_unsure_by_half_of_its_threshold_and_by_half_of_its_questions() -> None:
    """Each part runs from 0, far away and certain, to 1, at the threshold and at one half; what is missing tells nothing."""
    nan = float("nan")
    one = opinion_of([0.8, 0.0, 0.8, 0.5, nan], 0.8, [[0.5, 0.5], [1.0, 0.0], [1.0, nan], [0.9, 0.5], [0.5, 0.5]])
    wanted = [1.0, 0.0, 0.5, ((1 - 0.3 / 0.8) + (0.36 + 1) / 2) / 2, 0.0]
    assert Opinions(CHECKLIST, (one,)).doubt.tolist() == pytest.approx(wanted)
    low = opinion_of([1.0, 0.1], 0.2, [[1.0, 1.0], [1.0, 1.0]])
    assert Opinions(CHECKLIST, (low,)).doubt.tolist() == pytest.approx([0.0, (1 - 0.1 / 0.8) / 2])


def test_judges_are_apart_by_half_of_their_verdicts_and_by_half_of_their_scores() -> None:
    nan = float("nan")
    sides = [[0.5, 0.5]] * 5
    first = opinion_of([0.9, 0.4, 0.7, nan, nan], 0.5, sides)
    second = opinion_of([0.1, 0.4, 0.6, 0.9, nan], 0.65, sides)
    third = opinion_of([0.3, 0.4, nan, 0.9, 0.2], 0.3, sides)
    assert first.passed[:3].tolist() == [1, 0, 1] and np.isnan(first.passed[3:]).all()
    assert third.passed.tolist()[:2] == [1, 1], "a score at the threshold passes"
    wanted = [(1 + 0.8) / 2, (1 + 0.0) / 2, (1 + 0.1) / 2, 0.0, 0.0]
    found = Opinions(CHECKLIST, (first, second, third)).disagreement
    assert found is not None and found.tolist() == pytest.approx(wanted)
    assert Opinions(CHECKLIST, (first,)).disagreement is None


@pytest.mark.parametrize("seed", range(3))
def test_every_third_output_is_drawn_at_random_whatever_the_judge_says_of_it(seed: int) -> None:
    """So the drawn ones stand for all: their mean score is that of all but for chance, though the others are chosen by it."""
    rng = np.random.default_rng(seed)
    scores = rng.random(600)
    judge = opinion_of(scores.tolist(), 0.5, [[each, each] for each in scores])
    data = examples(600)
    queue = Queue("uncertain", data, Opinions(CHECKLIST, (judge,)), seed)
    labelled, asked, order = np.zeros(600, dtype=bool), Counter(), []
    for _ in range(240):
        place, why = queue.pick(np.flatnonzero(~labelled), labelled, asked)
        assert not labelled[place]
        labelled[place] = True
        asked[why] += 1
        order.append((place, why))
    drawn = [place for place, why in order if why == "random"]
    chosen = [place for place, why in order if why == "uncertain"]
    assert len(drawn) == 80 and len(chosen) == 160
    assert abs(np.mean(scores[drawn]) - scores.mean()) < 3 * scores.std() / np.sqrt(80)
    far = np.abs(scores - 0.5)
    assert far[drawn].mean() > 2 * far[chosen].mean() and far[chosen[:20]].mean() < 0.05
    again = Queue("uncertain", data, Opinions(CHECKLIST, (judge,)), seed)
    assert again.pick(np.arange(600), np.zeros(600, dtype=bool), Counter()) == order[0]


def test_what_code_decided_goes_with_every_judge_of_its_prompt(tmp_path: Path) -> None:
    checklist = Checklist(
        questions=(Question(id="q", text="Is it good?"),),
        checks=(ComputedCheck(id="short", kind="length", value="at most 9 words", dimension="overall"),),
    )
    rows = [
        Verdict("a", "q", "openai/one", "p", True, 0.9, "logprob"),
        Verdict("a", "q", "openai/two", "p", False, 0.1, "logprob"),
        Verdict("a", "short", None, "p", True, 1.0, "computed"),
    ]
    save_verdicts(tmp_path / "v.jsonl", rows)
    examples = [Example(id="a", input="in", output="out")]
    _, opinions = load_opinions([tmp_path / "v.jsonl"], checklist, examples, "overall")
    assert opinions is not None
    assert [(each.name, each.scores.tolist()) for each in opinions.judges] == [
        ("openai/one", [0.95]),
        ("openai/two", [0.55]),
    ]

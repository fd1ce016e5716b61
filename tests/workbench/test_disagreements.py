"""Disagreements between judge and people in groups, comments made questions, and the labels that would tell most."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import askance
from askance.evaluation.kept_judge import KeptJudge, QuestionOrigin
from askance.memory.by_hand import WANTED_FILE, read_wanted
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError, MissingExtraError
from askance.prompts.examples import Example
from askance.prompts.human_feedback import Comment
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import VerdictColumns
from askance.workbench.disagreement_groups import MOST_GROUPED, UNSEEN, GroupedOutputs, outputs_of
from askance.workbench.disagreement_page import AskedComment, DisagreementPage
from askance.workbench.judge_bench import BenchPart, JudgeBench, load_bench
from askance.workbench.saved_judges import ValidationLooks
from askance.workbench.workbench import Workbench

from ..doubles.machine_speed import cpu_time, machine_slowness
from ..optimizer.questions.conftest import RULES, MuteDesk, of_questions
from ..said import says

RUN = "desk"
PRICE, ASKED = RULES["price"]


@pytest.fixture
def page(desks: Path) -> DisagreementPage:
    bench = Workbench(desks, "anna")
    return DisagreementPage(lambda run: bench.judge_of(run, "judge.yaml"), "anna")


def part_of(examples: list[Example], worth: Any, wanted: Any, *, labels: bool = True) -> BenchPart:
    worth, wanted = np.array(worth, dtype=float), np.array(wanted, dtype=float)
    return BenchPart(examples, VerdictColumns(), worth, ("overall",), wanted, wanted if labels else None, None)


def small(*rows: tuple[list[float], float], labels: bool = True, **of: Any) -> JudgeBench:
    """A judge with two questions, ``a`` and ``b``; a row is P(good) of each and what people say."""
    questions = tuple(Question(id=name, text=f"Is it {name}?") for name in ("a", "b"))
    judge = KeptJudge("m", Prompt("Judge."), Checklist(questions=questions), threshold=0.5)
    examples = [
        Example(id=f"e{place}", input="in", output="out", **of.get(f"e{place}", {})) for place in range(len(rows))
    ]
    part = part_of(examples, [worth for worth, _ in rows], [people for _, people in rows], labels=labels)
    return JudgeBench(replace(judge, origins=of.get("origins", {})), {"development": part})


def test_each_question_has_the_part_that_its_answer_and_people_give_it() -> None:
    bench = small(
        ([0.1, 0.8], 1.0),  # people like it, and question a speaks against it
        ([0.9, 0.9], 0.0),  # nobody saw what people reject
        ([0.3, 0.9], 0.0),  # question a saw it, and the score still passes
        ([0.9, 0.9], 0.0),  # question b came from the comment on this output
        ([0.9, 0.9], 1.0),  # all agree, but a person answered question b otherwise
        ([0.9, 0.9], 0.0),  # a person says that it is about question a
        e4={"human": {"b": (False,)}},
        e5={"comment": (Comment("about a", "a"),)},
        origins={"b": QuestionOrigin(origin="comment", sources=("e3",))},
    )
    outputs = [*outputs_of(bench, ["development"], 0.3)]
    assert [each.off for each in outputs] == ["strict", "lenient", "lenient", "lenient", None, "lenient"]
    assert [dict(each.parts) for each in outputs] == [
        {"a": "blamed"}, {}, {"a": "outweighed"}, {"b": "missed"}, {"b": "answered"}, {"a": "missed"},
    ]  # fmt: skip
    found = GroupedOutputs(outputs, bench.judge.checklist.questions, "words")
    assert found.by_question == {"a": [0, 2, 5], "b": [3, 4], UNSEEN: [1]}
    assert found.group("all") == [0, 1, 2, 3, 4, 5] and found.group("question:b") == [3, 4]
    assert not found.group("question:nothing") and not found.group("comment:nothing")


def test_scores_on_a_scale_differ_from_a_distance_on() -> None:
    bench = small(([0.9, 0.9], 0.5), ([0.9, 0.9], 0.7), ([0.1, 0.1], 0.7), ([0.5, 0.5], np.nan), labels=False)
    assert [each.off for each in outputs_of(bench, ["development"], 0.3)] == ["lenient", None, "strict", None]


def test_comments_that_say_much_the_same_are_one_group_and_how_is_said() -> None:
    texts = ["The price is named.", "the price is  named", "No thanks at all", "", "The price is named."]
    of = {f"e{place}": {"comment": (Comment(text),) if text else ()} for place, text in enumerate(texts)}
    bench = small(*[([0.9, 0.9], float(place > 1)) for place in range(len(texts))], **of)
    found = GroupedOutputs([*outputs_of(bench, ["development"], 0.3)], bench.judge.checklist.questions, "words")
    [first, second] = found.comment_groups.values()
    assert [*first.comments] == ["The price is named.", "the price is named"] and [*first.outputs] == [0, 1, 4]
    assert [*second.comments] == ["No thanks at all"]
    assert found.group(f"comment:{first.id}") == [0, 1, 4]
    assert says(found.said, "words", "share")


def test_without_the_embedders_packages_words_group_the_comments_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> Any:
        raise MissingExtraError("memory", name)

    monkeypatch.setattr("askance.workbench.disagreement_groups.embedder", missing)
    bench = small(([0.9, 0.9], 0.0), e0={"comment": (Comment("Too long."),)})
    found = GroupedOutputs([*outputs_of(bench, ["development"], 0.3)], bench.judge.checklist.questions, "minilm")
    assert len(found.comment_groups) == 1 and says(found.said, "minilm is missing", "askance[memory]")


def test_the_page_counts_what_the_judge_gets_wrong_and_leaves_the_test_examples_out(
    page: DisagreementPage, desks: Path
) -> None:
    told = page.disagreements(RUN)
    bench = load_bench(desks / RUN)
    part, state = bench.parts["development"], bench.kept["development"]
    wrong = int(np.sum(state.passed != part.labels))
    assert told["lenient"] + told["strict"] == wrong > 0 and told["splits"] == ["development"]
    assert told["outputs"] == len(part.examples) and told["questions"][0]["count"] > 0
    groups = page.comment_groups(RUN)["groups"]
    prices = next(each for each in groups if each["text"] == PRICE)
    assert prices == groups[0] and prices["differ"] and not prices["tried"]
    dates = next(each for each in groups if each["text"] == RULES["date"][0])
    assert dates["tried"][0]["joined"] and dates["tried"][0]["text"] == RULES["date"][1]
    rows = page.outputs(RUN, f"comment:{prices['id']}", "0")
    assert rows["count"] == prices["outputs"] and all(PRICE in each["comments"] for each in rows["outputs"])
    assert page.outputs(RUN, "all", "999")["outputs"] == []


def test_validation_is_shown_once_a_look_at_it_was_counted_where_the_next_run_learns_from_it(
    page: DisagreementPage, desks: Path, runs: Path
) -> None:
    assert page.disagreements(RUN)["validation"] == "no"  # the run learned from development alone
    other = DisagreementPage(lambda run: (load_bench(runs / run), runs / run), "anna")
    bench, run = load_bench(runs / "team" / "aligned"), "team/aligned"
    told = other.disagreements(run)
    assert (told["validation"], told["splits"]) == ("shut", ["development"])
    ValidationLooks(runs / run).add(bench.judge.hash, ("opened",))
    told = other.disagreements(run)
    assert (told["validation"], told["splits"]) == ("open", ["development", "validation"])
    assert told["outputs"] == sum(len(each.examples) for each in bench.parts.values())


def test_a_comment_that_one_click_made_a_question_is_tried_by_the_next_run(
    page: DisagreementPage, desks: Path, tmp_path: Path
) -> None:
    page.want(AskedComment(run=RUN, comment=PRICE))
    [first] = read_wanted(desks / RUN).values()
    assert says(first.text, "reader", PRICE) and first.by == "anna"
    [wanted] = page.want(AskedComment(run=RUN, comment=PRICE, text=ASKED))["wanted"]
    assert (wanted["text"], wanted["dimension"]) == (ASKED, "overall")
    desk = MuteDesk(120)
    settings = {"embedder": "words", "resamples": 400, "update": "questions", "learn_from": "development"}
    done = askance.align(
        desk.rows, from_run=desks / RUN, model=desk.model(), run=tmp_path / "next", **of_questions(settings)
    )
    assert [each.text for each in done.record.learned if PRICE in each.comments] == [ASKED]
    assert page.want(AskedComment(run=RUN, comment=PRICE, text=""))["wanted"] == []


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ({"comment": "nobody wrote this"}, "no such comment"),
        ({"comment": PRICE, "text": "Too long."}, "yes or no"),
        ({"comment": PRICE, "text": "Is the reply good to send?"}, "already"),
        ({"comment": PRICE, "text": f"Is it {'long ' * 300}?"}, "1000"),
        ({"comment": PRICE, "run": "../desk"}, "no run"),
    ],
)
def test_what_cannot_be_a_candidate_is_refused(page: DisagreementPage, desks: Path, asked: Any, what: str) -> None:
    with pytest.raises(InputError) as caught:
        page.want(AskedComment.model_validate({"run": RUN, **asked}))
    assert says(str(caught.value), what) and not (desks / RUN / WANTED_FILE).exists()


def test_windows_that_make_candidates_at_once_lose_nothing(page: DisagreementPage, desks: Path) -> None:
    comments = [each["text"] for each in page.comment_groups(RUN)["groups"]]
    threads = [Thread(target=page.want, args=(AskedComment(run=RUN, comment=each),)) for each in comments * 2]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len((desks / RUN / WANTED_FILE).read_text().splitlines()) == len(threads)
    assert {*read_wanted(desks / RUN)} == {*comments}


def test_the_labels_that_would_tell_most_are_those_that_label_asks_for(page: DisagreementPage, desks: Path) -> None:
    told = page.labels(RUN)
    assert told["unlabelled"] == 0 and told["next"] == [] and says(told["command"], "askance label", "--judge")
    file = desks / RUN / "inputs" / "examples.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    development = {each.id for each in load_bench(desks / RUN).parts["development"].examples}
    mine = [each for each in rows if each["id"] in development]
    for each in mine[:8]:
        each.pop("human")
    file.write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    (desks / RUN / "judge.yaml").touch()
    told = page.labels(RUN)
    assert told["unlabelled"] == 8 and {each["id"] for each in told["next"]} == {each["id"] for each in mine[:8]}
    assert all(each["why"] for each in told["next"]) and says(told["order"], "third", "random")


def test_ten_thousand_outputs_are_answered_within_a_fifth_of_a_second(tmp_path: Path) -> None:
    many, asked, rng = 10_000, 20, np.random.default_rng(0)
    questions = tuple(Question(id=f"q{number}", text=f"Is it {number}?") for number in range(asked))
    judge = KeptJudge("m", Prompt("Judge."), Checklist(questions=questions), threshold=0.5)
    words = np.array([f"word{number}" for number in range(400)])
    said = [" ".join(rng.choice(words, 6)) for _ in range(MOST_GROUPED + 500)]
    examples = [
        Example(id=f"e{place}", input="in", output="out", comment=(Comment(said[place]),) if place < len(said) else ())
        for place in range(many)
    ]
    labels = (rng.random(many) < 0.5).astype(float)
    worth = np.clip(0.25 * labels[:, None] + rng.random((many, asked)) * 0.75, 0, 1)
    bench = JudgeBench(judge, {"development": part_of(examples, worth, labels)})
    found = GroupedOutputs([*outputs_of(bench, ["development"], 0.3)], questions, "minilm")
    assert len(found.comment_groups) > 3_000 and says(found.said, "words", "500 more comments")
    took = {}
    for group in ("all", "question:q3", f"comment:{next(iter(found.comment_groups))}"):
        assert found.group(group)
        took[group] = cpu_time(lambda group=group: found.group(group))
    assert max(took.values()) < 0.2 * machine_slowness(), took

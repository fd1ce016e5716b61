"""A judge on the bench: what an edit does to its agreement is what judging with the edited judge would come to."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from askance.evaluation.judge_file import load_judge
from askance.evaluation.kept_judge import KeptJudge
from askance.evaluation.scoring import human_targets, score_examples
from askance.memory.run_directory import RunDirectory
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import VerdictColumns, read_verdicts
from askance.stats.agreement import cohen_kappa
from askance.stats.correlation import spearman
from askance.stats.pass_fail import passes
from askance.workbench.judge_bench import BenchPart, JudgeBench, load_bench
from askance.workbench.judge_edits import JudgeEdit, edited_judge
from askance.workbench.saved_judges import ValidationLooks, acceptance_test, judge_files, save_changed_judge
from askance.workbench.workbench import AskedJudge, Workbench

from ..doubles.machine_speed import machine_slowness
from ..said import says

RUN = "team/aligned"


def edit_of(bench: JudgeBench, first: dict[str, Any] | None = None, **fields: Any) -> JudgeEdit:
    """The table as it is, with other values of its first question, and another threshold."""
    row, *others = bench.start.questions
    questions = (row.model_copy(update=first or {}), *others)
    return bench.start.model_copy(update={"questions": questions, **fields})


def last(runs: Path, split: str) -> Path:
    """The verdicts of the accepted version."""
    return sorted((runs / RUN / "verdicts").glob(f"*-{split}.jsonl"))[-1]


@pytest.mark.parametrize(
    "first", [{"weight": 3.0}, {"good": "no"}, {"on": False}, {"weight": 0.25}], ids=lambda each: next(iter(each))
)
def test_an_edit_has_the_figures_of_the_edited_judge(runs: Path, first: dict[str, Any]) -> None:
    bench = load_bench(runs / RUN)
    changed, what = edited_judge(bench.judge, edit_of(bench, first, threshold=0.6))
    assert len(what) == 2
    for split in ("development", "validation"):
        part = bench.parts[split]
        verdicts = read_verdicts(last(runs, split))
        scores = score_examples(part.examples, changed.checklist, verdicts)
        wanted = [each.human["quality"][0] for each in part.examples]
        row = bench.figures(split, changed)["now"]
        mine = [each.dimensions["quality"] for each in scores]
        assert row["spearman"]["value"] == pytest.approx(spearman(mine, wanted).value)
        said = passes(np.array(mine), 0.6).astype(float)
        assert row["kappa"]["value"] == pytest.approx(cohen_kappa(said, wanted).value)
        hits = [float(one) for one, other in zip(said, wanted, strict=True) if other == 1]
        assert row["true_positive_rate"]["value"] == pytest.approx(np.mean(hits))
        assert sum(row["confusion"].values()) == len(part.examples)


def test_moved_outputs_are_those_that_pass_by_one_judge_alone(runs: Path) -> None:
    bench = load_bench(runs / RUN)
    changed, _ = edited_judge(bench.judge, edit_of(bench, threshold=0.9))
    before, after = bench.kept["development"], bench.state(changed, "development")
    row = bench.figures("development", changed)
    assert row["moved"]["count"] == int(np.sum(before.passed != after.passed)) > 0
    assert not any(each["passes"] for each in row["moved"]["listed"])
    assert "moved" not in bench.figures("development")


def test_edits_that_cannot_be_had_are_refused(runs: Path) -> None:
    bench = load_bench(runs / RUN)
    rows = [each.model_copy(update={"on": False}) for each in bench.start.questions]
    with pytest.raises(InputError, match="no score"):
        edited_judge(bench.judge, bench.start.model_copy(update={"questions": tuple(rows)}))
    with pytest.raises(InputError, match="other questions"):
        edited_judge(bench.judge, bench.start.model_copy(update={"questions": bench.start.questions[:1]}))
    assert edited_judge(bench.judge, bench.start) == (bench.judge, ())


def test_a_saved_judge_says_what_was_changed_and_can_be_used_and_changed_again(runs: Path) -> None:
    page = Workbench(runs, "anna")
    bench = load_bench(runs / RUN)
    asked = AskedJudge(run=RUN, edit=edit_of(bench, {"weight": 2.0}))
    assert page.save(asked)["file"] == "judge-1.yaml"
    judge = load_judge(runs / RUN / "judge-1.yaml")
    assert [each.weight for each in judge.checklist.questions][:1] == [2.0]
    [change] = judge.history
    assert (change.by, change.of, change.looks, change.shaped_on_validation) == ("anna", bench.judge.hash, 0, False)
    assert change.what == (f"weight of '{bench.start.questions[0].id}' 1 → 2",)
    assert judge.figures is None and judge.decision is None and judge.pass_threshold(None, {}).fitted_on is None
    second = load_bench(runs / RUN, "judge-1.yaml")
    again = AskedJudge(run=RUN, file="judge-1.yaml", edit=edit_of(second, threshold=0.33))
    assert page.save(again)["file"] == "judge-2.yaml"
    assert len(load_judge(runs / RUN / "judge-2.yaml").history) == 2
    with pytest.raises(InputError, match="Nothing is changed"):
        page.save(AskedJudge(run=RUN, edit=bench.start))


def test_windows_that_save_at_once_lose_nothing(runs: Path) -> None:
    bench = load_bench(runs / RUN)

    def save(weight: float) -> None:
        changed, what = edited_judge(bench.judge, edit_of(bench, {"weight": weight}))
        save_changed_judge(runs / RUN, bench.judge, changed, what, "anna", ())

    threads = [Thread(target=save, args=(2.0 + number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    files = judge_files(runs / RUN)
    assert files == ["judge.yaml", *(f"judge-{number}.yaml" for number in range(1, 7))]
    weights = {load_judge(runs / RUN / each).checklist.questions[0].weight for each in files[1:]}
    assert weights == {2.0, 3.0, 4.0, 5.0, 6.0, 7.0}


def test_looks_at_validation_are_counted_and_a_judge_shaped_on_it_is_marked(
    runs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    page, bench = Workbench(runs, "anna"), load_bench(runs / RUN)
    first = AskedJudge(run=RUN, edit=edit_of(bench, {"weight": 2.0}), validation=True)
    assert page.figures(AskedJudge(run=RUN, edit=bench.start, validation=True))["looks"] == 0
    assert page.figures(first)["looks"] == page.figures(first)["looks"] == 1
    page.save(first)
    assert not load_judge(runs / RUN / "judge-1.yaml").history[0].shaped_on_validation  # it alone was looked at
    second = AskedJudge(run=RUN, edit=edit_of(bench, {"weight": 3.0}))
    found = Workbench(runs, "ben").test(second)  # another session counts on
    assert found["look"] == 2 and found["level"] == pytest.approx(bench_level(runs) / 4)
    page.save(second)
    caplog.clear()
    assert load_judge(runs / RUN / "judge-2.yaml").history[0].shaped_on_validation
    assert says(caplog.text, "anna", "validation", "2 looks")
    assert ValidationLooks(runs / RUN).judges() == [load_judge(runs / RUN / f"judge-{n}.yaml").hash for n in (1, 2)]


def bench_level(runs: Path) -> float:
    return float(RunDirectory(runs / RUN).read_config()["config"]["alpha"])


def test_the_test_examples_are_not_on_the_bench(runs: Path) -> None:
    bench = load_bench(runs / RUN)
    test = {each.example for each in read_verdicts(last(runs, "test"))}
    for part in bench.parts.values():
        assert test and not test & {each.id for each in part.examples}
        assert not test & {each.example for each in part.verdicts}


def test_ten_thousand_outputs_follow_a_change_within_a_fifth_of_a_second() -> None:
    many, asked, rng = 10_000, 20, np.random.default_rng(0)
    questions = tuple(Question(id=f"q{number}", text=f"Is it {number}?") for number in range(asked))
    judge = KeptJudge("m", Prompt("Judge."), Checklist(questions=questions), threshold=0.5)
    examples = [Example(id=f"e{number}", input="in", output="out") for number in range(many)]
    labels = (rng.random(many) < 0.5).astype(float)
    worth = np.clip(0.25 * labels[:, None] + rng.random((many, asked)) * 0.75, 0, 1)
    part = BenchPart(examples, VerdictColumns(), worth, ("overall",), labels, labels, None)
    bench = JudgeBench(judge, {"development": part})
    took = []
    for weight in (2.0, 3.0, 4.0, 5.0):
        began = time.thread_time()
        changed, _ = edited_judge(judge, edit_of(bench, {"weight": weight}, threshold=0.55))
        row = bench.figures("development", changed)
        took.append(time.thread_time() - began)
    assert row["n"] == many and row["difference"]["kappa"]["low"] is not None
    assert min(took) < 0.2 * machine_slowness(), took


@pytest.mark.parametrize(("limit", "refused"), [(0.05, True), (0.5, False)])
def test_a_judge_that_only_became_more_lenient_is_refused_by_the_rule_of_the_commands(
    limit: float, refused: bool
) -> None:
    many, rng = 400, np.random.default_rng(0)
    questions = (Question(id="a", text="Is it?"), Question(id="strict", text="Is it perfect?"))
    judge = KeptJudge("m", Prompt("Judge."), Checklist(questions=questions), threshold=0.575)
    labels = (rng.random(many) < 0.5).astype(float)
    examples = [Example(id=f"e{n}", input="i", output="o", human={"overall": (bool(labels[n]),)}) for n in range(many)]
    # turned off, the second question leaves the ranking of the outputs as it is, and moves the mean score away
    worth = np.column_stack([0.5 + 0.2 * labels + 0.1 * rng.random(many), np.full(many, 0.4)])
    targets = human_targets(examples, judge.checklist, None)
    part = BenchPart(examples, VerdictColumns(), worth, ("overall",), labels, labels, None, None, targets)
    bench = JudgeBench(judge, {"validation": part})
    rows = (bench.start.questions[0], bench.start.questions[1].model_copy(update={"on": False}))
    changed, _ = edited_judge(judge, bench.start.model_copy(update={"questions": rows, "threshold": 0.65}))
    told = acceptance_test(bench, changed, 1, {"alpha": 0.05, "max_bias": limit})
    assert told["gain"]["value"] > 0
    assert told["accepted"] is not refused, told
    assert says(told["reason"], "lenient" if refused else "better on validation")

"""``askance evaluate`` as people use it: does it pass, on which part does it not, and should the build fail."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from askance.evaluation.evaluation_result import evaluation_view
from askance.prompts.checklist import Checklist, Question, dump_checklist
from askance.testing import StandInServer

from ..said import says
from .conftest import CommandLine


def reply(body: Mapping[str, Any]) -> Any:
    """What says that it is right, is; silence has no verdict."""
    said = "\n".join(message["content"] for message in body["messages"])
    if "silence" in said:
        return 400, {"error": {"message": "no"}}
    return 0.9 if "right answer" in said else 0.2


@pytest.fixture
def server() -> Iterator[StandInServer]:
    with StandInServer(reply) as one:
        yield one


class Answers(CommandLine):
    """A file of answers, and the command line."""

    def write(self, *rows: dict[str, Any]) -> None:
        rows = tuple({"id": f"a{place}", "input": "Q"} | row for place, row in enumerate(rows))
        Path(self.data).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def judge(self, *more: str) -> tuple[int, str, str]:
        how = ("--checklist", "checklist.yaml", "--model", "openai/judge", "--api-base", self.server.url)
        return self("evaluate", self.data, *how, "--no-cache", "--retries", "0", "--resamples", "200", *more)


@pytest.fixture
def answers(sandbox: Path, server: StandInServer, cli: Any) -> Answers:
    questions = [Question(id="right", text="Is it right?")]
    Path("checklist.yaml").write_text(dump_checklist(Checklist(task="Answer.", questions=questions)), encoding="utf-8")
    return Answers(cli, server, "answers.jsonl")


RIGHT, WRONG, SILENCE = {"output": "right answer"}, {"output": "wrong one"}, {"output": "silence"}


def test_the_build_fails_under_the_pass_rate_and_not_above(answers: Answers) -> None:
    answers.write(*[RIGHT] * 8, *[WRONG] * 2)
    assert answers.judge("--pass-threshold", "0.5", "--fail-under", "0.8")[0] == 0
    code, out, err = answers.judge("--pass-threshold", "0.5", "--fail-under", "0.9")
    assert code == 1 and says(err, "pass rate", "0.800", "10 examples", "below --fail-under")
    assert says(out, "pass rate", "80.0%"), "the result is printed all the same"
    code, _, err = answers.judge("--fail-under", "0.77")
    assert code == 1 and says(err, "mean score", "0.760")
    assert answers.judge("--fail-under", "0.75", "--scale", "1", "5")[0] == 0


def test_a_mean_score_that_questions_left_out_could_still_put_on_the_other_side_settles_no_build(
    answers: Answers,
) -> None:
    questions = [Question(id="right", text="Is it right?", weight=9), Question(id="kind", text="Is it kind?")]
    Path("checklist.yaml").write_text(dump_checklist(Checklist(task="Answer.", questions=questions)), encoding="utf-8")
    answers.write(*[RIGHT] * 4)
    code, _, err = answers.judge("--stop-within", "0.05", "--fail-under", "0.85")
    assert code == 4, "of all questions it may be 0.81"
    assert says(err, "mean score", "0.860", "4 examples", "left out")
    assert says(err, "0.810", "0.910", "--fail-under 0.85", "not known", "--stop-within")
    for reversed_scale in ((), ("--scale", "5", "1")):
        assert answers.judge("--stop-within", "0.05", "--fail-under", "0.8", *reversed_scale)[0] == 0
        assert answers.judge("--stop-within", "0.05", "--fail-under", "0.92", *reversed_scale)[0] == 1


def test_missing_verdicts_neither_pass_nor_fail_a_build(answers: Answers) -> None:
    answers.write(*[RIGHT] * 8, WRONG, SILENCE)
    code, _, err = answers.judge("--pass-threshold", "0.5", "--fail-under", "0.8")
    assert code == 4 and says(err, "90.0%", "--min-coverage 95.0%")

    def judge(least: str) -> tuple[int, str, str]:
        return answers.judge("--pass-threshold", "0.5", "--min-coverage", "0.9", "--fail-under", least)

    code, _, err = judge("0.85")
    assert code == 4 and says(err, "1 of 10", "no score", "0.800", "0.900")
    assert judge("0.8")[0] == 0, "whatever the missing one is"
    assert judge("0.95")[0] == 1


def test_json_says_what_passes_and_nothing_of_it_without_a_threshold(answers: Answers) -> None:
    answers.write(RIGHT, WRONG, SILENCE)
    found = json.loads(answers.judge("--json", "--pass-threshold", "0.6")[1])
    assert [row["pass"] for row in found["scores"]] == [True, False, None]
    assert found["pass_rate"]["value"] == 0.5 and found["pass_rate"]["n"] == 2
    assert found["threshold"] == {"value": 0.6, "from": "given"} and "accuracy" not in found
    plain = json.loads(answers.judge("--json")[1])
    assert not {"pass_rate", "threshold", "by"} & set(plain) and "pass" not in plain["scores"][0]


def test_labels_in_words_bring_the_figures_without_being_asked_for(answers: Answers) -> None:
    rows = [RIGHT | {"human": {"overall": "pass"}}] * 9 + [WRONG | {"human": {"overall": "fail"}}] * 5
    answers.write(*rows, RIGHT | {"human": {"overall": "fail"}}, WRONG | {"human": {"overall": "pass"}})
    code, out, _ = answers.judge()
    assert code == 0 and says(out, "nobody", "--pass-threshold")
    assert says(out, "both pass 9", "judge alone 1", "people alone 1", "both fail 5")
    found = json.loads(answers.judge("--json")[1])
    assert found["true_positive_rate"]["value"] == 0.9 and found["threshold"]["from"] == "default"
    assert found["people_pass_rate"]["value"] == 10 / 16


def test_scores_on_a_scale_are_no_labels(answers: Answers) -> None:
    answers.write(*({**RIGHT, "human": {"overall": score}} for score in (1, 2, 5)))
    assert "threshold" not in json.loads(answers.judge("--json")[1])


def test_slices_of_a_metadata_field_with_small_ones_marked(answers: Answers) -> None:
    rows = [RIGHT | {"metadata": {"shop": "Bath"}}] * 20 + [WRONG | {"metadata": {"shop": "Wells"}}] * 3 + [RIGHT]
    answers.write(*rows)
    code, out, _ = answers.judge("--by", "shop", "--pass-threshold", "0.5")
    assert code == 0 and "by shop" in out
    lines = {
        name: next(line for line in out.splitlines() if line.lstrip().startswith(name)) for name in ("Bath", "Wells")
    }
    assert "100.0% [" in lines["Bath"] and "small" not in lines["Bath"]
    assert "0.0% [" in lines["Wells"] and "small" in lines["Wells"] and "(none)" in out
    found = json.loads(answers.judge("--by", "shop", "--pass-threshold", "0.5", "--json")[1])["by"]
    assert found["field"] == "shop" and [row["n"] for row in found["slices"]] == [20, 3, 1]
    assert found["slices"][1]["pass_rate"]["value"] == 0 and found["slices"][1]["score"]["value"] == pytest.approx(
        0.2, abs=1e-3
    )


def test_of_many_slices_the_terminal_shows_the_largest_and_says_how_many_more_there_are(answers: Answers) -> None:
    answers.write(*[RIGHT | {"metadata": {"shop": f"shop {n:02d}"}} for n in range(33)])
    out = answers.judge("--by", "shop")[1]
    assert "shop 29" in out and "shop 30" not in out and says(out, "3 more", "--json")
    data = json.loads(answers.judge("--by", "shop", "--json")[1])
    assert len(data["by"]["slices"]) == len(evaluation_view(data).tables["slices"]()) == 33
    assert "more; --json" not in answers.judge("--by", "shop", "--limit", "30")[1]


def test_slices_of_labelled_data_have_the_agreement(answers: Answers) -> None:
    labels = (
        {"human": {"overall": "pass"}, "metadata": {"n": 1}},
        {"human": {"overall": "fail"}, "metadata": {"n": 2}},
    )
    answers.write(*[RIGHT | labels[0]] * 4, *[RIGHT | labels[1]] * 4)
    found = json.loads(answers.judge("--by", "n", "--json")[1])["by"]["slices"]
    assert [row["accuracy"]["value"] for row in found] == [1, 0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--by", "shopp"], "no example has a metadata field 'shopp' (there are shop). Did you mean 'shop'?"),
        (["--fail-under", "1.5"], "fail_under: "),
        (["--pass-threshold", "80"], "pass_threshold: "),
        (["--pass-threshold", "0.5", "--pass-mark", "0.5"], "with pass_mark a score is not exact"),
    ],
)
def test_bad_input_ends_with_2_before_a_call(answers: Answers, given: list[str], said: str) -> None:
    answers.write(RIGHT | {"metadata": {"shop": "Bath"}})
    code, _, err = answers.judge(*given)
    assert code == 2 and said in err and not answers.server.bodies


def test_a_pass_mark_is_a_threshold_too(answers: Answers) -> None:
    answers.write(*[RIGHT] * 3, WRONG)
    found = json.loads(answers.judge("--pass-mark", "0.5", "--json")[1])
    assert found["threshold"] == {"value": 0.5, "from": "pass_mark"} and found["pass_rate"]["value"] == 0.75


def test_the_page_of_a_result_says_what_passes(answers: Answers) -> None:
    rows = [RIGHT | {"human": {"overall": "pass"}}] * 9 + [WRONG | {"human": {"overall": "fail"}}] * 5
    answers.write(*rows, RIGHT | {"human": {"overall": "fail"}, "metadata": {"shop": "Bath"}})
    Path("found.json").write_text(answers.judge("--json", "--by", "shop")[1], encoding="utf-8")
    assert answers("report", "found.json", "-o", "page.html")[0] == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "Pass rate by" in page and "true negative rate" in page
    assert "By shop" in page and says(page, "Both pass 9", "judge alone 1")


def test_what_only_a_report_of_verdicts_shows_is_said_to_be_unused(
    answers: Answers, caplog: pytest.LogCaptureFixture
) -> None:
    answers.write(*[RIGHT] * 3, WRONG)
    Path("found.json").write_text(answers.judge("--json")[1], encoding="utf-8")
    assert answers("report", "found.json", "--data", "data.jsonl")[0] == 0
    assert says(caplog.messages[-1], "--data", "not used", "evaluation")
    Path("folder").mkdir()
    Path("found.json").rename("folder/found.json")
    assert answers("report", "folder", "--human-scale", "1", "5", "--labels", "good=fine,bad=poor")[0] == 0
    assert "--human-scale" in caplog.messages[-1] and "--labels" in caplog.messages[-1]
    assert says(caplog.messages[-1], "not used", "evaluation")

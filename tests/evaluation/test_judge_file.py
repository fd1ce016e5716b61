"""A judge in a file: read as it was written, refused where it is damaged, used as it was measured."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.evaluation.calibration import Calibration, QuestionCalibration, load_calibration
from askance.evaluation.judge_file import judge_of_run, load_judge, parse_judge
from askance.evaluation.kept_judge import (
    THIS_FOLDER,
    AcceptedOn,
    JudgeFigures,
    KeptJudge,
    MadeBy,
    QuestionOrigin,
)
from askance.models.base import Request
from askance.prompts.checklist import Checklist, ComputedCheck, Question
from askance.prompts.errors import InputError
from askance.prompts.formats.binding import Binding
from askance.prompts.prompt import Prompt, frame, parse_prompt
from askance.stats.resampling import Statistic
from tests.said import naming, says

pytestmark = pytest.mark.usefixtures("sandbox")

CHECKLIST = Checklist(
    task="Answer the letter.\nBriefly.",
    questions=[
        Question(id="010", text="Is it right?", dimension="facts", weight=2.5, violation="no", rubric="One.\nTwo.\n"),
        Question(id="polite", text="Is it polite?", dimension="tone"),
    ],
    section_weights={"a": {"010": 1.0, "polite": 0.0}},
)
PROMPTS = [
    "Judge.",
    "Judge.\n",
    "Judge.\n\n\n",
    "\n  Judge.\nWell.",
    "# Judge  \n\n- {input}\t\n- {output}\n\n\n- {question}: yes or no?   ",
    "Windows\r\nlines\r\n",
    "null",
    "# no comment",
    "ünïcode 🙂\u2028line\u0085\n\ttab",
]


def a_judge(**changes: Any) -> KeptJudge:
    fit = QuestionCalibration(slope=0.5, shift=-1e-05, n=12)
    prompt = changes.pop("prompt", Prompt("Judge well.\nSay yes or no.\n"))
    fields: dict[str, Any] = {
        "model": "openai/judge",
        "prompt": prompt,
        "checklist": CHECKLIST,
        "settings": {
            "mode": "each",
            "repeat": 2,
            "scores": "expected",
            "score_scale": (1, 9),
            "human_scale": (1.0, 5.0),
        },
        "calibration": Calibration(
            method="platt",
            model="openai/judge",
            prompt=prompt.hash,
            target="human",
            n=12,
            questions={"010": fit, "polite": fit},
        ),
        "figures": JudgeFigures(
            reference="human",
            validation=AcceptedOn(spearman=0.7, n=12, low=0.4, high=0.9),
            test=AcceptedOn(spearman=None, n=3, reason="the scores are all the same"),
        ),
        "origins": {"010": QuestionOrigin.model_validate({"from": "comment", "sources": ["e1"]})},
    }
    return KeptJudge(**fields | changes)


@pytest.mark.parametrize("text", PROMPTS)
def test_a_prompt_comes_back_byte_for_byte(text: str) -> None:
    assert parse_judge(a_judge(prompt=Prompt(text), calibration=None).to_yaml(), "j").prompt.text == text


def test_everything_comes_back_as_it_was_and_is_written_the_same_again(tmp_path: Path) -> None:
    judge = a_judge()
    judge.save(tmp_path)
    read = load_judge(tmp_path)
    assert read == judge == load_judge(tmp_path / "judge.yaml") == load_judge(read)
    assert read.to_yaml() == judge.to_yaml()


@pytest.mark.parametrize(
    ("decision", "accepted", "said"),
    [
        ("keep", True, "the test speaks against it (decision: keep): keep the one that the run began with"),
        ("undecided", True, "the test does not settle whether it is better"),
        ("undecided", None, "the test does not settle whether it is better"),
        ("adopt", True, None),
        ("keep", False, None),
        (None, None, None),
    ],
)
def test_a_judge_that_is_not_to_be_adopted_says_so_once_where_it_is_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, decision: Any, accepted: bool | None, said: str | None
) -> None:
    made_by = MadeBy(mode="align", finish_reason="no_gain", accepted=accepted)
    judge = a_judge(made_by=made_by, decision=decision)
    judge = judge.measured(judge.figures or pytest.fail("it has figures"))
    judge.save(tmp_path)
    read = load_judge(load_judge(tmp_path))
    assert read == judge and read.decision == decision
    assert [each.getMessage().startswith(f"{tmp_path}: ") for each in caplog.records] == ([True] if said else [])
    assert said is None or said in caplog.text
    file = tmp_path / "judge.yaml"
    file.write_text(file.read_text().replace("Is it right?", "Is it correct?"))
    caplog.clear()
    assert load_judge(file).edited and not caplog.records, "what was decided is of another judge"


def test_a_decision_that_is_none_is_refused() -> None:
    text = a_judge(decision="keep").to_yaml()
    assert "\ndecision: keep\n" in text
    with pytest.raises(InputError, match=r"^j: field 'decision'"):
        parse_judge(text.replace("decision: keep", "decision: maybe"), "j")


def test_a_threshold_of_dimensions_in_any_script_comes_back() -> None:
    questions = [Question(id=name, text="Is it?", dimension=name) for name in ("tone 🙂", "ünïcode", "no")]
    judge = a_judge(checklist=Checklist(questions=questions), calibration=None, threshold=0.6)
    judge = KeptJudge(**{**vars(judge), "origins": {}, "threshold_of": ("tone 🙂", "ünïcode", "no")})
    assert parse_judge(judge.to_yaml(), "j") == judge


def test_a_person_reads_it_with_pleasure() -> None:
    text = a_judge().to_yaml()
    assert "prompt: |\n  Judge well.\n  " in text and "yes or no.\n" in text
    assert "\n  questions:\n    - id: '010'\n      text: Is it right?\n" in text
    assert "\n  score_scale: [1, 9]\n" in text and "\n    from: comment\n" in text


def test_a_judge_by_hand_needs_a_model_a_prompt_and_a_checklist_only() -> None:
    text = "schema: askance.judge/1\nmodel: a/b\nprompt: Judge.\nchecklist:\n  questions:\n    - {id: q, text: Good}\n"
    judge = parse_judge(text, "j")
    assert (judge.model, judge.settings, judge.figures, judge.calibration) == ("a/b", {}, None, None)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("schema: askance.judge/1", "schema: askance.judge/9", "field 'schema': 'askance.judge/1' is needed"),
        ("model: openai/judge\n\n", "\n", "the field 'model' is missing"),
        ("prompt: |", "promt: |", "the field 'promt' is not known"),
        ("model: openai/judge\n\n", "model: openai/judge\nmodel: openai/other\n\n", "'model' stands here twice"),
        ("prompt: |\n  Judge well.\n  Say yes or no.\n", "prompt: ''\n", "field 'prompt'"),
        ("Say yes or no.", "Say {yes}.", "field 'prompt'"),
        (
            "text: Is it right?",
            "text: ' '",
            "field 'checklist': entry 1 of 'questions': field 'text': a question is needed",
        ),
        ("      weight: 2.5\n", "      weight: much\n", "field 'checklist': entry 1 of 'questions': field 'weight'"),
        (
            "      dimension: tone\n",
            "      dimenson: tone\n",
            "field 'dimenson' is not known (Did you mean 'dimension'?)",
        ),
        ("  mode: each\n", "  mode: twice\n", "field 'settings': mode: must be 'auto', 'each' or 'batched'"),
        ("  mode: each\n", "  modus: each\n", "there is no setting 'modus'. Did you mean 'mode'?"),
        ("  mode: each\n", "  api_base: http://here\n", "there is no setting 'api_base'"),
        ("  repeat: 2\n", "  repeat: two\n", "field 'settings': repeat"),
        (
            "  '010':\n    from: comment",
            "  '011':\n    from: comment",
            "field 'origins.011': the checklist has no question '011'",
        ),
        ("    from: comment\n", "", "field 'origins.010.from'"),
        ("      slope: 0.5\n", "      slope: steep\n", "field 'calibration': field 'questions.010.slope'"),
        ("  model: openai/judge\n", "  model: openai/other\n", "it was fitted for openai/other"),
        ("Judge well.", "Judge better.", "field 'calibration': it was fitted for a prompt with the hash"),
        ("    spearman: 0.7\n", "    spearman: good\n", "field 'figures.validation.spearman'"),
        ("    n: 12\n    low", "    n: -1\n    low", "field 'figures.validation.n'"),
        ("checklist:\n", "checklist: [\n", "not valid YAML"),
        ("schema: askance.judge/1", "schema: !!timestamp 2001-01-01", "line 3: not valid YAML (a value: '!!timestamp'"),
        ("      weight: 2.5\n", "      weight: !!binary aGVsbG8=\n", "'!!binary' makes no text, list or mapping"),
    ],
)
def test_a_file_that_was_edited_wrongly_is_refused_with_the_file_and_the_field(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    file = tmp_path / "judge.yaml"
    text = a_judge().to_yaml()
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as error:
        load_judge(file)
    assert str(error.value).startswith(str(file)) and said in str(error.value)


@pytest.mark.parametrize("content", [b"", b"- a\n", b"\xff\xfe\x00", b"a: \x00", b"[" * 5000, b'{"a": 1'])
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "judge.yaml"
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"judge\.yaml"):
        load_judge(file)


def test_what_is_no_judge_is_said(tmp_path: Path, letters: Any, world: Any) -> None:
    a_judge().save(tmp_path / "judges.yaml")
    with pytest.raises(InputError, match=r"no such judge; .*Did you mean 'judges.yaml'"):
        load_judge(tmp_path / "judge.yml")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=naming("no judge", "judge.yaml", "no run")):
        load_judge(tmp_path / "empty")
    letters.tune(tmp_path / "tuned", max_iterations=1)
    assert not (tmp_path / "tuned" / "judge.yaml").exists()
    with pytest.raises(InputError, match="a run of tune improves no judge"):
        load_judge(tmp_path / "tuned")
    world.align(tmp_path / "run", max_iterations=1)
    for name in ("judge.yaml", "result.json"):
        (tmp_path / "run" / name).unlink()
    with pytest.raises(InputError, match=naming("not finished")):
        load_judge(tmp_path / "run")


@pytest.mark.parametrize("mode", ["migrate", "align"])
def test_the_judge_of_a_run_judges_its_data_as_the_run_did_and_buys_nothing(
    world: Any, tmp_path: Path, mode: str
) -> None:
    done = getattr(world, mode)(tmp_path / "run")
    assert done.record.changed
    judge = askance.load_judge(tmp_path / "run")
    assert judge.prompt.text == done.prompt and judge.checklist == world.checklist
    assert (judge.model, judge.made_by.finish_reason) == ("world/target", done.finish_reason)
    assert {name: each.origin for name, each in judge.origins.items()} == dict.fromkeys(judge.origins, "start")
    assert judge.figures.test.spearman == pytest.approx(done.record.best.test.spearman, abs=1e-4)
    assert judge.figures.validation.low == pytest.approx(done.record.best.validation.low, abs=1e-4)

    asked: list[Request] = []
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    found = judge.evaluate(world.rows, model=world.model("world/target", asked.append))
    assert not asked and found.budget.calls == 0 and found.coverage.share == 1
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")} == before
    same = askance.evaluate(
        world.rows,
        checklist=judge.checklist,
        prompt=judge.prompt,
        model=world.model("world/target"),
        no_cache=True,
        **judge.settings,
    )
    assert found.to_dict()["scores"] == same.to_dict()["scores"]
    fresh = judge.evaluate(world.rows, model=world.model("world/target", asked.append), no_cache=True)
    assert len(asked) == fresh.budget.calls == 2 * len(world.ids)


def test_a_judge_away_from_its_run_asks_again_and_says_the_same(world: Any, tmp_path: Path) -> None:
    world.align(tmp_path / "run")
    shipped = tmp_path / "elsewhere.yaml"
    shipped.write_bytes((tmp_path / "run" / "judge.yaml").read_bytes())
    here, there = load_judge(tmp_path / "run" / "judge.yaml"), load_judge(shipped)
    assert here == there and here.answers is not None and there.answers is None
    model = world.model("world/target")
    assert here.evaluate(world.rows, model=model).means() == there.evaluate(world.rows, model=model).means()


def test_a_run_that_was_finished_before_is_read_from_its_other_files(world: Any, tmp_path: Path) -> None:
    world.align(tmp_path / "run", scores="hard", repeat=2)
    written = load_judge(tmp_path / "run")
    (tmp_path / "run" / "judge.yaml").unlink()
    assert load_judge(tmp_path / "run") == written
    assert written.settings["scores"] == "hard" and written.settings["repeat"] == 2


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """A run as an older askance wrote it, and finished it."""
    folder = tmp_path / "released"
    shutil.copytree(Path(__file__).parent.parent / "data" / "released_run", folder)
    return folder


def test_a_run_that_an_older_askance_finished_has_a_judge_too(released: Path) -> None:
    assert not (released / "judge.yaml").exists()
    judge = load_judge(released)
    assert judge.prompt.text == (released / "prompt.md").read_bytes().decode()
    assert judge.figures is not None and judge.figures.test.n > 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("  model: openai/target\n", "", "config.yaml has no 'model', the model that judges"),
        ("  mode: each\n", "  mode: twice\n", "config.yaml: mode: must be 'auto', 'each' or 'batched'"),
    ],
)
def test_an_older_run_whose_settings_are_damaged_is_refused(released: Path, old: str, new: str, said: str) -> None:
    file = released / "config.yaml"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as error:
        load_judge(released)
    assert str(error.value).startswith(str(released)) and said in str(error.value)


def test_questions_that_a_run_wrote_anew_are_told_from_those_it_began_with(world: Any, tmp_path: Path) -> None:
    done = world.align(tmp_path / "run", max_iterations=1)
    start = world.checklist.questions[0].model_copy(update={"text": "Was it worded otherwise?"})
    began = world.checklist.model_copy(update={"questions": (start, *world.checklist.questions[1:])})
    best = done.record.best.model_copy(update={"checklist": world.checklist})
    record = done.record.model_copy(update={"best": best})
    judge = judge_of_run(record, {"model": "a/b"}, began)
    assert judge.checklist == world.checklist
    assert [each.origin for each in judge.origins.values()] == ["reworded", *["start"] * (len(judge.origins) - 1)]


def test_using_it_otherwise_than_it_was_measured_is_said(world: Any, tmp_path: Path, caplog: Any) -> None:
    world.align(tmp_path / "run", max_iterations=1)
    judge = load_judge(tmp_path / "run")
    with caplog.at_level(logging.WARNING):
        judge.evaluate(world.rows, model=world.model("world/target"), resamples=200)
        assert not caplog.records
        judge.evaluate(world.rows, model=world.model("world/other"), scores="hard")
    (said,) = (record.getMessage() for record in caplog.records)
    assert "model world/other in place of world/target, scores hard in place of soft" in said
    assert says(said, "figures", "measured without that")


@pytest.mark.parametrize("given", [{"p_yes": "hard"}, {"p_yes": "logprob"}, {"scores": "expected"}])
def test_what_of_its_settings_has_no_use_beside_those_given_is_left_out(given: Any, world: Any, caplog: Any) -> None:
    judge = a_judge(calibration=None, settings={"p_yes": "sampled", "samples": 3})
    judge.prepare(world.rows, None, given)
    (name, value), *_ = given.items()
    assert f"{name} {value} in place of" in caplog.text and "samples 1 in place of 3" in caplog.text
    with pytest.raises(InputError, match="samples: "):
        judge.prepare(world.rows, None, {**given, "samples": 4})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("threshold: 0.6\n", "threshold: 0.9\n"),
        ("model: openai/judge\n", "model: openai/other\n"),
        ("Judge well.", "Judge very well."),
        ("text: Is it right?", "text: Is it wholly right?"),
        ("repeat: 2", "repeat: 3"),
    ],
)
def test_the_error_rates_of_a_judge_are_not_those_of_one_that_was_edited(old: str, new: str, caplog: Any) -> None:
    rates = {name: Statistic(0.9, 40, 0.8, 0.95) for name in ("true_positive_rate", "true_negative_rate")}
    on_test = AcceptedOn(spearman=0.7, n=40, low=0.4, high=0.9, **rates)
    judge = a_judge(calibration=None, threshold=0.6, made_by=MadeBy(mode="align", finish_reason="no_gain"))
    text = judge.measured(JudgeFigures(reference="human", validation=on_test, test=on_test)).to_yaml()
    as_kept = parse_judge(text.replace("task: ", "task: Please. "), "j").pass_threshold(None, {})
    assert as_kept is not None and as_kept.fitted_on == "development" and as_kept.true_positive_rate is not None
    assert old in text
    edited = parse_judge(text.replace(old, new, 1), "j")
    found = edited.pass_threshold(None, {})
    assert found is not None and (found.true_positive_rate, found.fitted_on) == (None, None)
    edited.say_what_differs(None, {})
    assert says(caplog.text, "file was edited", "measured without that")


@pytest.mark.parametrize("value", ["rules_of_judge.py:fits", "rules_of_judge_module:fits"])
def test_a_judge_whose_function_was_changed_is_another_one(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    rules = tmp_path / f"{value.partition(':')[0].removesuffix('.py')}.py"
    rules.write_text("def fits(example):\n    return True\n")
    check = ComputedCheck(id="fits", kind="checker", value=value)
    checklist = Checklist(questions=(*CHECKLIST.questions, check))
    figures = a_judge().figures
    assert figures is not None
    kept = a_judge(checklist=checklist, calibration=None).measured(figures)
    kept.save(tmp_path / "judge.yaml")
    assert not load_judge(tmp_path / "judge.yaml").edited
    rules.write_text("def fits(example):\n    return False\n")
    changed = load_judge(tmp_path / "judge.yaml")
    assert changed.edited and changed.hash != kept.figures.of  # type: ignore[union-attr]
    changed.say_what_differs(None, {})
    assert says(caplog.text, "code", "check")
    rules.unlink()
    assert load_judge(tmp_path / "judge.yaml").edited


def test_a_scorers_judge_that_is_written_elsewhere_has_its_figures_still(tmp_path: Path) -> None:
    on_test = AcceptedOn(spearman=0.7, n=40, low=0.4, high=0.9)
    figures = JudgeFigures(reference="human", validation=on_test, test=on_test)
    a_judge(model=THIS_FOLDER, calibration=None).measured(figures).save(tmp_path)
    load_judge(tmp_path).save(tmp_path / "copy.yaml")
    assert not load_judge(tmp_path / "copy.yaml").edited
    file = tmp_path / "judge.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("Judge well", "Judge ill"), encoding="utf-8")
    load_judge(tmp_path).save(tmp_path / "copy.yaml")
    assert load_judge(tmp_path / "copy.yaml").edited


def test_its_threshold_is_of_its_own_scores_only() -> None:
    judge = a_judge(calibration=None, threshold=0.6)
    assert judge.pass_threshold(None, {}) is not None
    assert judge.pass_threshold("openai/other", {}) is None
    assert judge.pass_threshold(None, {"calibration": "platt.json"}) is None, "which moves the scores"


def test_its_calibration_is_applied_to_its_own_model_only(world: Any, tmp_path: Path, caplog: Any) -> None:
    world.align(tmp_path / "run", max_iterations=1)
    plain = load_judge(tmp_path / "run")
    fitted = load_calibration(tmp_path / "run" / "calibration-platt.json")
    KeptJudge(**{**vars(plain), "calibration": fitted}).save(tmp_path / "judge.yaml")
    judge = load_judge(tmp_path / "judge.yaml")
    model = world.model("world/target")
    with_file = plain.evaluate(world.rows, model=model, calibration=str(tmp_path / "run" / "calibration-platt.json"))
    found = judge.evaluate(world.rows, model=model)
    assert found.means() == with_file.means() != plain.evaluate(world.rows, model=model).means()
    with pytest.raises(InputError, match=naming("stop_within")):
        judge.evaluate(world.rows, model=model, stop_within=0.1)
    turned = judge.to_yaml().replace("text: Are the facts right?", "text: Are the facts right?\n      good: no")
    with pytest.raises(InputError, match=naming("judge.yaml", "'calibration'", "yes", "'facts'")):
        parse_judge(turned, "judge.yaml")
    caplog.clear()
    other = judge.evaluate(world.rows, model=world.model("world/other"))
    assert other.coverage.share == 1
    assert says(caplog.text, "calibration", "left out")


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".md", "\ufeffJudge {input}.\r\n{output}\r\n"),
        (".md", "Judge {input} of {company}: {output}"),
        (".md", "{% if context %}{{ context }}{% endif %}{{ output }}\n"),
        (
            ".json",
            '{ "messages": [{"role":"system","content":"\\u00c4 😀"}, {"role":"user", "content":"{{output}}"} ] }\n',
        ),
        (".yaml", "\ufeff# mine\r\n- role: user\r\n  content: >-\r\n    Judge\r\n    {{answer}}\r\n"),
    ],
)
def test_a_judge_whose_prompt_is_no_plain_text_is_read_as_it_was_written(
    suffix: str, text: str, tmp_path: Path
) -> None:
    prompt = parse_prompt(text, suffix, "p", Binding())
    judge = a_judge(prompt=prompt)
    judge.save(tmp_path / "judge.yaml")
    back = load_judge(tmp_path / "judge.yaml")
    assert (back.hash, back.edited) == (judge.hash, False)
    assert (back.prompt.text, back.prompt.file_text) == (prompt.text, text)
    example = askance.Example(id="1", input="i", output="o", metadata={"company": "ACME"})
    assert frame(back.prompt, example) == frame(prompt, example)

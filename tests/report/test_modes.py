"""What the report says of a run of each mode."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from askance.commands.output import show
from askance.commands.show_run import tell_why
from askance.evaluation.scoring import yes_rates
from askance.memory.decision import decide
from askance.memory.result_file import RunRecord
from askance.prompts.errors import InputError
from askance.prompts.formatting import percent
from askance.report.charts import heat_map, histogram
from askance.report.run_candidates import candidates, marked_prompt
from askance.report.run_data import Scored, changes, example_data, read_run
from askance.report.run_figures import has_own_questions, parity, spreads, together
from askance.report.run_lessons import evidence_by_key, lessons
from askance.report.run_page import iterations, tables, who, write_report

from ..said import says


class Text(HTMLParser):
    """The words of a page, without its style and scripts."""

    def __init__(self, file):
        super().__init__()
        self._skip, self._parts = False, []
        self.feed(file.read_text(encoding="utf-8"))
        self.text = " ".join(" ".join(self._parts).split())

    def handle_starttag(self, tag, attrs):
        self._skip = tag in ("style", "script")

    def handle_endtag(self, tag):
        self._skip = False

    def handle_data(self, data):
        if not self._skip:
            self._parts.append(data)


@pytest.fixture
def migrated(make_world, tmp_path):
    make_world(60).migrate(tmp_path / "run", trial=True, prune=True)
    return tmp_path / "run"


@pytest.fixture
def aligned(make_world, tmp_path):
    make_world(60).align(tmp_path / "run", trial=True, prune=True)
    return tmp_path / "run"


@pytest.fixture
def tuned(make_letters, tmp_path):
    make_letters(60, count=True).tune(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def tuned_by_a_judge(make_letters, tmp_path):
    letters = make_letters(60)
    letters.tune(tmp_path / "run", judge=letters.model("letters/judge"), own_questions=True)
    return tmp_path / "run"


@pytest.mark.parametrize("run", ["migrated", "aligned", "tuned", "tuned_by_a_judge"])
def test_every_mode_has_a_report_that_begins_with_the_decision_its_interval_and_the_cost(run, request):
    directory = request.getfixturevalue(run)
    data = read_run(directory)
    text = Text(write_report(directory)).text
    first = text[: text.index("Skip to the prompt") + 2000]
    assert decide(data.result, data.split_size("test")).headline in first
    gain = data.result.gain.test
    assert f"{gain.low:+.2f} to {gain.high:+.2f}".replace("-", "\N{MINUS SIGN}") in first
    assert f"{data.result.calls:,} calls" in first
    assert str(directory.parent) not in (directory / "report.html").read_text(encoding="utf-8")
    for lesson in data.result.lessons:
        assert lesson.text in text


def test_a_generator_is_measured_by_its_mean_score_and_by_no_correlation(tuned):
    data = read_run(tuned)
    text = Text(write_report(tuned)).text
    gain = data.result.gain.test.value
    assert f"is {gain:.2f} higher" in text
    assert "Spearman" not in text
    assert not spreads(data)[0].name.startswith("People")
    assert [each.name for each in spreads(data)] == ["Starting prompt", "New prompt"]
    assert who(data).mine_role == "the generator"
    assert who(data).theirs == "checks.py:check"


def test_each_instruction_stands_with_its_effect_and_says_what_it_states(make_letters, tmp_path, capsys):
    letters = make_letters(60, plain=["greeting", "signature"])
    asked = {"judge": letters.model("letters/judge"), "checklist": letters.checklist}
    done = letters.tune(tmp_path / "run", **asked, max_notes=1)
    data = read_run(tmp_path / "run")
    assert [(each.stated, each.read, len(each.tried)) for each in iterations(data, candidates(data))] == [(2, 0, 1)]
    text = Text(write_report(tmp_path / "run")).text
    assert "each instruction did" in text
    assert "Stated plainly" in text
    words = letters.WANTS["greeting"][1]
    assert f"note was taken: {words}" in text
    before, after = (percent(done.record.instructions[0].test.before), percent(1.0))
    line, wanted = done.record.instructions[0].text, done.record.instructions[0].asked
    effect = f"test {before} {after} {data.split_size('test')} +"
    told = f"{line} {done.record.instructions[0].lesson} {wanted} {effect}"
    assert told in text
    show(done)
    said = " ".join(capsys.readouterr().out.split())
    assert f"on: test; before: {before}; after: {after}; n: {data.split_size('test')}" in said
    tell_why(str(tmp_path / "run"), letters.PLAIN["greeting"][0], as_json=False)
    said = " ".join(capsys.readouterr().out.split())
    assert f'note was taken: "{words}"' in said
    assert "and not read" in said


def test_a_run_without_plain_lines_has_no_column_for_them(migrated):
    assert "Stated plainly" not in Text(write_report(migrated)).text


def test_what_the_generator_wrote_when_it_failed_is_shown_with_the_reason(tuned):
    data = read_run(tuned)
    evidence = evidence_by_key(data)
    assert evidence
    outputs = {each.output for each in evidence.values()}
    assert all(output and output.startswith("This is [e") for output in outputs)
    first = next(each for each in evidence.values() if each.iteration == 1)
    assert first.output == data.kept.outputs[0, first.example]
    assert (
        f"it has no {first.question}" in first.reference.explanation or "number of words" in first.reference.explanation
    )
    later = [each for each in evidence.values() if each.iteration > 1]
    assert any(each.output != data.kept.outputs[0, each.example] for each in later), "the best version so far wrote it"


def test_lessons_that_no_prompt_can_carry_are_listed_with_their_counts(tuned):
    data = read_run(tuned)
    beyond = [each for each in lessons(data, candidates(data)) if each.status == "beyond the prompt"]
    assert [each.found.text for each in beyond] == ["Count the words and stop at the number that is wanted."]
    text = Text(write_report(tuned)).text
    assert "cannot fix these" in text
    assert f"{beyond[0].found.support} failures" in text
    assert "it needs counting" in text


def test_a_lesson_that_failed_its_trial_says_how_it_went(migrated):
    data = read_run(migrated)
    trials = [event for event in data.of("trial") if not event["result"]["passed"]]
    assert trials, "the world has a harmful rule"
    failed = [each for each in lessons(data, candidates(data)) if each.status == "failed its trial"]
    assert {each.found.id for each in failed} <= {name for event in trials for name in event["lessons"]}
    assert failed
    assert failed[0].trial is not None
    assert re.search(
        r"in its trial \d of \d disagreements fixed, \d of \d controls regressed", Text(write_report(migrated)).text
    )


def test_questions_of_a_migration_are_held_against_the_source_and_of_an_alignment_against_people(make_world, tmp_path):
    world = make_world(60)
    world.migrate(tmp_path / "a", trial=True)
    world.align(tmp_path / "b", trial=True)
    for name, split in (("a", "development"), ("b", "test")):
        data = read_run(tmp_path / name)
        found = parity(data)
        assert found.split == split
        assert [row.name for row in found.rows] == ["facts", "words"]
        for row in found.rows:
            of_it = [each for each in data.kept.of(data.kept.best, split) if each.question == row.name]
            assert row.after == pytest.approx(sum(each.p_yes for each in of_it) / len(of_it))
            pairs = [data.kept.wanted[each.example, each.question] for each in of_it]
            assert row.wanted == pytest.approx(sum(pairs) / len(pairs))
            assert row.yes_before == yes_rates(data.kept.of(0, "test"))[row.name]
            assert row.yes_before == data.result.drift["baseline"].yes_rates[row.name]


def test_questions_that_each_example_has_of_its_own_are_counted_by_dimension(tuned_by_a_judge):
    data = read_run(tuned_by_a_judge)
    assert has_own_questions(data)
    assert together(data) is None
    assert [row.name for row in parity(data).rows] == ["instructions"]
    assert "has questions of" in Text(write_report(tuned_by_a_judge)).text


def test_calibration_and_bias_stand_beside_the_new_prompt(aligned):
    data = read_run(aligned)
    found = tables(data)
    assert [(each["prompt"], each["verdicts"].split()[0]) for each in found["calibration"].rows] == [
        (side, reading) for side in ("start", "accepted") for reading in ("as", "thresholds", "Platt")
    ]
    start = data.result.drift["baseline"].mean_errors["quality"]
    assert {row["dimension"]: row["at the start"].value for row in found["bias"].rows}["quality"] == start
    text = Text(write_report(aligned)).text
    assert "calibration alone would" in text
    assert "Bias" in text


def test_people_gave_scores_and_no_answers(aligned):
    data = read_run(aligned)
    one = next(iter(evidence_by_key(data).values()))
    text = Text(write_report(aligned)).text
    assert f"People {one.reference.p_yes:.2f} mean score, from" in text
    assert "the same answer" not in text


def test_a_calibration_that_does_as_well_as_the_new_prompt_is_a_caution(aligned):
    result = json.loads((aligned / "result.json").read_text(encoding="utf-8"))
    assert not any("Calibration alone" in each for each in decide(RunRecord.model_validate(result)).cautions)
    result["calibration"]["baseline"]["platt"]["spearman"] = result["best"]["test"]["spearman"]
    cautions = decide(RunRecord.model_validate(result)).cautions
    assert any(says(each, "Calibration alone", "as well", "Platt") for each in cautions)


def test_a_run_that_only_calibrates_says_what_that_is_worth(make_world, tmp_path):
    make_world(60).align(tmp_path / "run", calibrate=True)
    text = Text(write_report(tmp_path / "run")).text
    assert "prompt is unchanged" in text and "only a calibration" in text
    assert "for each question (95 % interval" in text


def test_examples_that_failed_before_validation_are_not_said_to_be_no_candidate(make_world, tmp_path):
    make_world(60).align(tmp_path / "run", calibrate=True)
    file = tmp_path / "run" / "result.json"
    result = json.loads(file.read_text(encoding="utf-8"))
    tried = {"mode": "fixed", "name": "4 fixed examples", "sources": [], "accepted": False, "reason": "no gain"}
    file.write_text(json.dumps(result | {"examples": [tried]}), encoding="utf-8")
    text = Text(write_report(tmp_path / "run")).text
    assert "no candidate came" in text
    assert "no candidate was" not in text


def test_a_candidate_that_was_dropped_early_is_shown_as_such(migrated):
    file = migrated / "result.json"
    result = json.loads(file.read_text(encoding="utf-8"))
    row = result["accepted_edits"][-1]
    result["rejected_edits"].append(row | {"judged": 9, "reason": "clearly worse on the first 9 validation examples"})
    result["accepted_edits"].pop()
    file.write_text(json.dumps(result), encoding="utf-8")
    journal = migrated / "journal.jsonl"
    events = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    last = [event for event in events if event["event"] == "decision" and event["accepted"]][-1]
    last["accepted"] = False
    journal.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    data = read_run(migrated)
    dropped = [each for each in candidates(data) if each.dropped]
    assert [each.judged for each in dropped] == [9]
    assert "dropped early" in Text(write_report(migrated)).text


def test_an_edit_that_was_taken_out_again_is_not_marked_and_says_so(migrated):
    result = json.loads((migrated / "result.json").read_text(encoding="utf-8"))
    edits = [edit for row in result["accepted_edits"] for edit in row["edits"]]
    gone = edits[0]
    result["best"]["prompt"] = result["best"]["prompt"].replace(gone["new"].removeprefix(gone["old"]), "")
    result["pruned_edits"] = [{"edit": gone, "removed": True, "reason": "validation is no worse", "gain": None}]
    (migrated / "result.json").write_text(json.dumps(result), encoding="utf-8")
    pieces = marked_prompt(RunRecord.model_validate(result))
    assert "".join(each.text for each in pieces if each.kind != "removed") == result["best"]["prompt"]
    assert {each.edit for each in pieces if each.kind == "added"} == set(range(2, len(edits) + 1))
    data = read_run(migrated)
    views = lessons(data, candidates(data))
    assert {each.status for each in views if each.found.id in gone["lessons"]} == {"retired"}
    assert "Taken out again" in Text(write_report(migrated)).text


def test_examples_that_got_worse_are_shown_with_the_answers_that_turned(aligned):
    scores = aligned / "verdicts" / "scores.jsonl"
    rows = [json.loads(line) for line in scores.read_text(encoding="utf-8").splitlines()]
    worst = rows[0]["example"]
    for row in rows:
        if row["example"] == worst:
            row |= {"wanted": 0.9, "score": 0.1 if row["version"] else 0.8}
    scores.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    data = read_run(aligned)
    found = changes(data)
    assert found.worse[0].scored.example == worst
    assert found.worse[0].scored.better == pytest.approx(-0.7)
    before, after = ({(e.example, e.question): e.answer for e in data.kept.of(v, "test")} for v in (0, data.kept.best))
    assert found.to_no == sum(answer and not after[pair] for pair, answer in before.items())
    assert found.to_yes == sum(not answer and after[pair] for pair, answer in before.items())
    text = Text(write_report(aligned)).text
    assert f"{worst} \N{MINUS SIGN}0.70" in text


def test_a_score_that_moved_by_one_answer_of_twenty_has_moved_wherever_it_stood(aligned):
    data = read_run(aligned)
    scored = [Scored(str(count), count / 20, (count - 1) / 20, 1.0) for count in range(1, 21)]
    found = changes(replace(data, kept=replace(data.kept, scored=scored)))
    assert (found.nearer, found.same, found.further) == (0, 0, 20)
    scored = [Scored(str(count), count / 20, (count + 1) / 20, None) for count in range(20)]
    found = changes(replace(data, kept=replace(data.kept, scored=scored)))
    assert (found.nearer, found.same, found.further) == (20, 0, 0)


def test_the_data_of_the_examples_holds_every_verdict_and_cannot_leave_its_element(aligned):
    from base64 import b64decode

    data = read_run(aligned)
    text = str(example_data(data))
    assert "<" not in text
    rows = json.loads(text)
    assert rows["ids"] == [each.example for each in data.kept.scored]
    first = b64decode(rows["first"])
    assert len(first) == len(data.kept.of(0, "test"))
    by_pair = {(each.example, each.question): each.p_yes for each in data.kept.of(0, "test")}
    assert first[0] == round(200 * by_pair[rows["ids"][0], rows["questions"][0][1]])


@pytest.mark.parametrize("good", ["yes", "no"])
def test_what_is_wanted_of_a_generator_is_said_as_the_questions_are_meant(make_letters, tmp_path, good):
    letters = make_letters()
    greeting, signature = letters.checklist.questions
    asked = (greeting.model_copy(update={"good": good}), signature)
    checklist = letters.checklist.model_copy(update={"questions": asked})
    letters.tune(tmp_path / "run", judge=letters.model("letters/judge"), checklist=checklist, max_iterations=1)
    text = Text(write_report(tmp_path / "run")).text
    assert ("is a fault. The yes rate" if good == "no" else "1 is wanted. The yes rate") in text


def test_an_output_of_the_data_does_not_stand_beside_what_a_generator_wrote(make_letters, tmp_path):
    class Answered(make_letters):
        @property
        def rows(self):
            return [row | {"output": "An earlier letter."} for row in super().rows]

    Answered().tune(tmp_path / "run")
    rows = json.loads(str(example_data(read_run(tmp_path / "run"))))
    assert {tuple(label for label, _ in texts) for texts in rows["texts"].values()} == {
        ("Input", "Output before", "Output after")
    }


def test_a_run_that_kept_no_verdicts_still_has_its_report(aligned):
    shutil.rmtree(aligned / "verdicts")
    text = Text(write_report(aligned)).text
    assert "Test examples" not in text
    assert "calibration alone would" in text


def test_a_damaged_file_of_kept_verdicts_is_named(aligned):
    (aligned / "verdicts" / "scores.jsonl").write_text('{"example": "e1"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"scores\.jsonl: a row without 'version'"):
        write_report(aligned)


@pytest.mark.parametrize(
    ("scored", "better"),
    [
        (Scored("e", 0.2, 0.6, 0.5), 0.2),
        (Scored("e", 0.5, 0.9, 0.5), -0.4),
        (Scored("e", 0.2, 0.6, None), 0.4),
        (Scored("e", None, 0.6, 0.5), None),
        (Scored("e", 0.2, None, None), None),
    ],
)
def test_better_is_nearer_to_the_wanted_score_or_higher_where_there_is_none(scored, better):
    assert scored.better == (None if better is None else pytest.approx(better))


def test_a_histogram_counts_every_score_once_the_highest_too():
    drawn = histogram([0.0, 0.05, 0.1, 0.99, 1.0], "after", 2)
    assert re.findall(r"<title>0\.0 to 0\.1: (\d+)", drawn) == ["2"]
    assert re.findall(r"<title>0\.9 to 1\.0: (\d+)", drawn) == ["2"]
    on_five_points = [(1 + 4 * tenth / 10 - 1) / 4 for tenth in range(10)]
    assert re.findall(r"<title>.*?: (\d+)", histogram(on_five_points, "after", 1)) == ["1"] * 10


def test_the_heat_map_tells_an_undefined_phi_from_one_near_zero():
    import numpy as np

    from askance.stats.phi import phi_matrix

    answers = np.array([[1, 1, 1], [0, 0, 1], [1, 1, 1], [0, 1, 1]], dtype=float)
    drawn = heat_map(phi_matrix(["a", "<b>", "c"], answers), [1, 2, 3])
    assert drawn.count('class="cell none"') == 5
    assert "answered alike every" in drawn
    assert "<b>" not in drawn

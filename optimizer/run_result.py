"""The result of a run for people: its prompt, and one View of it for the terminal, notebooks and the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from ..evaluation.pass_fail import NAMES, confusion_text, form_of
from ..evaluation.raters.agreement_view import (
    CAPTIONS,
    alpha_rows,
    case_rows,
    cases_lines,
    ceiling_lines,
    ceiling_of_all,
    combined_lines,
    labels_lines,
)
from ..evaluation.raters.comment_coverage import coverage_said
from ..evaluation.raters.steps import STEP_FIGURES, form_of_step
from ..evaluation.view import Shown, View
from ..memory.decision import decide
from ..memory.records import CriterionRecord, ExploitWay, LessonRecord, MeasureRecord, ParityRecord
from ..memory.result_file import CROSSED, RunRecord
from ..memory.run_directory import JUDGE_FILE, prompt_file
from ..models.writing import WRITING_FILE
from ..prompts.checklist import SEEN
from ..prompts.errors import CoverageError, as_typed
from ..prompts.formatting import MOST_LISTED, Figure, count, coverage_text, money, names_text, number_text, percent
from ..prompts.human_feedback import one_line
from ..prompts.lessons import Edit
from ..prompts.text import shorten
from ..stats.differences import Difference

FOUND = {
    "memory": "the lesson memory",
    "contrast": "what rejected outputs do and accepted ones do not",
    "measure": "computed, without a call",
}
"""Words for the origin of a question that comes from no comment of this run."""
READINGS = {"uncalibrated": "as they are", "platt": "Platt"}
"""Words for the ways to read the same verdicts, if they differ from the name in the file."""
MOST_QUOTED = 100
"""Most characters of a quoted comment, output or reason."""


@dataclass(frozen=True, repr=False)
class RunResult(Shown):
    """The result of a run: the prompt, and everything in ``result.json``."""

    directory: Path
    record: RunRecord

    @property
    def prompt(self) -> str:
        """The accepted prompt, or the starting prompt if nothing was accepted."""
        return self.record.best.prompt

    @cached_property
    def result(self) -> dict[str, Any]:
        """The content of ``result.json``."""
        return self.record.to_dict()

    @property
    def finish_reason(self) -> str:
        """The reason why the run ended."""
        return self.record.finish_reason

    def require_coverage(self) -> RunResult:
        """Return this result if its coverage reaches ``min_coverage`` and is above 0; else raise CoverageError."""
        seen, least = self.record.coverage, self.record.min_coverage
        if not seen:
            raise CoverageError(
                "Not one verdict is there, so nothing was learned and nothing measured. Mend what failed and go on: "
                f"askance resume {as_typed(self.directory)}"
            )
        if seen < least:
            raise CoverageError(
                f"Only {coverage_text(seen)} of the verdicts are there, less than --min-coverage {least:.1%}. The "
                f"result so far is in {self.directory}; resuming the run asks for the missing ones again."
            )
        return self

    def _view(self) -> View:
        return run_view(self.record, self.directory)


EXPLOITED: dict[ExploitWay, str] = {
    "padded": "padded",
    "flattered": "full of praise",
    "stuffed": "stuffed with the questions' words",
    "repeated": "followed by its input",
}
"""Words for the ways in which the probe changes an output."""

RowMaker = Callable[[RunRecord], Iterable[dict[str, Any]]]


class _Table(NamedTuple):
    """A table about a run, for people."""

    caption: str
    rows: RowMaker
    listed: bool = False
    """Whether the cells are sentences, which a terminal prints row by row."""
    notes: Sequence[str] = ()


def run_view(result: RunRecord, directory: Path) -> View:
    """Return the view of a run that the terminal, a notebook and the page show. A line added here appears in all."""
    people = _for_people(result)
    rows = {name: each.rows for name, each in people.items()}
    gains = [_gain(result.yardstick, each.split, each.gain) for each in result.splits if each.gain]
    counted = f"{count(len(result.accepted_edits), 'candidate')} accepted, {len(result.rejected_edits)} rejected"
    return View(
        f"{result.mode} in {directory}",
        [*_sentences(result, counted, gains), *_files(result, directory)],
        {name: partial(_listed, make, result) for name, make in (FRAMES | rows).items()},
        tuple(people),
        f"{gains[-1] if gains else 'Nothing was accepted'}; {counted}.",
        captions={name: each.caption for name, each in people.items()},
        most={"contradictions": 5, "not_learned": 5, "shown_examples": 6},
        notes={name: each.notes for name, each in people.items()},
        listed=[name for name, each in people.items() if each.listed],
    )


def _listed(make: RowMaker, result: RunRecord) -> list[dict[str, Any]]:
    return list(make(result))


def _for_people(result: RunRecord) -> dict[str, _Table]:
    """Return the tables that people see, by name, in order. A table without rows is not shown."""
    learned = count(len(result.learned), "question")
    worth = f"Worth is what the judge gains over itself without the question ({result.yardstick})."
    shown = result.shown.name if result.shown else "no examples"
    start_title = "The starting judge alone" if result.thing == "judge" else "Without an edit"
    read = ["The accepted judge is calibrated already: it is read against accepted outputs."]
    paid = (
        [f"tune leaves out {', '.join(names)}, for repeating the input pays"] if (names := result.exploitable) else []
    )
    return {
        "learned": _Table(f"The judge has learned {learned} from comments", _learned, True, [worth]),
        "not_learned": _Table("Proposed, and not learned", _not_learned, True),
        "shown_examples": _Table(f"The judge is now shown {shown} that people judged", _shown_examples, True),
        "pass_fail": _Table(
            _pass_fail_caption(result), _pass_fail, notes=[*_confusions(result), *labels_lines(result.rater_agreement)]
        ),
        "steps": _Table("Steps of people's ratings; the thresholds between them are from development", _steps),
        "figures": _Table(f"{_measured(result)}, 95% intervals", _figures, notes=[CROSSED] * result.crossed),
        "rater_agreement": _Table(
            CAPTIONS["rater_agreement"], lambda result: map(dict, alpha_rows(result.rater_agreement))
        ),
        "contradictions": _Table(
            "Outputs to talk about", lambda result: map(dict, case_rows(result.rater_agreement)), True
        ),
        "exploits": _Table(
            "Outputs that were changed without being better: what they gain from the judge", _exploits, notes=paid
        ),
        "candidates": _Table("Candidates at the acceptance test", _candidates, True),
        "changes": _Table("Accepted edits of the prompt", _changes, True),
        "questions_changed": _Table("Questions that are asked otherwise", _questions_changed, True),
        "instructions": _Table("Outputs that pass what each accepted instruction is about", _instructions, True),
        **{
            f"same_verdicts_{split}": _Table(
                f"The same verdicts as the source, on {split}; share, kappa and rank correlation of P(good answer)",
                partial(_same_verdicts, split=split),
            )
            for split in ("test", "validation")
        },
        "lessons_drawn": _Table("Lessons drawn from the disagreements", partial(_lessons, promptable=True), True),
        "beyond_the_prompt": _Table("The prompt cannot fix these", partial(_lessons, promptable=False), True),
        "calibration": _Table(
            f"{start_title}, calibrated on the development examples; measured on test",
            _calibration,
            notes=read if result.best.read_by is not None else [],
        ),
    }


def _sentences(result: RunRecord, counted: str, gains: list[str]) -> Iterator[str]:
    """Yield sentences on the result of the run, what was not accepted and why, and the cost."""
    yield from (each.sentence for each in result.revised_questions)
    yield from _learning(result)
    yield from _measures_said(result)
    if result.comment_coverage.get("value") is not None:
        yield coverage_said(result.comment_coverage)
    yield from _exploits_said(result)
    yield from (f"Not shown: {left.name}: {left.reason}" for left in result.not_shown)
    if result.asked_both_ways:
        yield result.asked_both_ways.sentence
    yield f"It ended because {result.why_it_ended}."
    if result.finish_reason != "calibrated" and not result.changed:
        yield f"Nothing was accepted: {result.why_unchanged}. The {result.thing} stays as it was."
    elif result.changed and result.same_prompt:
        new = ["the questions and how they are read"] if result.best.checklist else []
        new += ["the examples that it is shown"] if result.shown else []
        new += ["the settings that it writes with"] if result.best.writing else []
        yield f"The prompt stays as it was; {' and '.join(new)} are new."
    if result.best.writing is not None:
        yield f"What goes with the prompt ({WRITING_FILE}): {result.best.writing.said}."
    yield result.decision_reason or decide(result).sentence
    if result.certificate is not None:
        yield f"In place of the source: {result.certificate.reason}"
    yield f"{counted}; {count(len(result.lessons), 'lesson')}."
    yield from gains
    yield from people_lines(result)
    yield f"{result.spending}; coverage {coverage_text(result.coverage)}"


def people_lines(result: RunRecord) -> Iterator[str]:
    """Yield sentences on the agreement of several raters, the ceiling for a judge, and how labels were combined."""
    for lines in (ceiling_lines, cases_lines, combined_lines):
        yield from lines(result.rater_agreement)


def _files(result: RunRecord, directory: Path) -> Iterator[str]:
    """Yield the paths of the report, the prompt and the judge, as far as they are worth opening."""
    report, judge = directory / "report.html", directory / JUDGE_FILE
    if report.is_file():
        yield f"The whole story: {report}"
    if not (judge.is_file() and (result.best.examples or (result.changed and result.same_prompt))):
        several = directory / "program"
        yield f"Prompts: {several}" if several.is_dir() else f"Prompt: {prompt_file(directory)}"
    if judge.is_file():
        yield f"Judge: {judge}, for askance evaluate DATA --judge {as_typed(directory)}"


def _learning(result: RunRecord) -> list[str]:
    """Return a sentence about the questions from comments; none if the run was not to learn questions."""
    learned = [each for each in result.learned if not each.is_measure]
    proposed = sum(not each.is_measure for each in result.questions)
    if result.shown is not None and not learned:
        return [f"The judge is now shown {result.shown.name} that people judged: what to keep is the judge."]
    if learned:
        same = " Its prompt is what it was: what to keep is the judge." if result.same_prompt else ""
        listed = names_text([each.id for each in learned], MOST_LISTED)
        return [
            f"The judge has learned {count(len(learned), 'question')} from comments, of {proposed}: {listed}.{same}"
        ]
    if proposed:
        return [f"No question was learned from comments: of {count(proposed, 'question')} none joined the judge."]
    return [f"No question was learned, as {result.why_no_questions}."] if result.why_no_questions else []


def _measures_said(result: RunRecord) -> list[str]:
    """Return a sentence on the measures that joined, with the judge's figure on test with and without them."""
    joined = [each.id for each in result.learned if each.is_measure]
    alone, whole = result.best.without_measures, result.best.test
    figures = ""
    if alone is not None and whole is not None:
        whole_text, alone_text = (number_text(each.value, each.low, each.high) for each in (whole.shown, alone.shown))
        figures = f" On test the judge has {whole_text} with its measures, {alone_text} with its questions alone."
        gain, by_questions = result.gain.test, result.gain.without_measures
        if gain is not None and by_questions is not None:
            both = Figure.of(gain, "+.3f"), Figure.of(by_questions, "+.3f")
            figures += f" Its gain over the start is {both[0]}, and {both[1]} with its questions alone."
    if not joined:
        return [figures.strip()] if figures else []
    return [
        f"{count(len(joined), 'measure')} joined, computed without a call: {names_text(joined, MOST_LISTED)}.{figures}"
    ]


def _exploits_said(result: RunRecord) -> Iterator[str]:
    """Yield a sentence on the change of outputs that the judge rewards most although it makes them no better."""
    known = [each for each in result.exploits if each.gain.value is not None]
    most = max(known, key=lambda each: each.gain.value or 0.0, default=None)
    if most is not None and round(most.gain.value or 0.0, 3) <= 0:
        yield "Outputs that were changed without being better gain nothing from the judge."
    elif most is not None:
        left = f" tune leaves out {', '.join(result.exploitable)}." if result.exploitable else ""
        gain = Figure.of(most.gain, "+.3f")
        yield f"An output that is {EXPLOITED[most.way]} gains {gain} from the judge without being better.{left}"


def _exploits(result: RunRecord) -> Iterator[dict[str, Any]]:
    """Yield, for each way of changing outputs, the gain from the judge and the criterion that pays most."""
    for each in result.exploits:
        name, paid = max(each.criteria.items(), key=lambda one: one[1], default=("", 0.0))
        most = f"{name} {Figure(paid, form='+.2f')}" if paid > 0 else "none"
        yield {"output": EXPLOITED[each.way], "n": each.gain.n, "gain": Figure.of(each.gain, "+.3f"), "pays most": most}


def _measured(result: RunRecord) -> str:
    return result.yardstick.capitalize() if result.mode == "tune" else f"{result.yardstick} with {result.whose}"


def _gain(yardstick: str, split: str, gain: Difference) -> str:
    said = number_text(gain.value, gain.low, gain.high)
    return f"Gain on {split} ({yardstick}): {said}{f' ({gain.reason})' if gain.reason else ''}"


# --- tables for people --------------------------------------------------------------------------------------------


def quoted(text: str) -> str:
    """Return a text in one line, shortened and in quotation marks."""
    return f"“{shorten(one_line(text), MOST_QUOTED)}”"


def _learned(result: RunRecord) -> Iterator[dict[str, Any]]:
    for question in result.learned:
        split, worth = question.worth.last or (None, None)
        yield {
            "question": f"{question.criterion} [{question.id}]",
            "worth": "not measured" if worth is None else Figure.of(worth, "+.3f"),
            "on": worth and f"{split}, n = {worth.n}",
            "from": _origin(question),
        }


def _origin(each: CriterionRecord) -> str:
    """Return the origin of a question for people: its comments, the first one quoted, or how else it was found."""
    said = [quoted(text) for text in each.comments[:1]]
    said += [count(len(each.comments) - 1, "more comment")] if each.comments[1:] else []
    text = " and ".join(said)
    if each.sources:
        on = f"{count(len(each.sources), 'example')} ({names_text(each.sources)})"
        text = f"{text}, on {on}" if text else on
    else:
        text = "; ".join(filter(None, [FOUND.get(each.origin), text]))
    seen = SEEN.get(each.sees)
    seen = f"asked {seen}" if seen and each.sees != "quote" else seen
    return "; ".join(filter(None, [text, seen]))


def _not_learned(result: RunRecord) -> Iterator[dict[str, Any]]:
    for question in result.not_learned:
        was_tested = question.was_tried and result.rejected_edits
        reason = "it went to the acceptance test, see the candidates" if was_tested else question.reason
        effect = None if question.effect is None else Figure(question.effect, form="+.2f")
        yield {
            "question": f"{question.criterion} [{question.id}]",
            "reason": reason,
            "effect": effect,
            "from": _origin(question),
        }


def _shown_examples(result: RunRecord) -> Iterator[dict[str, Any]]:
    for each in result.shown.cases if result.shown else ():
        verdict = ", ".join(dict.fromkeys(each.verdicts.values()))
        reason = quoted(each.reason) if each.reason else None
        yield {"output": f"{quoted(each.output)} [{each.id}]", "people": verdict, "reason": reason}


def _pass_fail_caption(result: RunRecord) -> str:
    split, sides = result.pass_fail or ("", [])
    n = f", n = {sides[0].measured.n}" if sides else ""
    return f"Pass or fail, on {split}{n}, 95% intervals; the threshold is from development"


def _confusions(result: RunRecord) -> Iterator[str]:
    for each in result.pass_fail[1] if result.pass_fail else ():
        why = f"; the threshold is not fitted: {each.threshold.reason}" if each.threshold.reason else ""
        yield f"{each.name}: {confusion_text(each.measured.confusion)}{why}"


def _pass_fail(result: RunRecord) -> Iterator[dict[str, Any]]:
    """Yield agreement, error rates, kappa and the threshold where people's labels are pass or fail."""
    if result.pass_fail is None:
        return
    sides = result.pass_fail[1]
    for name, label in NAMES.items():
        cells = {each.name: Figure.of(getattr(each.measured, name), form_of(name)) for each in sides}
        yield {"figure": label, **cells, "n": getattr(sides[0].measured, name).n}
    yield {"figure": "threshold"} | {each.name: Figure(each.threshold.value, form=".3g") for each in sides}


def _steps(result: RunRecord) -> Iterator[dict[str, Any]]:
    """Yield the agreement of the judge's steps with people's, for start and accepted version, on test or validation."""
    sides = {"at the start": result.baseline.steps, **({"accepted": result.best.steps} if result.changed else {})}
    splits = [each for each in ("test", "validation") if all(side and each in side for side in sides.values())]
    for split, (name, label) in product(splits[:1], STEP_FIGURES.items()):
        rows = {side: row[split][name] for side, row in sides.items() if row}
        cells = {side: Figure.of(row, form_of_step(name)) for side, row in rows.items()}
        yield {"figure": f"{label}, on {split}", **cells, "n": rows["at the start"]["n"]}


def _figures(result: RunRecord) -> Iterator[dict[str, Any]]:
    """Yield the figures of the start and of the accepted version on each split, and their difference."""
    same = None if result.changed else f"the same {result.thing}"
    people = result.rater_agreement if result.yardstick == "Spearman" else {}
    for split, before, after, gain in result.splits:
        row = {"split": split, "n": before and before.n, "at the start": _measure(before), "accepted": _measure(after)}
        yield row | {"difference": Figure.of(gain, "+.3f") if gain else same} | ceiling_of_all(people)


def _measure(row: MeasureRecord | None) -> Figure | str:
    return "not looked at" if row is None else Figure.of(row.shown)


def _candidates(result: RunRecord) -> Iterator[dict[str, Any]]:
    """Yield every candidate of the acceptance test with the reason of the decision."""
    for tried in result.accepted_edits:
        which = "" if tried.edits else f"{result.name_of(tried)}: "
        yield {"candidate": f"Accepted: {which}{tried.reason}"}
    for tried in result.rejected_edits:
        yield {"candidate": f"Rejected: {result.name_of(tried)}: {tried.reason}"}


def _changes(result: RunRecord) -> Iterator[dict[str, Any]]:
    """Yield every accepted edit with its lessons, and whether pruning took it out again."""
    lessons = {lesson.id: lesson for lesson in result.lessons}
    pruned = {each.edit: each for each in result.pruned_edits}
    for edit in (edit for tried in result.accepted_edits for edit in tried.edits):
        after = pruned.get(edit)
        verb = "taken out again" if after and after.removed else "kept"
        yield {
            "lessons": ", ".join(edit.lessons),
            **_old_and_new(edit),
            "because": " ".join(_behind(lessons[name]) for name in edit.lessons),
            "pruning": after and f"{verb}: {after.reason}",
        }


def _old_and_new(edit: Edit) -> dict[str, str | None]:
    """Return the old and the new text of an edit. For an addition, only the added text."""
    if edit.old in edit.new:
        return {"-": None, "+": edit.new.replace(edit.old, "").strip()}
    return {"-": edit.old, "+": edit.new if edit.new.strip() else None}


def _behind(lesson: LessonRecord) -> str:
    seen = (
        f"{count(lesson.support, 'disagreement')}: {', '.join(lesson.evidence)}" if lesson.evidence else "the memory."
    )
    return f"lesson {lesson.id}: {lesson.text} From {seen}"


def _questions_changed(result: RunRecord) -> Iterator[dict[str, Any]]:
    for each in result.reworded:
        assert each.after is not None, "an accepted wording is one"
        head = f"Worded anew ({each.question}): {each.reason}"
        yield {"question": head, "-": each.before.criterion, "+": each.after.criterion}
    for changed in result.changed_questions:
        if changed.id not in {each.question for each in result.reworded}:
            head = f"Asked {'otherwise' if changed.new else 'no more'} ({changed.id})"
            yield {"question": head, "-": changed.old, "+": changed.new or None}


def _instructions(result: RunRecord) -> Iterator[dict[str, Any]]:
    """Yield, for each accepted instruction, the share of outputs that pass its requirement, before and after."""
    for instruction in result.instructions:
        for split, rates in (("test", instruction.test), ("validation", instruction.validation)):
            row: dict[str, Any] = {
                "instruction": instruction.text,
                "lesson": instruction.lesson,
                "requirement": instruction.asked,
                "on": split,
            }
            if rates is None:
                yield row | {"before": "not judged", "after": "not judged", "n": 0, "difference": None}
                continue
            gain = rates.gain and Figure.of(rates.gain, "+.2f")
            yield row | {
                "before": percent(rates.before),
                "after": percent(rates.after),
                "n": rates.n,
                "difference": gain,
            }


def _same_verdicts(result: RunRecord, split: str) -> Iterator[dict[str, Any]]:
    """Yield the agreement of the judge's verdicts with the source's, over all questions and by question."""
    sides = result.parity.get(split, {})
    if not {"baseline", "best"} <= sides.keys():
        return
    before, after = sides["baseline"], sides["best"]
    pairs: dict[str, tuple[ParityRecord, ParityRecord]] = {"all questions": (before, after)}
    pairs |= {
        name: (start_parity, after.questions[name])
        for name, start_parity in before.questions.items()
        if name in after.questions
    }
    for name, (start_parity, best_parity) in pairs.items():
        yield {
            "question": name,
            "n": start_parity.same.n,
            "at the start": Figure.of(start_parity.same),
            "accepted": Figure.of(best_parity.same),
            "kappa at the start": Figure.of(start_parity.kappa),
            "kappa accepted": Figure.of(best_parity.kappa),
            "rank correlation at the start": Figure.of(start_parity.spearman),
            "rank correlation accepted": Figure.of(best_parity.spearman),
            **(
                {}
                if best_parity.score_difference is None
                else {"score - source's": Figure.of(best_parity.score_difference, "+.2f")}
            ),
        }


def _lessons(result: RunRecord, promptable: bool) -> Iterator[dict[str, Any]]:
    """Yield the lessons with their status: those that a prompt can carry, or those that no prompt can."""
    for lesson in result.lessons:
        if lesson.promptable is promptable:
            yield {
                "lesson": f"{lesson.text} [{lesson.id}]",
                "status": lesson.status if promptable else lesson.kind_reason,
                "support": count(lesson.support, "disagreement") if lesson.support else "from the memory",
                "reason": lesson.reason if lesson.is_closed else None,
            }


def _calibration(result: RunRecord) -> Iterator[dict[str, Any]]:
    """Yield the figures of thresholds and of Platt scaling alone, on the test examples."""
    sides = {"start": result.calibration["baseline"]} if result.calibration else {}
    if (best := result.calibration.get("best")) and best != sides["start"]:
        sides["accepted"] = best
    for name, side in sides.items():
        for reading, row in side.items():
            yield {
                result.thing: name,
                "verdicts": READINGS.get(reading, reading),
                "Spearman": _measure(row),
                "change": row.gain and Figure.of(row.gain, "+.3f"),
                "MAE": Figure(row.errors.mean_absolute),
                "bias": Figure(row.errors.drift, form="+.3f"),
            }


# --- tables for data frames ---------------------------------------------------------------------------------------


def _scores(result: RunRecord) -> Iterator[dict[str, Any]]:
    names = ("spearman", "kendall", "pearson", "mean", "n", "low", "high", "reason")
    for version in ("at the start", "accepted"):
        for each in result.splits:
            whole = each.before if version == "at the start" else each.after
            for dimension, row in {"overall": whole, **whole.dimensions}.items() if whole is not None else ():
                about = {"version": version, "split": each.split, "dimension": dimension}
                yield about | {name: getattr(row, name) for name in names}


def _edits(result: RunRecord) -> Iterator[dict[str, Any]]:
    for accepted, rows in ((True, result.accepted_edits), (False, result.rejected_edits)):
        for row in rows:
            about = {"accepted": accepted, "iteration": row.iteration, "lessons": row.lessons}
            yield about | _ends("gain", row.gain) | {"judged": row.judged, "reason": row.reason}


def _ends(name: str, gain: Difference | None) -> dict[str, Any]:
    return {name: gain and gain.value, "low": gain and gain.low, "high": gain and gain.high}


def _lesson_fields(result: RunRecord) -> Iterator[dict[str, Any]]:
    named = {"id", "text", "direction", "dimension", "status", "reason"}
    for each in result.lessons:
        yield each.model_dump(include=named) | {"support": each.support}


def _questions(result: RunRecord) -> Iterator[dict[str, Any]]:
    """Yield every proposed question. ``worth`` and its interval are measured on ``split``: test, or else validation."""
    for row in result.questions:
        split, worth = row.worth.last or (None, None)
        about = {"id": row.id, "text": row.text, "good": row.good, "joined": row.joined}
        yield {
            **about,
            **_ends("worth", worth),
            "split": split,
            "n": worth and worth.n,
            "effect": row.effect,
            "comments": list(row.comments),
            "examples": list(row.sources),
            "reason": row.reason,
        }


def _biases(result: RunRecord) -> Iterator[dict[str, Any]]:
    """Yield each dimension's mean score minus the wanted mean, on test."""
    start, accepted = (result.drift.get(side) for side in ("baseline", "best"))
    for name, value in start.mean_errors.items() if start and accepted else ():
        now = accepted.mean_errors.get(name) if accepted and result.changed else None
        sides = {"at the start": value, "accepted": now}
        yield {"dimension": name} | {
            side: each if each is None else Figure(each, form="+.2f") for side, each in sides.items()
        }


def _cost(result: RunRecord) -> Iterator[dict[str, Any]]:
    tokens = {"tokens in": "prompt_tokens", "tokens out": "completion_tokens"}
    fields = {"calls": "calls", "reused": "cached_calls", **tokens, "retries": "retries", "failures": "failures"}
    for name, role in result.roles.items():
        row = {"role": name.replace("_", "-")} | {what: getattr(role, field) for what, field in fields.items()}
        yield row | {"cost": money(role.cost_usd) if role.cost_usd else None}


FRAMES: dict[str, RowMaker] = {
    "scores": _scores,
    "overall": lambda result: (row for row in _scores(result) if row["dimension"] == "overall"),
    "edits": _edits,
    "lessons": _lesson_fields,
    "questions": _questions,
    "bias": _biases,
    "cost": _cost,
}
"""Tables that are useful only as data frames. ``to_pandas()`` returns the first."""

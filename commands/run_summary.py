"""What a run came to, on a terminal: what was learned, the figures, the edits with their lessons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..evaluation.pass_fail import NAMES, confusion_text, form_of
from ..memory.decision import decide
from ..memory.result_file import CROSSED
from ..memory.run_directory import JUDGE_FILE
from ..prompts.errors import as_typed
from ..prompts.formatting import Figure, count, coverage_text, percent
from ..prompts.text import shorten
from . import terminal
from .learned import learned_questions, shown_examples
from .output import print_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from ..memory.result_file import RunRecord
    from ..memory.result_parts import EditRecord, LessonRecord, MeasureRecord, ParityRecord
    from ..optimizer.run_result import RunResult


def run_summary(done: RunResult) -> None:
    """What a run came to: what was learned, the figures, whether anything was accepted, the edits and their lessons."""
    out = terminal.console()
    result = done.record
    learned_questions(out, result)
    shown_examples(out, result)
    _pass_fail(out, result)
    out.print(f"\nThe run ended because {result.why_it_ended}.", soft_wrap=True)
    _gains(out, result)
    _what_stays(out, result)
    out.print(result.decision_reason or decide(result).sentence, style="bold", soft_wrap=True)
    _edits(out, result)
    for split, sides in result.parity.items():
        _parity(out, split, sides)
    _lessons(out, result.lessons)
    if result.calibration:
        _calibration(out, result)
    out.print(f"\n{result.spending}; coverage {coverage_text(result.coverage)}", soft_wrap=True)
    judge = done.directory / JUDGE_FILE
    if not (judge.is_file() and (result.best.examples or (result.changed and result.same_prompt))):
        out.print(f"Prompt: {done.directory / 'prompt.md'}", soft_wrap=True)
    if judge.is_file():
        out.print(f"Judge: {judge}, for askance evaluate DATA --judge {as_typed(done.directory)}", soft_wrap=True)


def _gains(out: Console, result: RunRecord) -> None:
    """What the start and what was accepted measure on each split, and the difference."""
    out.print(f"{_measured(result)}, 95% intervals:")
    rows: list[dict[str, Any]] = []
    for split, before, after, gain in result.splits:
        row = {"split": split, "n": before and before.n, "at the start": _measure(before), "accepted": _measure(after)}
        same = None if result.changed else f"the same {result.thing}"
        rows.append(row | {"difference": Figure.of(gain, "+.3f") if gain else same})
    print_rows(rows)
    if result.crossed:
        out.print(CROSSED, style="dim", soft_wrap=True)


def _what_stays(out: Console, result: RunRecord) -> None:
    """That nothing was accepted, or something else than the prompt."""
    if result.finish_reason != "calibrated" and not result.changed:
        why = result.why_unchanged
        out.print(f"Nothing was accepted: {why}. The {result.thing} stays as it was.", soft_wrap=True)
    elif result.changed and result.same_prompt:
        new = ["the questions and how they are read"] if result.best.checklist else []
        new += ["the examples that it is shown"] if result.shown else []
        out.print(f"The prompt stays as it was; {' and '.join(new)} are new.")


def _edits(out: Console, result: RunRecord) -> None:
    """Every candidate with its reason: accepted, with its edits, taken out again, rejected, or of a question's words."""
    lessons = {lesson.id: lesson for lesson in result.lessons}
    for tried in result.accepted_edits:
        which = "" if tried.edits else f"{result.name_of(tried)}: "
        out.print(f"\nAccepted: {which}{tried.reason}", soft_wrap=True)
        for edit in tried.edits:
            _edit(out, edit, lessons)
    if result.instructions:
        _instructions(out, result)
    for pruned in result.pruned_edits:
        verb = "Taken out again" if pruned.removed else "Kept"
        names = ", ".join(pruned.edit.lessons)
        out.print(f"{verb}: {names}: {pruned.reason}", style="dim", soft_wrap=True)
    for tried in result.rejected_edits:
        out.print(f"Rejected: {result.name_of(tried)}: {tried.reason}", style="dim", soft_wrap=True)
    for worded in result.reworded:
        assert worded.after is not None, "an accepted wording is one"
        out.print(f"\nWorded anew ({worded.question}): {worded.reason}", soft_wrap=True)
        out.print(f"  - {worded.before.criterion}", style="red", soft_wrap=True)
        out.print(f"  + {worded.after.criterion}", style="green", soft_wrap=True)
    for each in result.changed_questions:
        if each.id not in {worded.question for worded in result.reworded}:
            out.print(f"\nAsked {'otherwise' if each.new else 'no more'} ({each.id}):", soft_wrap=True)
            out.print(f"  - {each.old}", style="red", soft_wrap=True)
            if each.new:
                out.print(f"  + {each.new}", style="green", soft_wrap=True)


def _parity(out: Console, split: str, sides: Mapping[str, ParityRecord]) -> None:
    """How often the judge says what the source says, question by question."""
    before, after = sides["baseline"], sides["best"]
    out.print(f"\nThe same verdicts as the source, on {split} (share; kappa):")
    named = {"all questions": (before, after)}
    named |= {name: (was, after.questions[name]) for name, was in before.questions.items()}
    print_rows(
        [
            {
                "question": name,
                "n": was.same.n,
                "at the start": Figure.of(was.same),
                "accepted": Figure.of(now.same),
                "kappa at the start": Figure.of(was.kappa),
                "kappa accepted": Figure.of(now.kappa),
            }
            for name, (was, now) in named.items()
        ]
    )


def _pass_fail(out: Console, result: RunRecord) -> None:
    """Agreement, error rates and kappa where people's labels are pass or fail."""
    if result.pass_fail is None:
        return
    split, found = result.pass_fail
    out.print(
        f"\nPass or fail, on {split}, n = {found[0].measured.n}, 95% intervals; the threshold is from development:"
    )
    rows: list[dict[str, Any]] = [
        {"figure": label} | {each.name: Figure.of(getattr(each.measured, name), form_of(name)) for each in found}
        for name, label in NAMES.items()
    ]
    rows.append({"figure": "threshold"} | {each.name: Figure(each.threshold.value, form=".3g") for each in found})
    print_rows(rows)
    for each in found:
        why = f"; the threshold is not fitted: {each.threshold.reason}" if each.threshold.reason else ""
        said = f"{each.name}: {confusion_text(each.measured.confusion)}{why}"
        out.print(said, style="dim", soft_wrap=True)


def _measured(result: RunRecord) -> str:
    """What the numbers of a run are."""
    return result.yardstick.capitalize() if result.mode == "tune" else f"{result.yardstick} with {result.whose}"


def _lessons(out: Console, lessons: Sequence[LessonRecord]) -> None:
    """What was learnt; apart from it what no prompt can carry."""
    kinds = {"promptable": "Lessons drawn from the disagreements:", "computational": "The prompt cannot fix these:"}
    for kind, heading in kinds.items():
        mine = [lesson for lesson in lessons if lesson.kind == kind]
        if mine:
            out.print(f"\n{heading}")
        for lesson in mine:
            said = lesson.status if lesson.promptable else lesson.kind_reason
            seen = f"support {lesson.support}" if lesson.support else "from the memory"
            text = f"  {lesson.id} ({said}, {seen}): {lesson.text}"
            out.print(text, soft_wrap=True)
            if lesson.is_closed and lesson.reason:
                out.print(f"      {lesson.reason}", style="dim", soft_wrap=True)


def _calibration(out: Console, result: RunRecord) -> None:
    """What thresholds and Platt scaling alone would have done, on the test examples."""
    baseline = result.calibration["baseline"]
    best = result.calibration.get("best", baseline)
    what = "The starting judge alone" if result.thing == "judge" else "Without an edit"
    out.print(f"\n{what}, calibrated on the development examples (test examples):")
    sides = {"start": baseline} if best == baseline else {"start": baseline, "accepted": best}
    rows = [
        {result.thing: name, "reading": reading, "Spearman": _measure(row)}
        | {"MAE": Figure(row.errors.mean_absolute), "bias": Figure(row.errors.drift, form="+.3f")}
        for name, side in sides.items()
        for reading, row in side.items()
    ]
    print_rows(rows)
    if result.best.read_by is not None:
        said = "The accepted judge is calibrated already: it is read against accepted outputs."
        out.print(said, style="dim", soft_wrap=True)


def _edit(out: Console, edit: EditRecord, lessons: Mapping[str, LessonRecord]) -> None:
    added = edit.new.replace(edit.old, "").strip() if edit.old in edit.new else None
    if added is not None:
        out.print(f"  + {added}", style="green", soft_wrap=True)
    else:
        out.print(f"  - {edit.old}", style="red", soft_wrap=True)
        if edit.new.strip():
            out.print(f"  + {edit.new}", style="green", soft_wrap=True)
    for name in edit.lessons:
        lesson = lessons[name]
        seen = "the memory."
        if lesson.evidence:
            seen = f"{count(lesson.support, 'disagreement')}: {', '.join(lesson.evidence)}"
        out.print(f"      lesson {name}: {lesson.text} From {seen}", soft_wrap=True)


def _instructions(out: Console, result: RunRecord) -> None:
    """What each accepted instruction did to the outputs that pass its requirement."""
    out.print("\nOutputs that pass what each instruction is about, at the start and with the accepted prompt:")
    rows: list[dict[str, Any]] = []
    for each in result.instructions:
        row: dict[str, Any] = {"lesson": each.lesson, "instruction": shorten(each.text, 60)}
        for split, rates in (("validation", each.validation), ("test", each.test)):
            row[split] = (
                "not judged" if rates is None else f"{percent(rates.before)} → {percent(rates.after)}, n = {rates.n}"
            )
        rows.append(row)
    print_rows(rows)


def _measure(row: MeasureRecord | None) -> Figure | str:
    return "not looked at" if row is None else Figure.of(row.shown)

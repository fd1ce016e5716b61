"""The report of a migration: which targets may replace the old model, the figures, and every case that got worse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from ..memory.certificate_file import TARGETS, CertificateRecord, KeptRequirement, PowerRecord, TargetRecord
from ..memory.decision import FEW, Choice
from ..optimizer.migration.certificate import WORDS, cost_said, headline, measured
from ..prompts.errors import shown_from
from ..prompts.formatting import MINUS, Figure, count, number, signed
from ..prompts.text_files import write_whole
from .certificate_data import (
    MigrationData,
    ShownTarget,
    addition_rows,
    failures_of,
    lines_of,
    read_migration,
    side_by_side,
    trial_rows,
)
from .certificate_tables import day, ends, figure, own_judge, table_sections, things, unbroken
from .charts import Scale
from .page import FirstScreen, Section, Tile, render_result_page
from .run_candidates import Piece

ORDER = (
    *("targets", "difference", "quality", "shares", "content", "regressions", "requirements", "rates", "gains"),
    *("both_fail", "prompts", "power", "judge", "verified", "settings"),
)
MOST_TEXT = 3_000_000
"""Most characters of outputs in a page; further regressions are only named."""
SHOWN_CASES = 8
"""Most regressions of a target that are not folded away."""
MOST_OUTPUT = 4_000
"""Most characters of one output that are shown and compared word by word."""
_ANSWERED = {"adopt": "Adopt: ", "not_yet": "Not yet: ", "undecided": "Undecided: "}
"""Beginnings of a reason, which the page shows as a tag instead."""


def write_certificate_page(run: Path, output: Path | None = None) -> Path:
    """Write the report of a migration to ``output``, by default ``report.html`` in its directory. An existing file is
    replaced whole or not at all. Raises InputError if there is no certificate or a file is damaged, AskanceError if
    the report cannot be written."""
    file = output or run / "report.html"
    with shown_from(run, "the files of this migration"):
        # Elsewhere, links to the targets' pages would lead nowhere, or tell the directory's path.
        text = render_certificate(read_migration(run), linked=file.resolve().parent == run.resolve())
    write_whole(file, text)
    return file


def render_certificate(data: MigrationData, *, linked: bool = True) -> str:
    """Render the report as HTML. With ``linked``, it links to the targets' own pages."""
    found = data.certificate
    links = {each.name: _link(each, linked=linked) for each in data.targets}
    lines = [lines_of(each.name, each.run) for each in data.targets if each.run is not None]
    sections = table_sections(data, links)
    sections["regressions"] = Section("regressions", "Regressions that are left", note=_regressions_note(data))
    why = "Every change with the failures that led to it, and what it gained on validation."
    sections["prompts"] = Section("prompts", "What changed in the prompts", note=why if lines else "")
    return render_result_page(
        _screen(data),
        [sections[name] for name in ORDER if name != "quality" or sections[name].pictures],
        "certificate.html.j2",
        certificate=found,
        targets=data.targets,
        links=links,
        words=WORDS,
        reasons={each.name: _reason(each.record) for each in data.targets},
        tones={"adopt": "applied", "not_yet": "refused", "undecided": "open"},
        scale=Scale.over(ends(found)),
        gain_scale=Scale.over([end for each in lines for end in each.ends]),
        cases=_cases(data),
        shown_cases=SHOWN_CASES,
        lines=lines,
        additions={each.target: Section(each.target, "Additions", addition_rows(each), drawn=()) for each in lines},
        failures_of=failures_of,
        trials={each.target: Section(each.target, "Candidates", trial_rows(each), drawn=()) for each in lines},
        unit=measured(found).lower(),
    )


def _reason(record: TargetRecord) -> str:
    """Return the reason of a decision, without the word that the page shows as a tag."""
    return record.reason.removeprefix(_ANSWERED[record.decision]).replace(" -", f" {MINUS}")


def _link(target: ShownTarget, *, linked: bool) -> str | Markup:
    """Return a target's name, as a link if the target has a page of its own."""
    if not (linked and target.has_page):
        return target.name
    address = f"{TARGETS}/{quote(target.folder, safe='')}/report.html"
    return Markup('<a href="{}">{}</a>').format(address, target.name)


# --- first screen -------------------------------------------------------------------------------------------------


def _screen(data: MigrationData) -> FirstScreen:
    found = data.certificate
    answers = [each.decision for each in found.targets.values()]
    choice: Choice = "adopt" if "adopt" in answers else "undecided" if "undecided" in answers else "keep"
    single = "requirement" if found.kind == "generator" else "question or dimension"
    worse = f", and no single {single} is proved worse by more than that"
    lead = (
        f"A target is adopted when the lower limit of its difference to the old {things(found)} lies above "
        f"{signed(-found.max_loss)}{worse}. Each limit is exceeded with a chance of {unbroken(found.level)}."
    )
    return FirstScreen(
        "migrate", data.name, choice, headline(found), lead, [*_tiles(found)], [*_cautions(data)], who=_who(found)
    )


def _tiles(found: CertificateRecord) -> Iterator[Tile]:
    records = [*found.targets.values()]
    if len(records) == 1:
        sub = "one-sided limits"
        yield Tile("Difference to the old", figure(records[0].difference, "+.3f"), sub)
    else:
        adopted = sum(each.decision == "adopt" for each in records)
        yield Tile("Targets to adopt", f"{adopted} of {len(records)}", "each decided for itself")
    if records:
        shares = records[0].pass_rate
        is_single = len(records) == 1
        yield Tile(
            f"{measured(found)} on test",
            figure((shares.after if is_single else shares.old), ".2f"),
            f"{count(shares.old.n, 'example')}; {'old, then new' if is_single else 'of the old ' + things(found)}",
            figure(shares.old, ".2f") if is_single else None,
        )
    if (power := _last_power(found)) is not None:
        how = "assumed" if power.assumed else "measured on development"
        yield Tile("Smallest loss the test can rule out", Figure(power.loss, form=".3f"), f"in 8 of 10 cases; {how}")
    agreed = found.judge_agreement
    if agreed is not None:
        yield Tile("The judge's agreement with people", figure(agreed, ".2f"), count(agreed.n, "labelled output"))
    elif found.judge:
        yield Tile("The judge's agreement with people", "not known", "no output here is labelled")


def _last_power(found: CertificateRecord) -> PowerRecord | None:
    """Return the power that development measured, for the target with the largest loss; else the assumed power."""
    return max(found.power, key=lambda each: (not each.assumed, each.loss), default=None)


def _cautions(data: MigrationData) -> Iterator[str]:
    found = data.certificate
    if own := own_judge(found):
        yield f"{own} judges its own outputs: the judge is one of the targets. Have another model judge, or --second-judge."
    tested = max((each.pass_rate.after.n for each in found.targets.values()), default=0)
    if tested < FEW:
        yield f"There are few test examples ({tested}), so the intervals are wide."
    power = _last_power(found)
    if power is not None and power.needed > 1.05 * power.examples:
        yield (
            f"With {count(power.examples, 'test example')} a loss below {number(power.loss, 3)} cannot be ruled out; about "
            f"{power.needed:,} would rule out {number(found.max_loss)}."
        )
    if found.looks > 1:
        yield f"The test examples were looked at {found.looks} times; each further look makes luck likelier."
    for name, each in found.verified[-1].targets.items() if found.verified else ():
        if each.decision != "adopt":
            yield f"At the last look ({day(found.verified[-1].time)}), {name}: {each.reason}"
    for target in data.targets:
        if target.run is None:
            yield f"The run of {target.name} is not in this directory, so its outputs and its prompt are not shown."


def _who(found: CertificateRecord) -> str:
    old = "The old outputs were recorded" if found.source == "recorded" else f"{found.source} is the old model"
    judge = "" if found.judge is None else f"; {found.judge} judges"
    second = "" if found.second_judge is None else f", and {found.second_judge} judges the same test outputs once more"
    looks = "once" if found.looks == 1 else f"{found.looks} times"
    return " ".join([f"{old}{judge}{second}. The test was looked at {looks}.", *cost_said(found)])


# --- regressions and lines of the prompts -------------------------------------------------------------------------


@dataclass(frozen=True)
class ShownCase:
    """A test example whose new output got worse."""

    example: str
    failed: Sequence[tuple[KeptRequirement, str | None]]
    """Requirements that the new output fails and the old one keeps, each with the judge's reason."""
    input: str = ""
    old: Sequence[Piece] = ()
    new: Sequence[Piece] = ()
    left_out: int = 0
    """Characters of both outputs that are not shown."""


def _cases(data: MigrationData) -> dict[str, list[ShownCase]]:
    """Return the regressions of each target, with their outputs as long as the page has room."""
    room = MOST_TEXT
    found: dict[str, list[ShownCase]] = {}
    for target in data.targets:
        cases = found[target.name] = []
        for example in target.record.regressions:
            failed = [(each, target.why(example, each.id)) for each in target.failed.get(example, ())]
            old, new = data.old.get(example), target.output(example)
            if old is None or new is None or room <= 0:
                cases.append(ShownCase(example, failed))
                continue
            texts = old.output[:MOST_OUTPUT], new[:MOST_OUTPUT]
            room -= sum(map(len, texts))
            left_out = sum(max(0, len(text) - MOST_OUTPUT) for text in (old.output, new))
            cases.append(ShownCase(example, failed, old.input, *side_by_side(*texts), left_out))
    return found


def _regressions_note(data: MigrationData) -> str:
    many = {each.name: len(each.record.regressions) for each in data.targets}
    if not any(many.values()):
        return "None: no new test output fails a requirement that the old one keeps."
    if data.certificate.kind == "judge":
        return "Test examples that the new judge gets wrong and the old one did not. Their verdicts are on the target's own page."
    return "The new output fails a requirement that the old one keeps. Words that differ are marked."

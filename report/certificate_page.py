"""The report of a migration: which targets may take the old model's place, the figures, and every case that got worse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup

from ..memory.certificate_file import TARGETS, CertificateRecord, TargetRecord
from ..memory.decision import FEW, Choice
from ..optimizer.migration.certificate_view import WORDS, cost_said, headline, measured
from ..prompts.errors import shown_from
from ..prompts.formatting import MINUS, Figure, count, number, percent, signed
from ..prompts.text import shorten
from ..prompts.text_files import write_whole
from .certificate_data import MigrationData, ShownTarget, read_migration, side_by_side
from .certificate_lines import LinesOfTarget, lines_of, trial_rows
from .charts import Scale, Spot, cost_and_quality
from .page import CLIPPED, FirstScreen, Section, Tile, public_text, render_result_page

if TYPE_CHECKING:
    from ..evaluation.view import Rows
    from ..memory.certificate_file import KeptRequirement, PowerRecord, RequirementRates, ShareRecord
    from .run_candidates import Piece

MOST_TEXT = 3_000_000
"""Characters of outputs in a page; the regressions after that are named."""
SHOWN_CASES = 8
"""Regressions of a target that are not folded away."""
MOST_OUTPUT = 4_000
"""Characters of one output that are shown, and compared word by word."""
MOST_NAMED = 12
"""Examples that a row of a table names."""
_BOTH_FAIL = "Neither output keeps the requirement. No regression, as the old one failed too."
_ANSWERED = {"adopt": "Adopt: ", "not_yet": "Not yet: ", "undecided": "Undecided: "}
"""Beginnings of a reason that the page says as a tag."""


def write_certificate_page(run: Path, output: Path | None = None) -> Path:
    """Write the report of a migration; returns where it is. Raises InputError where there is no certificate, or a file
    of the migration is damaged. Raises AskanceError where the file cannot be written.

    Args:
        run: The migration's directory.
        output: The file; default: ``report.html`` in the directory. It is replaced whole or not at all.
    """
    file = output or run / "report.html"
    with shown_from(run, "the files of this migration"):
        # Elsewhere, links to the targets' pages would lead nowhere, or tell the directory's path.
        text = render_certificate(read_migration(run), linked=file.resolve().parent == run.resolve())
    write_whole(file, text)
    return file


def render_certificate(data: MigrationData, *, linked: bool = True) -> str:
    """The report as HTML. ``linked`` has it link to the targets' own pages."""
    found = data.certificate
    links = {each.name: _link(each, linked=linked) for each in data.targets}
    room = _Room(MOST_TEXT)
    lines = [lines_of(each) for each in data.targets if each.run is not None]
    both = [*_case_rows(data, old=False, new=False)]
    sections = [
        _table("targets", "The targets side by side", _target_rows(data, links), _targets_note(found)),
        Section("difference", "No worse than before?", note=_difference_note(found)),
        Section("quality", "Quality and price", note=_quality_note(found), pictures=_quality(found)),
        _table("shares", "Contract and questions apart", _share_rows(found), _shares_note(found)),
        Section("regressions", "Regressions that are left", note=_regressions_note(data)),
        _table("requirements", "Requirements", _requirement_rows(found), _requirements_note(found)),
        _table("rates", "By requirement", _rate_rows(found) if len(found.targets) > 1 else ()),
        _table("gains", "Gains", _case_rows(data, old=False, new=True), _gains_note(data)),
        _table("both_fail", "Where old and new both fail", both, _BOTH_FAIL if both else ""),
        Section("prompts", "What changed in the prompts", note=_prompts_note(lines)),
        _table("power", "What loss the test could see", _power_rows(found), _power_note(found)),
        _table("judge", "Who judged", _judge_rows(found), _judge_note(found)),
        _table("verified", "Later looks", _verified_rows(found), _verified_note(found)),
        _table("settings", "How the targets are asked", _setting_rows(found)),
    ]
    return render_result_page(
        _screen(data),
        [each for each in sections if each.id != "quality" or each.pictures],
        "certificate.html.j2",
        certificate=found,
        targets=data.targets,
        links=links,
        words=WORDS,
        reasons={each.name: _reason(each.record) for each in data.targets},
        tones={"adopt": "applied", "not_yet": "refused", "undecided": "open"},
        scale=Scale.over(_ends(found)),
        gain_scale=Scale.over([end for each in lines for end in each.ends]),
        cases={each.name: [*_cases(data, each, room)] for each in data.targets},
        shown_cases=SHOWN_CASES,
        lines=lines,
        trials={each.target: Section(each.target, "Candidates", trial_rows(each), drawn=()) for each in lines},
        unit=measured(found).lower(),
    )


def _reason(record: TargetRecord) -> str:
    """The reason of a decision, without the word that stands beside it as a tag."""
    return record.reason.removeprefix(_ANSWERED[record.decision]).replace(" -", f" {MINUS}")


def _table(name: str, title: str, rows: Iterable[Mapping[str, Any]], note: str = "") -> Section:
    """A section with a table of figures that are written and not drawn."""
    return Section(name, title, [*rows], note, drawn=())


def _link(target: ShownTarget, *, linked: bool) -> str | Markup:
    """A target's name, as a link to its own page where that is there."""
    if not (linked and target.has_page):
        return target.name
    address = f"{TARGETS}/{quote(target.folder, safe='')}/report.html"
    return Markup('<a href="{}">{}</a>').format(address, target.name)


# --- first screen -------------------------------------------------------------------------------------------------


def _percent(share: float) -> str:
    """A share in percent that no line is broken in."""
    return percent(share).replace(" ", "\N{NO-BREAK SPACE}")


def _screen(data: MigrationData) -> FirstScreen:
    found = data.certificate
    answers = [each.decision for each in found.targets.values()]
    choice: Choice = "adopt" if "adopt" in answers else "undecided" if "undecided" in answers else "keep"
    worse = "" if found.kind == "judge" else ", and no single requirement is proved worse by more than that"
    lead = (
        f"A target is adopted when the lower limit of its difference to the old {_things(found)} lies above "
        f"{signed(-found.max_loss)}{worse}. Each limit is exceeded with a chance of {_percent(found.level)}."
    )
    return FirstScreen(
        "migrate", data.name, choice, headline(found), lead, [*_tiles(found)], [*_cautions(data)], who=_who(found)
    )


def _things(found: CertificateRecord) -> str:
    return "outputs" if found.kind == "generator" else "judge"


def _thing(found: CertificateRecord) -> str:
    return "output" if found.kind == "generator" else "example"


def _tiles(found: CertificateRecord) -> Iterator[Tile]:
    records = [*found.targets.values()]
    if len(records) == 1:
        sub = "one-sided limits"
        yield Tile("Difference to the old", Figure.of(records[0].difference.model_dump(), "+.3f"), sub)
    else:
        adopted = sum(each.decision == "adopt" for each in records)
        yield Tile("Targets to adopt", f"{adopted} of {len(records)}", "each decided for itself")
    if records:
        shares = records[0].pass_rate
        one = len(records) == 1
        yield Tile(
            f"{measured(found)} on test",
            _figure((shares.after if one else shares.old), ".2f"),
            f"{count(shares.old.n, 'example')}; {'old, then new' if one else 'of the old ' + _things(found)}",
            _figure(shares.old, ".2f") if one else None,
        )
    if (power := _last_power(found)) is not None:
        how = "assumed" if power.assumed else "measured on development"
        yield Tile("Smallest loss the test can rule out", Figure(power.loss, form=".3f"), f"in 8 of 10 cases; {how}")
    agreed = found.judge_agreement
    if agreed is not None:
        yield Tile("The judge's agreement with people", _figure(agreed, ".2f"), count(agreed.n, "labelled output"))
    elif found.judge:
        yield Tile("The judge's agreement with people", "not known", "no output here is labelled")


def _last_power(found: CertificateRecord) -> PowerRecord | None:
    """The power as measured on development, of the target with the largest loss; else as assumed."""
    return max(found.power, key=lambda each: (not each.assumed, each.loss), default=None)


def _figure(share: ShareRecord, form: str = ".3f") -> Figure:
    return Figure.of(share.model_dump(), form)


def _cautions(data: MigrationData) -> Iterator[str]:
    found = data.certificate
    if own := _own_judge(found):
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
            yield f"At the last look ({_day(found.verified[-1].time)}), {name}: {each.reason}"
    for target in data.targets:
        if target.run is None:
            yield f"The run of {target.name} is not in this directory, so its outputs and its prompt are not shown."


def _own_judge(found: CertificateRecord) -> str | None:
    """The name of the target that is the judge, too."""
    return next((name for name, each in found.targets.items() if found.judge in (name, each.model)), None)


def _day(time: str) -> str:
    return time[:16].replace("T", " ")


def _who(found: CertificateRecord) -> str:
    old = "The old outputs were recorded" if found.source == "recorded" else f"{found.source} is the old model"
    judge = "" if found.judge is None else f"; {found.judge} judges"
    second = "" if found.second_judge is None else f", and {found.second_judge} judges the same test outputs once more"
    looks = "once" if found.looks == 1 else f"{found.looks} times"
    return " ".join([f"{old}{judge}{second}. The test was looked at {looks}.", *cost_said(found)])


# --- tables -------------------------------------------------------------------------------------------------------


def _target_rows(data: MigrationData, links: dict[str, str | Markup]) -> Iterator[dict[str, Any]]:
    for each in data.targets:
        record = each.record
        shares = record.pass_rate
        yield {
            "target": Markup("{} <small>{}</small>").format(links[each.name], WORDS[record.decision]),
            "old": _figure(shares.old),
            "before": _maybe(shares.before),
            "after": _figure(shares.after),
            "contract": None if record.contract is None else _figure(record.contract.after, ".0%"),
            "questions": None if record.questions is None else _figure(record.questions.after),
            "worst requirement": _worst(record),
            "price": _price(record.price_per_output),
            "seconds": _plain(record.seconds_per_output, ".1f"),
            "tokens": _plain(record.tokens_per_output, ",.0f"),
        }


def _maybe(share: ShareRecord | None, form: str = ".3f") -> Figure | None:
    return None if share is None else _figure(share, form)


def _known(share: ShareRecord | None) -> ShareRecord | None:
    """The share where it has a value."""
    return share if share is not None and share.value is not None else None


def _plain(value: float | None, form: str) -> Figure | None:
    return None if value is None else Figure(value, form=form)


def _price(dollars: float | None) -> Figure | None:
    """The price of 1,000 outputs."""
    return None if dollars is None else Figure(1000 * dollars, form=",.2f" if 1000 * dollars >= 0.1 else ".2g")


def _worst(record: TargetRecord) -> str | None:
    """The requirement that lost most, and whether that is proved."""
    changes = {
        each.requirement: each.after - each.old
        for each in record.by_requirement
        if each.after is not None and each.old is not None
    }
    if not changes:
        return record.worst[0] if record.worst else None
    name = record.worst[0] if record.worst and record.worst[0] in changes else min(changes, key=changes.__getitem__)
    if changes[name] >= 0:
        return "none lost"
    return f"{shorten(name, 40)} {signed(changes[name])}{', proved' if name in record.worst else ''}"


def _targets_note(found: CertificateRecord) -> str:
    what = "mean share of the requirements that an output keeps" if found.kind == "generator" else "agreement"
    known = any(each.price_per_output is not None for each in found.targets.values())
    price = "Price: US dollars for 1,000 outputs; s" if known else "No price is known for these models. S"
    return (
        f"Old, before and after: {what}, on test, with 95\N{NO-BREAK SPACE}% intervals; before is the target with the old "
        f"prompt, after with the new one. {price}econds and tokens: of one {_thing(found)}."
    )


def _share_rows(found: CertificateRecord) -> Iterator[dict[str, Any]]:
    for name, each in found.targets.items():
        for what, sides in (("contract", each.contract), ("questions", each.questions)):
            if sides is not None:
                form = ".1%" if what == "contract" else ".3f"
                old, before, after = (_maybe(side, form) for side in (sides.old, sides.before, sides.after))
                yield {"target": name, "of": what, "old": old, "before": before, "after": after, "n": sides.after.n}


def _shares_note(found: CertificateRecord) -> str:
    if not any(each.contract or each.questions for each in found.targets.values()):
        return ""
    return "Contract: the share of the outputs that keep every check that code makes. Questions: the mean share of the questions that an output passes."


def _difference_note(found: CertificateRecord) -> str:
    second = " The open circle is the second judge's." if any(each.second for each in found.targets.values()) else ""
    return (
        f"{measured(found)} after minus old, by example. The bar runs from the lower to the upper one-sided limit "
        f"({_percent(1 - found.level)}). Adopted is what lies wholly to the right of the margin.{second}"
    )


def _ends(found: CertificateRecord) -> list[float | None]:
    """Ends of all bars of the picture of differences, and the margin."""
    shares = [share for each in found.targets.values() for share in (each.difference, each.second) if share]
    return [-found.max_loss, *(end for each in shares for end in (each.low, each.value, each.high))]


def _quality(found: CertificateRecord) -> list[tuple[str, Markup]]:
    """Every target as a point: price across, or tokens where a price is missing, and pass rate upwards."""
    known = {name: each for name, each in found.targets.items() if each.pass_rate.after.value is not None}
    unit, factor = "US dollars for 1,000 outputs", 1000.0
    costs = {name: each.price_per_output for name, each in known.items()}
    if None in costs.values() or not any(costs.values()):  # unknown, or free
        unit, factor = "tokens for an output", 1.0
        costs = {name: each.tokens_per_output for name, each in known.items()}
    spots = [
        Spot(
            name,
            factor * cost,
            known[name].pass_rate.after.value or 0.0,
            f"{measured(found)} {number(known[name].pass_rate.after.value, 3)}, {factor * cost:,.4g} {unit}",
            "after" if known[name].decision == "adopt" else "before",
        )
        for name, cost in costs.items()
        if cost is not None
    ]
    old = next((each.pass_rate.old.value for each in known.values()), None)
    level = None if old is None else (old, f"old {_things(found)}")
    label = "Quality and price of every target; the first table has the figures"
    return [("", cost_and_quality(spots, unit, label, level))] if spots else []


def _quality_note(found: CertificateRecord) -> str:
    return (
        f"Upwards: {measured(found).lower()} on test. Further up and to the left is better. The broken line is the old "
        f"{_things(found)}. Filled circles are targets to adopt."
    )


def _requirement_rows(found: CertificateRecord) -> Iterator[dict[str, Any]]:
    only = next(iter(found.targets.values())) if len(found.targets) == 1 else None
    rates = {} if only is None else {row.requirement: row for row in only.by_requirement}
    has_clauses = any(each.clause for each in found.requirements)
    for each in found.requirements:
        by = ", ".join(filter(None, [each.origin, f"by {'code' if each.is_check else 'the judge'}"]))
        yield {
            "requirement": Markup("{} <small>{}</small>").format(each.text, each.id),
            "from": by if each.enforced else f"{by}; only shown",
            "words of the prompt": (each.clause or "") if has_clauses else None,
            "kept by old": _plain(each.support, ".0%"),
            **(_rates(rates[each.id], only) if only is not None and each.id in rates else {}),
        }


def _rates(row: RequirementRates, record: TargetRecord) -> dict[str, Any]:
    change = None if row.after is None or row.old is None else row.after - row.old
    return {
        "old": _plain(row.old, ".2f"),
        "before": _plain(row.before, ".2f"),
        "after": _plain(row.after, ".2f"),
        "change": _plain(change, "+.2f"),
        "n": row.n,
        "proved worse": "yes" if row.requirement in record.worst else None,
    }


def _rate_rows(found: CertificateRecord) -> Iterator[dict[str, Any]]:
    for each in found.requirements:
        for name, record in found.targets.items():
            for row in record.by_requirement:
                if row.requirement == each.id:
                    yield {"requirement": each.id, "target": name, **_rates(row, record)}


def _requirements_note(found: CertificateRecord) -> str:
    if not found.requirements:
        return ""
    shown = sum(not each.enforced for each in found.requirements)
    left = (
        f" {count(shown, 'rule')} that too few old outputs keep {'is' if shown == 1 else 'are'} only shown."
        if shown
        else ""
    )
    return (
        f"{count(len(found.requirements), 'requirement')}, fixed before validation and test were bought; they are in "
        f"requirements.yaml. Kept by old: the share of the old development outputs that keep it.{left}"
    )


def _case_rows(data: MigrationData, *, old: bool, new: bool) -> Iterator[dict[str, Any]]:
    for target in data.targets:
        for requirement, examples in target.cases(old, new).items():
            named = ", ".join(examples[:MOST_NAMED])
            more = f" and {len(examples) - MOST_NAMED} more" if len(examples) > MOST_NAMED else ""
            yield {
                "requirement": requirement,
                "target": target.name if len(data.targets) > 1 else None,
                "outputs": len(examples),
                "examples": named + more,
            }


def _gains_note(data: MigrationData) -> str:
    found = {each.name: len(each.record.gains) for each in data.targets if each.record.gains}
    if not found:
        return ""
    said = ", ".join(
        count(many, "test example") + (f" of {name}" if len(data.targets) > 1 else "") for name, many in found.items()
    )
    return f"The new output keeps a requirement that the old one fails: {said}. A gain is never punished."


def _power_rows(found: CertificateRecord) -> Iterator[dict[str, Any]]:
    measured_on = [each for each in found.power if not each.assumed]
    names = [*found.targets] if len(measured_on) == len(found.targets) else [""] * len(measured_on)
    for each in found.power:
        of = "assumed, before anything was bought" if each.assumed else f"development, {names.pop(0)}".rstrip(", ")
        yield {
            "deviation from": of,
            "deviation": Figure(each.deviation, form=".2f"),
            "test examples": each.examples,
            "loss ruled out": Figure(each.loss, form=".3f"),
            "examples needed": each.needed,
            "at most": each.needed_most,
        }


def _power_note(found: CertificateRecord) -> str:
    if not found.power:
        return ""
    return (
        "Loss ruled out: the smallest that so many test examples rule out in 8 of 10 cases where there is none. Examples "
        f"needed: as many rule out {number(found.max_loss)}. Deviation: of the difference between two outputs. At most: "
        "examples needed where the deviation is as large as its measurement leaves open."
    )


def _judge_rows(found: CertificateRecord) -> Rows:
    rows = [
        {
            "target": name,
            "difference by the judge": Figure.of(each.difference.model_dump(), "+.3f"),
            "by the second judge": None if each.second is None else Figure.of(each.second.model_dump(), "+.3f"),
            "new preferred to old": _maybe(_known(each.preferred), ".0%"),
        }
        for name, each in found.targets.items()
    ]
    return rows if any(each.second or _known(each.preferred) for each in found.targets.values()) else []


def _judge_note(found: CertificateRecord) -> str:
    if found.judge is None:
        return ""
    own, agreed = _own_judge(found), found.judge_agreement
    said = [f"{found.judge} judges; it is {'the target ' + own if own else 'none of the targets'}."]
    if agreed is not None and agreed.value is not None:
        span = _figure(agreed, ".2f").span()
        told = f" ({span[0]} to {span[1]})" if span else ""
        said.append(f"Its agreement with people's labels is {number(agreed.value)}{told}, n = {agreed.n}.")
    else:
        said.append("How far it agrees with people is not known, as nobody labelled outputs here.")
    if found.second_judge is None:
        said.append("There was no second judge.")
    else:
        said.append(f"{found.second_judge} judged the same test outputs and taught nothing.")
    if any(_known(each.preferred) for each in found.targets.values()):
        said.append("New preferred to old: the two outputs shown side by side in both orders, ties as half.")
    return " ".join(said)


def _verified_rows(found: CertificateRecord) -> Iterator[dict[str, Any]]:
    for look in reversed(found.verified):
        for name, each in look.targets.items():
            yield {
                "time": f"{_day(look.time)} UTC",
                "target": name,
                "decision": WORDS[each.decision],
                measured(found).lower(): _figure(each.pass_rate),
                "difference": Figure.of(each.difference.model_dump(), "+.3f"),
                "reason": each.reason,
            }


def _verified_note(found: CertificateRecord) -> str:
    if not found.verified:
        return ""
    return f"{count(len(found.verified), 'look')} with --verify: the targets wrote the test inputs anew."


def _setting_rows(found: CertificateRecord) -> Iterator[dict[str, Any]]:
    for name, each in found.targets.items():
        for setting, value in {"model": each.model, "prompt": each.prompt, **each.settings}.items():
            if value not in (None, {}, []):
                text = public_text(setting, value)
                yield {"target": name, "setting": setting.replace("_", " "), "value": text[:CLIPPED]}


# --- regressions and lines of the prompts -------------------------------------------------------------------------


@dataclass
class _Room:
    """Characters that the page still has room for."""

    left: int


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


def _cases(data: MigrationData, target: ShownTarget, room: _Room) -> Iterator[ShownCase]:
    for example in target.record.regressions:
        failed = [(each, target.why(example, each.id)) for each in target.failed.get(example, ())]
        old, new = data.old.get(example), target.output(example)
        if old is None or new is None or room.left <= 0:
            yield ShownCase(example, failed)
            continue
        room.left -= len(old.output[:MOST_OUTPUT]) + len(new[:MOST_OUTPUT])
        pieces = side_by_side(old.output[:MOST_OUTPUT], new[:MOST_OUTPUT])
        left_out = sum(max(0, len(text) - MOST_OUTPUT) for text in (old.output, new))
        yield ShownCase(example, failed, old.input, *pieces, left_out)


def _regressions_note(data: MigrationData) -> str:
    many = {each.name: len(each.record.regressions) for each in data.targets}
    if not any(many.values()):
        return "None: no new test output fails a requirement that the old one keeps."
    if data.certificate.kind == "judge":
        return "Test examples that the new judge gets wrong and the old one did not. Their verdicts are on the target's own page."
    return "The new output fails a requirement that the old one keeps. Words that differ are marked."


def _prompts_note(lines: Sequence[LinesOfTarget]) -> str:
    return "Every change with the failures that led to it, and what it gained on validation." if lines else ""

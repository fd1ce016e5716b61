"""Tables and notes on a migration's page: targets, shares, requirements, cases, power, judges, later looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from markupsafe import Markup

from ..evaluation.view import Rows
from ..memory.certificate_file import CertificateRecord, RequirementRates, ShareRecord, TargetRecord
from ..optimizer.migration.certificate import WORDS, measured
from ..prompts.formatting import Figure, count, names_text, number, percent, signed
from ..prompts.text import shorten
from .certificate_data import MigrationData
from .charts import Spot, cost_and_quality
from .page import CLIPPED, Section, public_text

MOST_NAMED = 12
"""Most examples that one row of a table names."""
_BOTH_FAIL = "Neither output keeps the requirement. No regression, as the old one failed too."
_SHARES = (
    "Contract: the share of the outputs that keep every check that code makes. Questions: the mean share of the questions "
    "that an output passes."
)
_CONTENT = (
    "Code computes these from each output and the text beside it, with 95 % intervals. They decide nothing: a form that is "
    "kept can hold poorer words."
)


def _table(name: str, title: str, rows: Iterable[Mapping[str, Any]], note: str = "") -> Section:
    """Return a section with a table whose figures are not drawn. The note is left out if there are no rows."""
    made = [*rows]
    return Section(name, title, made, note if made else "", drawn=())


def table_sections(data: MigrationData, links: Mapping[str, str | Markup]) -> dict[str, Section]:
    """Return the sections with tables or pictures, by name. ``links`` are the targets' names, as links if possible."""
    found = data.certificate
    looks = count(len(found.verified), "look")
    quality = (
        f"Upwards: {measured(found).lower()} on test. Further up and to the left is better. The broken line is the old "
        f"{things(found)}. Filled circles are targets to adopt."
    )
    made = [
        _table("targets", "The targets side by side", _target_rows(data, links), _targets_note(found)),
        Section("difference", "No worse than before?", note=_difference_note(found)),
        Section("quality", "Quality and price", note=quality, pictures=_quality(found)),
        _table("shares", "Contract and questions apart", _share_rows(found), _SHARES),
        _table("content", "Content, as code measures it", _content_rows(found), _CONTENT),
        _table("requirements", "Requirements", _requirement_rows(found), _requirements_note(found)),
        _table("rates", "By requirement", _rate_rows(found) if len(found.targets) > 1 else ()),
        Section("gains", "Gains", [*_case_rows(data, old=False, new=True)], _gains_note(data), drawn=()),
        _table("both_fail", "Where old and new both fail", _case_rows(data, old=False, new=False), _BOTH_FAIL),
        _table("power", "What loss the test could see", _power_rows(found), _power_note(found)),
        Section("judge", "Who judged", _judge_rows(found), _judge_note(found), drawn=()),
        _table(
            "verified",
            "Later looks",
            _verified_rows(found),
            f"{looks} with --verify: the targets wrote the test inputs anew.",
        ),
        _table("settings", "How the targets are asked", _setting_rows(found)),
    ]
    return {each.id: each for each in made}


def things(found: CertificateRecord) -> str:
    """Return the word for the old side of a migration."""
    return "outputs" if found.kind == "generator" else "judge"


def figure(share: ShareRecord, form: str = ".3f") -> Figure:
    """Return a share as a figure."""
    return Figure.of(share.model_dump(), form)


def own_judge(found: CertificateRecord) -> str | None:
    """Return the name of the target that is also the judge; None if there is none."""
    return next((name for name, each in found.targets.items() if found.judge in (name, each.model)), None)


def day(time: str) -> str:
    """Cut an ISO time to the minute."""
    return time[:16].replace("T", " ")


def unbroken(share: float) -> str:
    """Return a share in percent with a no-break space."""
    return percent(share).replace(" ", "\N{NO-BREAK SPACE}")


def _target_rows(data: MigrationData, links: Mapping[str, str | Markup]) -> Iterator[dict[str, Any]]:
    for target in data.targets:
        record = target.record
        shares = record.pass_rate
        yield {
            "target": Markup("{} <small>{}</small>").format(links[target.name], WORDS[record.decision]),
            "old": figure(shares.old),
            "before": _maybe(shares.before),
            "after": figure(shares.after),
            "contract": None if record.contract is None else figure(record.contract.after, ".0%"),
            "questions": None if record.questions is None else figure(record.questions.after),
            "worst requirement": _worst(record),
            "price": _price(record.price_per_output),
            "seconds": _plain(record.seconds_per_output, ".1f"),
            "tokens": _plain(record.tokens_per_output, ",.0f"),
        }


def _maybe(share: ShareRecord | None, form: str = ".3f") -> Figure | None:
    return None if share is None else figure(share, form)


def _known(share: ShareRecord | None) -> ShareRecord | None:
    """Return the share if it has a value, else None."""
    return share if share is not None and share.value is not None else None


def _plain(value: float | None, form: str) -> Figure | None:
    return None if value is None else Figure(value, form=form)


def _price(dollars: float | None) -> Figure | None:
    """Return the price of 1,000 outputs in US dollars, from the price of one."""
    return None if dollars is None else Figure(1000 * dollars, form=",.2f" if 1000 * dollars >= 0.1 else ".2g")


def _worst(record: TargetRecord) -> str | None:
    """Name the requirement that lost most, with its change and whether the loss is proved; ``none lost`` if none did.
    None if no rates are known and no loss is proved."""
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
    measure = "mean share of the requirements that an output keeps"
    if found.kind == "judge":
        measure = f"agreement ({found.measure})" if found.measure else "agreement"
    known = any(each.price_per_output is not None for each in found.targets.values())
    price = "Price: US dollars for 1,000 outputs; s" if known else "No price is known for these models. S"
    return (
        f"Old, before and after: {measure}, on test, with 95\N{NO-BREAK SPACE}% intervals; before is the target with the old "
        f"prompt, after with the new one. {price}econds and tokens: of one {'output' if found.kind == 'generator' else 'example'}."
    )


def _share_rows(found: CertificateRecord) -> Iterator[dict[str, Any]]:
    for name, record in found.targets.items():
        for part, sides in (("contract", record.contract), ("questions", record.questions)):
            if sides is not None:
                form = ".1%" if part == "contract" else ".3f"
                old, before, after = (_maybe(side, form) for side in (sides.old, sides.before, sides.after))
                yield {"target": name, "of": part, "old": old, "before": before, "after": after, "n": sides.after.n}


def _content_rows(found: CertificateRecord) -> Iterator[dict[str, Any]]:
    for name, target in found.targets.items():
        for each in target.content:
            sides = {"old": figure(each.old), "new": figure(each.after), "difference": figure(each.difference, "+.3f")}
            yield {"target": name, "of an output": each.text, **sides, "worse": "yes" if each.is_worse else ""}


def _difference_note(found: CertificateRecord) -> str:
    second = " The open circle is the second judge's." if any(each.second for each in found.targets.values()) else ""
    return (
        f"{measured(found)} after minus old, by example. The bar runs from the lower to the upper one-sided limit "
        f"({unbroken(1 - found.level)}). Adopted is what lies wholly to the right of the margin.{second}"
    )


def ends(found: CertificateRecord) -> list[float | None]:
    """List the margin and the ends of all bars in the picture of differences."""
    shares = [share for each in found.targets.values() for share in (each.difference, each.second) if share]
    return [-found.max_loss, *(end for each in shares for end in (each.low, each.value, each.high))]


def _quality(found: CertificateRecord) -> list[tuple[str, Markup]]:
    """Draw every target as a point: pass rate upwards, price across, or tokens if a price is missing."""
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
    level = None if old is None else (old, f"old {things(found)}")
    label = "Quality and price of every target; the first table has the figures"
    return [("", cost_and_quality(spots, unit, label, level))] if spots else []


def _requirement_rows(found: CertificateRecord) -> Iterator[dict[str, Any]]:
    target = next(iter(found.targets.values())) if len(found.targets) == 1 else None
    rates = {} if target is None else {row.requirement: row for row in target.by_requirement}
    has_clauses = any(requirement.clause for requirement in found.requirements)
    for requirement in found.requirements:
        source = ", ".join(filter(None, [requirement.origin, f"by {'code' if requirement.is_check else 'the judge'}"]))
        yield {
            "requirement": Markup("{} <small>{}</small>").format(requirement.text, requirement.id),
            "from": source if requirement.enforced else f"{source}; only shown",
            "words of the prompt": (requirement.clause or "") if has_clauses else None,
            "kept by old": _plain(requirement.support, ".0%"),
            **(_rates(rates[requirement.id], target) if target is not None and requirement.id in rates else {}),
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
    for requirement in found.requirements:
        for name, record in found.targets.items():
            for row in record.by_requirement:
                if row.requirement == requirement.id:
                    yield {"requirement": requirement.id, "target": name, **_rates(row, record)}


def _requirements_note(found: CertificateRecord) -> str:
    if found.kind == "judge":
        return "Old, before and after: the share of the test examples with the old judge's answer to the question."
    shown = sum(not each.enforced for each in found.requirements)
    rules = f" {count(shown, 'rule')} that too few old outputs keep {'is' if shown == 1 else 'are'} only shown."
    left = rules if shown else ""
    return (
        f"{count(len(found.requirements), 'requirement')}, fixed before validation and test were bought; they are in "
        f"requirements.yaml. Kept by old: the share of the old development outputs that keep it.{left}"
    )


def _case_rows(data: MigrationData, *, old: bool, new: bool) -> Iterator[dict[str, Any]]:
    for target in data.targets:
        for requirement, examples in target.cases(old, new).items():
            yield {
                "requirement": requirement,
                "target": target.name if len(data.targets) > 1 else None,
                "outputs": len(examples),
                "examples": names_text(examples, MOST_NAMED),
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
    measured_on = [power for power in found.power if not power.assumed]
    names = [*found.targets] if len(measured_on) == len(found.targets) else [""] * len(measured_on)
    for power in found.power:
        source = "assumed, before anything was bought" if power.assumed else f"development, {names.pop(0)}".rstrip(", ")
        yield {
            "deviation from": source,
            "deviation": Figure(power.deviation, form=".2f"),
            "test examples": power.examples,
            "loss ruled out": Figure(power.loss, form=".3f"),
            "examples needed": power.needed,
            "at most": power.needed_most,
        }


def _power_note(found: CertificateRecord) -> str:
    return (
        "Loss ruled out: the smallest that so many test examples rule out in 8 of 10 cases where there is none. Examples "
        f"needed: as many rule out {number(found.max_loss)}. Deviation: of the difference between two outputs. At most: "
        "examples needed where the deviation is as large as its measurement leaves open."
    )


def _judge_rows(found: CertificateRecord) -> Rows:
    rows = [
        {
            "target": name,
            "difference by the judge": figure(each.difference, "+.3f"),
            "by the second judge": _maybe(each.second, "+.3f"),
            "new preferred to old": _maybe(_known(each.preferred), ".0%"),
        }
        for name, each in found.targets.items()
    ]
    return rows if any(each.second or _known(each.preferred) for each in found.targets.values()) else []


def _judge_note(found: CertificateRecord) -> str:
    if found.judge is None:
        return ""
    own, agreed = own_judge(found), found.judge_agreement
    sentences = [f"{found.judge} judges; it is {'the target ' + own if own else 'none of the targets'}."]
    if agreed is not None and agreed.value is not None:
        span = figure(agreed, ".2f").span()
        told = f" ({span[0]} to {span[1]})" if span else ""
        sentences.append(f"Its agreement with people's labels is {number(agreed.value)}{told}, n = {agreed.n}.")
    else:
        sentences.append("How far it agrees with people is not known, as nobody labelled outputs here.")
    if found.second_judge is None:
        sentences.append("There was no second judge.")
    else:
        sentences.append(f"{found.second_judge} judged the same test outputs and taught nothing.")
    if any(_known(each.preferred) for each in found.targets.values()):
        sentences.append("New preferred to old: the two outputs shown side by side in both orders, ties as half.")
    return " ".join(sentences)


def _verified_rows(found: CertificateRecord) -> Iterator[dict[str, Any]]:
    for look in reversed(found.verified):
        for name, result in look.targets.items():
            yield {
                "time": f"{day(look.time)} UTC",
                "target": name,
                "decision": WORDS[result.decision],
                measured(found).lower(): figure(result.pass_rate),
                "difference": figure(result.difference, "+.3f"),
                "reason": result.reason,
            }


def _setting_rows(found: CertificateRecord) -> Iterator[dict[str, Any]]:
    for name, each in found.targets.items():
        for setting, value in {"model": each.model, "prompt": each.prompt, **each.settings}.items():
            if value not in (None, {}, []):
                text = public_text(setting, value)
                yield {"target": name, "setting": setting.replace("_", " "), "value": text[:CLIPPED]}

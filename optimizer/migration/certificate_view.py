"""The certificate of a migration as people get it: one row a target, the decisions in words, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ...evaluation.view import Shown, View
from ...memory.certificate_file import TARGETS, CertificateDecision, CertificateRecord, TargetRecord, target_folder
from ...memory.run_directory import RunDirectory
from ...models.budget import price_said
from ...prompts.errors import as_typed
from ...prompts.formatting import Figure, count, money
from ..run_result import RunResult
from .certificate import content_lines

WORDS: dict[CertificateDecision, str] = {"adopt": "adopt", "not_yet": "not yet", "undecided": "undecided"}
"""Decisions, as people read them."""


@dataclass(frozen=True, repr=False)
class MigrationResult(Shown):
    """The result of a migration: everything in ``certificate.json``."""

    directory: Path
    certificate: CertificateRecord

    @cached_property
    def runs(self) -> dict[str, RunResult]:
        """The run of each target, by its name."""
        folders = {name: self.directory / TARGETS / target_folder(name) for name in self.certificate.targets}
        return {name: RunResult(each, RunDirectory(each).read_result()) for name, each in folders.items()}

    def _view(self) -> View:
        return View(
            f"migrate in {self.directory}",
            told(self.certificate, self.directory).splitlines(),
            {"targets": lambda: [*target_rows(self.certificate)]},
            brief=headline(self.certificate),
            captions={"targets": f"{measured(self.certificate)} on test; price of one output"},
        )


def told(certificate: CertificateRecord, run: Path | None = None) -> str:
    """The decision on each target and what to do next, one sentence a line. Paths begin with ``run``."""
    return "\n".join([*decisions(certificate), *_next_steps(certificate, run), *cost_said(certificate)])


def cost_said(certificate: CertificateRecord) -> Iterator[str]:
    """Yield a sentence on what the migration took, where that is known."""
    if certificate.calls is not None and certificate.tokens is not None:
        price = price_said(vars(certificate))
        yield f"It took {count(certificate.calls, 'call')}, {count(certificate.tokens, 'token')}, {price}."


def headline(certificate: CertificateRecord) -> str:
    """The decisions on all targets as one phrase."""
    adopted = [name for name, each in certificate.targets.items() if each.decision == "adopt"]
    if len(certificate.targets) != 1:
        many = len(certificate.targets)
        named = f": {', '.join(adopted)}" if 0 < len(adopted) <= 3 else ""
        return f"{len(adopted) or 'None'} of {many} targets may take the old model's place{named}"
    ((name, record),) = certificate.targets.items()
    return {
        "adopt": f"{name} may take the old model's place",
        "not_yet": f"{name} may not take the old model's place yet",
        "undecided": f"It is undecided whether {name} may take the old model's place",
    }[record.decision]


def measured(certificate: CertificateRecord) -> str:
    """Name of the figure that the decision is about."""
    return "Pass rate" if certificate.kind == "generator" else "Agreement"


def decisions(certificate: CertificateRecord) -> list[str]:
    """The decision on each target with its reason."""
    return [
        line
        for name, each in certificate.targets.items()
        for line in (f"{name}: {each.reason}", *content_lines(name, each))
    ]


def target_rows(certificate: CertificateRecord) -> Iterator[dict[str, Any]]:
    """Yield one row a target, short enough for a terminal."""
    for name, each in certificate.targets.items():
        yield {"target": name, "decision": WORDS[each.decision]} | {
            **_sides(each, "old", "before", "after"),
            "contract": None if each.contract is None else Figure(each.contract.after.value, form=".0%"),
            "price": None if each.price_per_output is None else money(each.price_per_output),
        }


def _sides(target: TargetRecord, *names: Literal["old", "before", "after"]) -> dict[str, Figure | None]:
    found = {name: getattr(target.pass_rate, name) for name in names}
    return {name: None if share is None else Figure(share.value, form=".3f") for name, share in found.items()}


def _next_steps(certificate: CertificateRecord, run: Path | None) -> Iterator[str]:
    """Yield what a reader does next, by decision."""
    where = Path() if run is None else run
    by: dict[str, list[str]] = {}
    for name, each in certificate.targets.items():
        by.setdefault(each.decision, []).append(name)
    for name in by.get("adopt", ()):
        yield f"Next for {name}: use {where / certificate.targets[name].prompt}, with the settings in certificate.json."
    if "not_yet" in by:
        yield f"Next for {', '.join(by['not_yet'])}: read what is still worse, case by case, in {where / 'report.html'}."
    for name in by.get("undecided", ()):
        needed = certificate.targets[name].needed
        more = "more test rows" if needed is None else f"about {count(needed, 'test row')}"
        yield f"Next for {name}: migrate again with {more} and another --run; until then the old model is the safer choice."
    if "adopt" in by and certificate.kind == "generator":
        yield f"Look again later: askance migrate --verify {as_typed(where)}"

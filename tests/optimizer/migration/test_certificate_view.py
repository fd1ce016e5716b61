"""What people read of a certificate: a row a target, the decisions, and what to do next."""

from __future__ import annotations

from pathlib import Path

import pytest

from askance.memory.certificate_file import read_certificate
from askance.optimizer.migration.certificate import MigrationResult, headline, told
from askance.prompts.errors import InputError

from ...migrated import Target, write_migration
from ...said import naming, says

UNSURE = Target("c", (), "undecided", "Undecided: too few.", {"needed": 410})
WORSE = Target("vendor/b", (), "not_yet", "Not yet: clearly worse on short.")


def test_every_decision_has_its_reason_and_its_next_step(tmp_path: Path) -> None:
    run = tmp_path / "a run"
    found = write_migration(run, [Target("vendor/a"), WORSE, UNSURE])
    said = told(found, run)
    assert says(said, "vendor/a", "0.05", "+0.010")
    assert says(said, "Next for vendor/a", run / "targets/vendor__a/prompt.md")
    assert says(said, "Next for vendor/b", run / "report.html")
    assert says(said, "Next for c", 410)
    assert f"--verify '{run}'" in said  # quoted, as it has a blank
    assert told(found).count("\n") == said.count("\n")


def test_nothing_to_adopt_is_nothing_to_verify(tmp_path: Path) -> None:
    assert "--verify" not in told(write_migration(tmp_path, [WORSE, UNSURE]), tmp_path)


@pytest.mark.parametrize(
    ("targets", "facts"),
    [
        ([Target("a")], ["a may take"]),
        ([WORSE], ["vendor/b may not"]),
        ([UNSURE], ["undecided", "c"]),
        ([Target("a"), WORSE, UNSURE], ["1 of 3 targets", "a"]),
        ([WORSE, UNSURE], ["None of 2 targets"]),
        ([], ["None of 0 targets"]),
    ],
)
def test_the_headline_counts_the_targets_to_adopt(tmp_path: Path, targets: list[Target], facts: list[str]) -> None:
    assert says(headline(write_migration(tmp_path, targets)), *facts)


def test_the_result_shows_one_row_a_target(tmp_path: Path) -> None:
    result = MigrationResult(tmp_path, write_migration(tmp_path, [Target("vendor/a"), WORSE]))
    rows = result.view().tables["targets"]()
    assert [(row["target"], row["decision"], str(row["after"])) for row in rows] == [
        ("vendor/a", "adopt", "0.840"),
        ("vendor/b", "not yet", "0.840"),
    ]
    assert len(repr(result).splitlines()) == 2


def test_a_migration_without_a_certificate_is_not_finished(tmp_path: Path) -> None:
    (tmp_path / "targets" / "a").mkdir(parents=True)
    with pytest.raises(InputError, match=naming("not finished", f"askance resume {tmp_path}")):
        read_certificate(tmp_path)
    with pytest.raises(InputError, match=naming("no certificate")):
        read_certificate(tmp_path / "targets" / "a")

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .ran_somewhere import FOLDER, PERMITTED, judged, ran_nowhere

ROOT = Path(__file__).resolve().parents[1]


def record(folder: Path, name: str, **tests: str | None) -> None:
    rows = [{"test": test.replace("__", "::"), "skipped": why} for test, why in tests.items()]
    folder.joinpath(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_test_that_every_environment_skipped_ran_nowhere(tmp_path: Path) -> None:
    record(tmp_path, "1", a__one=None, a__two="no x", a__three="no x", b="no y", c="no y", d="no z")
    record(tmp_path, "2", a__two=None, a__three="no x", b__one=None, c__one="no y")
    assert ran_nowhere(tmp_path) == {"a::three": "no x", "c::one": "no y", "d": "no z"}


def test_only_reasons_on_the_list_are_permitted() -> None:
    said, good = judged({"a": "no x here", "b": "no x here"}, {"no x": "x costs too much"})
    assert good and "x costs too much" in said
    said, good = judged({"a": "no x here", "b": "no y here"}, {"no x": "x costs too much"})
    assert not good and "  b" in said.splitlines() and "  a" not in said.splitlines()
    assert judged({}, {}) == ("", True)


def test_nothing_recorded_is_no_success(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no test ran"):
        ran_nowhere(tmp_path)


def test_a_missing_browser_server_or_package_of_an_environment_is_never_permitted() -> None:
    mendable = [
        "no Chromium is installed",
        "no PostgreSQL server is installed (Debian: apt install postgresql)",
        "could not import 'torch': No module named 'torch'",
        "litellm is not installed (the extra 'providers')",
        "needs a model: set ASKANCE_TEST_GGUF or pull smollm2-135m-instruct",
    ]
    for why in mendable:
        assert judged({"a": why}, PERMITTED)[1] is False, why


@pytest.mark.parametrize("side_by_side", [(), ("-n", "2")], ids=["alone", "side by side"])
def test_what_pytest_ran_and_skipped_is_written_down(tmp_path: Path, side_by_side: tuple[str, ...]) -> None:
    place = tmp_path / "here"
    place.mkdir()
    (place / "__init__.py").touch()
    plugin = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom tests.ran_somewhere import Recorder\n"
    hook = (
        "def pytest_configure(config):\n    if not hasattr(config, 'workerinput'):\n        "
        "config.pluginmanager.register(Recorder(__import__('pathlib').Path(__import__('os').environ['ASKANCE_RAN'])))\n"
    )
    (place / "conftest.py").write_text(plugin + hook)
    (place / "test_a.py").write_text(
        "import pytest\ndef test_runs(): pass\ndef test_fails(): assert 0\ndef test_skips(): pytest.skip('no x')\n"
        "@pytest.mark.skipif(True, reason='no y')\ndef test_marked(): pass\n@pytest.mark.xfail\ndef test_x(): assert 0\n"
    )
    (place / "test_b.py").write_text("import pytest\npytest.importorskip('nothing_of_this_name')\ndef test_c(): pass\n")
    if side_by_side:
        pytest.importorskip("xdist")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *side_by_side, str(place)]
    environment = os.environ | {FOLDER: str(tmp_path / "ran")}
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=60)
    found = ran_nowhere(tmp_path / "ran")
    assert {test.rpartition("/")[2]: why.partition(":")[0] for test, why in found.items()} == {
        "test_a.py::test_skips": "no x",
        "test_a.py::test_marked": "no y",
        "test_b.py": "could not import 'nothing_of_this_name'",
    }

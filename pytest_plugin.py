"""pytest plug-in that fails a build when a score drops beyond noise, or too few outputs pass.

It has a marker, a fixture and ``--askance-update``. pytest loads this module in every run, so askance's other modules
are imported only when a check runs. Example::

    @pytest.mark.askance(data="answers.jsonl", checklist="checklist.yaml", model="openai/gpt-4o-mini",
                         baseline="baseline.json")
    def test_answers_hold_up():
        pass


    def test_summaries_hold_up(askance_check):
        rows = [{"id": doc.id, "input": doc.text, "output": summarise(doc)} for doc in documents()]
        askance_check(data=rows, checklist="checklist.yaml", model="openai/gpt-4o-mini", baseline="summaries.json")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .evaluation.regression import Regression

FILES = ("data", "checklist", "baseline", "prompt", "judge", "store", "weights", "calibration")
"""Arguments that name files. A relative name starts at the test file's folder."""
NEEDED = ("data", "checklist", "model", "baseline")
BROUGHT = {"checklist": "judge", "model": "judge", "baseline": "fail_under"}
"""Arguments that are not needed if another argument is given."""

WRITTEN = "askance"
"""Property of a test's report: the baseline that was written, or why a judge should not be adopted. It also reaches the
summary from pytest-xdist's processes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--askance-update``."""
    text = "Write the baselines of askance checks in place of comparing with them."
    parser.getgroup("askance").addoption("--askance-update", action="store_true", default=False, help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "askance(data, checklist, model, baseline, prompt=None, judge=None, dimension=None, tolerance=0.0, "
        "fail_under=None, pass_threshold=None, min_coverage=1.0, ...): fail when the checklist score of the data "
        "dropped beyond noise since the baseline was written, or the pass rate is below fail_under.",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Run the checks of a test's markers before its body runs."""
    for mark in item.iter_markers("askance"):
        if mark.args:
            pytest.fail("@pytest.mark.askance takes named arguments only: data=…, checklist=….", pytrace=False)
        _check(item, dict(mark.kwargs))


@pytest.fixture
def askance_check(request: pytest.FixtureRequest) -> Callable[..., Regression]:
    """Return a function that judges outputs and fails the test if their score dropped beyond noise.

    Named arguments and result are those of :func:`askance.evaluation.regression.check_regression`. Relative file names
    start at the test file's folder."""
    item = request.node
    return lambda **arguments: _check(item, arguments)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print which baselines were written, and which judges should not be adopted."""
    reports = [each for kind in terminalreporter.stats.values() for each in kind]
    said = [pair for each in reports for pair in getattr(each, "user_properties", ())]
    for line in dict.fromkeys(line for name, line in said if name == WRITTEN):
        terminalreporter.write_line(f"askance: {line}")


def _check(item: pytest.Item, arguments: dict[str, Any]) -> Regression:
    from .evaluation.judge_file import load_judge
    from .evaluation.regression import check_regression
    from .prompts.errors import AskanceError

    missing = [
        name for name in NEEDED if arguments.get(name) is None and arguments.get(BROUGHT.get(name, name)) is None
    ]
    if missing:
        named = [f"{name} (or {BROUGHT[name]})" if name in BROUGHT else name for name in missing]
        pytest.fail(f"askance: {', '.join(named)} must be given.", pytrace=False)
    options = {name: _beside(item.path.parent, name, value) for name, value in arguments.items()}
    options["update"] = bool(options.get("update")) or item.config.getoption("--askance-update")
    found, problem = None, ""
    try:
        if options.get("judge") is not None:
            options["judge"] = load_judge(options["judge"])
            if options["judge"].not_adopted:
                item.user_properties.append((WRITTEN, options["judge"].not_adopted))
        found = check_regression(**options)
    except AskanceError as error:
        problem = str(error)  # failed below, so that the report shows the sentence and no chain of errors
    if found is None:
        pytest.fail(f"askance: {problem}", pytrace=False)
    if found.wrote is not None:
        item.user_properties.append((WRITTEN, found.message))
    if found.dropped:
        pytest.fail(f"askance: {found.message}", pytrace=False)
    return found


def _beside(folder: Path, name: str, value: Any) -> Any:
    """Return a relative name of a file or a scorer's folder as a path from the test file's folder. Ready checklists and
    hub data sets keep their names."""
    from pathlib import Path

    from .models.trained.scorer_file import is_scorer
    from .prompts.rows import is_on_hub

    if name == "model" and isinstance(value, (str, Path)) and is_scorer(folder / value):
        return str(folder / value)
    if name not in FILES or not isinstance(value, (str, Path)) or is_on_hub(value):
        return value
    if name == "store" and "://" in str(value):
        return value
    if name == "checklist":
        from .prompts.checklist import READY

        if str(value) in READY and not (folder / value).is_file():
            return value
    return str(folder / value)

"""Results show themselves: a short text, escaped HTML, data frames; also within a running event loop."""

from __future__ import annotations

import asyncio
import pickle
import re
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.evaluation.view import Shown, View, html_table
from askance.prompts.errors import InputError, MissingExtraError
from tests.said import says

pytestmark = pytest.mark.usefixtures("sandbox")
EVIL = "<script>alert('x')</script>"


def evaluated(world: Any, **options: Any) -> askance.Evaluation:
    model = world.model("world/target")
    return askance.evaluate(
        world.rows, checklist=world.checklist, model=model, prompt=world.prompt, no_cache=True, resamples=200, **options
    )


def aligned(world: Any, run: Path) -> askance.RunResult:
    model = world.model("world/target")
    return askance.align(
        world.rows,
        checklist=world.checklist,
        model=model,
        prompt=world.prompt,
        run=run,
        max_iterations=1,
        **world.options,
    )


class Things(Shown):
    def __init__(self, count: int) -> None:
        self.count = count

    def _view(self) -> View:
        rows = [{"name": EVIL, "value": n / 3, "none": n or None, EVIL: ["a", "b"]} for n in range(self.count)]
        return View(f"{self.count} {EVIL}", [f"a line of {EVIL}"], {"things": lambda: rows, "no": list})


def test_hostile_text_stays_text() -> None:
    html = Things(2)._repr_html_()
    assert "<script" not in html and html.count("&lt;script&gt;") == 5
    tags = re.findall(r"</?(\w+)", html)
    assert set(tags) == {"div", "b", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert tags.count("td") == 2 * 2 * 4


def test_a_long_table_is_cut_and_says_where_the_rest_is() -> None:
    html = html_table("things", Things(50)._view().tables["things"]())
    assert html.count("<tr>") == 21
    assert says(unescape(html), "30 more rows", ".to_pandas('things')")


def test_a_table_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(InputError, match=r"no table 'thing' \(there are: things, no\). Did you mean 'things'\?"):
        Things(1).to_pandas("thing")


def test_without_pandas_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"askance\[notebook\]"):
        Things(1).to_pandas()


def test_an_evaluation_shows_itself(world: Any) -> None:
    found = evaluated(world)
    brief, said = repr(found), str(found)
    assert brief.startswith("Evaluation: 40 examples by world/target\n  mean score ")
    assert brief.endswith("coverage 100.0%, Spearman with people: quality -0.141") and brief.count("\n") == 1
    assert said.startswith("Evaluation: 40 examples by world/target\n")
    assert "coverage 80/80 verdicts = 100.0%" in said and "Spearman with people, quality: -0.141 [" in said
    assert "quality" in found._repr_html_()
    assert len(said) < 400


def test_an_evaluation_of_few_examples_has_undefined_numbers_and_no_nan(world: Any, make_world: Any) -> None:
    found = evaluated(make_world(2))
    assert "Spearman with people, quality: undefined" in str(found)
    assert "nan" not in found._repr_html_().lower()


def test_an_evaluation_as_data_frames(world: Any) -> None:
    pytest.importorskip("pandas", reason="needs the extra: pip install 'askance[notebook]'")
    found = evaluated(world)
    scores = found.to_pandas()
    assert list(scores.columns) == ["example", "overall", "quality"] and len(scores) == 40
    assert scores["overall"].mean() == pytest.approx(found.means()["overall"])
    verdicts = found.to_pandas("verdicts")
    assert len(verdicts) == 80 and set(verdicts["status"]) == {"ok"}
    assert {"means", "yes_rates", "agreement"} <= set(found._view().tables)


def test_a_run_shows_itself(world: Any, tmp_path: Path) -> None:
    done = world.migrate(tmp_path / "run")
    brief, said = repr(done), str(done)
    assert brief.startswith(f"RunResult: migrate in {tmp_path / 'run'}\n  Gain on test (Spearman): ")
    assert brief.endswith(" rejected.") and brief.count("\n") == 1
    assert f"The whole story: {tmp_path / 'run' / 'report.html'}" in said
    assert repr(pickle.loads(pickle.dumps(done))) == brief
    assert said.startswith(f"RunResult: migrate in {tmp_path / 'run'}\n  It ended because ")
    assert "Gain on validation (Spearman): " in said and "calls" in said
    html = done._repr_html_()
    assert "at the start" in html and "<script" not in html
    pytest.importorskip("pandas", reason="needs the extra: pip install 'askance[notebook]'")
    scores = done.to_pandas()
    assert {"at the start", "accepted"} == set(scores["version"]) and {"validation", "test"} == set(scores["split"])
    edits = done.to_pandas("edits")
    assert len(edits) == len(done.result["accepted_edits"]) + len(done.result["rejected_edits"])
    assert len(done.to_pandas("lessons")) == len(done.result["lessons"])


def test_a_diagnosis_shows_itself(world: Any) -> None:
    model = world.model("world/target")
    found = askance.diagnose(world.rows, checklist=world.checklist, model=model, prompt=world.prompt, no_cache=True)
    assert repr(found).startswith("Diagnosis: 2 questions on 40 examples by world/target")
    assert "facts" in found._repr_html_()
    pytest.importorskip("pandas", reason="needs the extra: pip install 'askance[notebook]'")
    assert list(found.to_pandas()["question"]) == ["facts", "words"]
    assert found.to_pandas("phi").shape == (2, 3)


def test_learned_weights_show_themselves(tmp_path: Path) -> None:
    rows = [
        f'{{"id": "p{n}", "input": "x{n}", "output_a": "a", "output_b": "b", "preferred": "{"ab"[n % 2]}", '
        f'"scores_a": {{"t<1>": {1 - n % 2}, "u": 0.5}}, "scores_b": {{"t<1>": {n % 2}, "u": 0.4}}}}\n'
        for n in range(40)
    ]
    (tmp_path / "prefs.jsonl").write_text("".join(rows), encoding="utf-8")
    found = askance.weigh(tmp_path / "prefs.jsonl", method="robust")
    assert repr(found).startswith("LearnedWeights: 2 tests\n")
    assert "t&lt;1&gt;" in found._repr_html_() and "<1>" not in found._repr_html_()
    pytest.importorskip("pandas", reason="needs the extra: pip install 'askance[notebook]'")
    weights = found.to_pandas()
    assert weights["weight"].sum() == pytest.approx(1)
    assert "uniform" in set(found.to_pandas("learners")["name"])


def test_evaluate_and_align_work_within_a_running_event_loop(world: Any, tmp_path: Path) -> None:
    async def notebook() -> tuple[askance.Evaluation, askance.RunResult]:
        return evaluated(world), aligned(world, tmp_path / "run")

    found, done = asyncio.run(notebook())
    assert found.coverage.share == 1
    assert done.result["mode"] == "align"
    assert found.means() == evaluated(world).means()

"""The page of a migration: its facts, its outputs side by side, and that nothing in it is run."""

from __future__ import annotations

import re
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from askance.memory.certificate_file import CERTIFICATE_FILE, RequirementRates, ShareRecord, target_folder
from askance.prompts.errors import InputError
from askance.report.any_result import kind_of, write_report_of
from askance.report.certificate_data import read_migration, side_by_side
from askance.report.certificate_page import write_certificate_page
from askance.report.run_candidates import Piece

from ..migrated import LESSON, REQUIREMENTS, TESTS, Target, Written, share, sides, write_migration
from ..said import naming, says

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> {{7*7}} \"&amp;'"


def text_of(page: Path) -> str:
    """The words of a page, one line an element."""
    html = re.sub(r"(?s)<(style|script)>.*?</\1>", "", page.read_text(encoding="utf-8"))
    return unescape(re.sub(r"<(?!/?(ins|del|small|bdi|a|strong)\b)[^>]*>", "\n", html).replace("\u00a0", " "))


def section(page: Path, name: str) -> str:
    return page.read_text(encoding="utf-8").partition(f'<section id="{name}">')[2].partition("</section>")[0]


@pytest.fixture
def several(tmp_path: Path) -> Path:
    """One target to adopt, one that is not yet good enough."""
    worse = {
        "difference": ShareRecord(value=-0.09, low=-0.14, high=-0.06, n=40),
        "pass_rate": sides(0.83, 0.52, 0.74),
        "worst": ["short"],
        "by_requirement": [RequirementRates(requirement="short", old=0.9, after=0.57, n=40)],
        "price_per_output": 0.0003,
    }
    targets = [
        Target("vendor/a", TESTS, fields={"price_per_output": 0.0021, "second": share(0.02), "preferred": share(0.54)}),
        Target("vendor/b", TESTS, "not_yet", "Not yet: clearly worse on short.", worse, line=""),
    ]
    judges = {"second_judge": "vendor/second", "judge_agreement": share(0.87, n=60)}
    write_migration(tmp_path, targets, source="vendor/old", **judges, calls=1234, tokens=56789)
    return write_certificate_page(tmp_path)


def test_the_first_screen_says_of_each_target_whether_to_adopt_it(several: Path) -> None:
    first = several.read_text(encoding="utf-8").partition("<nav")[0]
    assert "1 of 2 targets" in first
    assert [*re.findall(r'class="tag (\w+)">([\w ]+)<', first)] == [("applied", "adopt"), ("refused", "not yet")]
    assert "clearly worse on short" in first
    assert says(first, "1,234 calls", "56,789 tokens")


def test_each_target_has_a_row_with_its_figures_and_a_link_to_its_own_page(several: Path) -> None:
    rows = section(several, "targets").split("<tr>")
    ours = next(row for row in rows if ">vendor/b</a>" in row)
    assert 'href="targets/vendor__b/report.html"' in ours
    values = [float(each) for each in re.findall(r'data-value="([\d.-]+)"', ours)]
    assert values == [0.83, 0.52, 0.74, 0.95, 0.81, 0.3, 1.4, 240.0]
    assert "short \N{MINUS SIGN}0.33, proved" in ours


def test_a_page_that_is_written_elsewhere_links_to_nothing_and_tells_no_path(several: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "pages" / "page.html"
    elsewhere.parent.mkdir()
    write_certificate_page(several.parent, elsewhere)
    assert "report.html" not in section(elsewhere, "targets")
    assert str(tmp_path) not in elsewhere.read_text(encoding="utf-8")


def test_the_difference_is_drawn_with_the_margin_and_the_second_judge(several: Path) -> None:
    drawn = section(several, "difference")
    assert drawn.count('class="margin"') == 3  # two targets, and the second judge of one
    labels = re.findall(r'aria-label="([^"]*limits[^"]*)"', drawn)
    assert [says(each, "vendor/a") for each in labels] == [True, True, False]
    assert says(labels[1], "second judge")
    assert says(labels[2].replace("\N{MINUS SIGN}", "-"), "-0.090", "-0.14", "-0.06", "-0.05")


@pytest.mark.parametrize(
    ("prices", "unit", "spots"),
    [
        ((0.001, 0.002), "US dollars for 1,000 outputs", ["m0", "m1"]),
        ((0.001, None), "tokens for an output", ["m0, m1"]),  # both take as many, and are one spot
        ((0.0, 0.0), "tokens for an output", ["m0, m1"]),
    ],
)
def test_quality_is_drawn_against_price_where_every_price_is_known(
    tmp_path: Path, prices: tuple[float | None, ...], unit: str, spots: list[str]
) -> None:
    write_migration(
        tmp_path, [Target(f"m{place}", TESTS, fields={"price_per_output": each}) for place, each in enumerate(prices)]
    )
    drawn = section(write_certificate_page(tmp_path), "quality")
    assert unit in drawn
    assert re.findall(r'class="named"[^>]*>([^<]+)<', drawn) == spots
    assert "old outputs" in drawn


def test_a_regression_names_the_failing_requirement_first_and_marks_the_words_that_differ(several: Path) -> None:
    case = section(several, "regressions").partition("<details")[2].partition("</summary>")
    assert REQUIREMENTS[0].text in case[0]
    assert case[0].index(REQUIREMENTS[0].text) < case[0].index("t1")
    assert "It says open." in case[2]
    assert "be brief" in case[2]
    assert "<del>shut</del>" in case[2]
    assert "<ins>open</ins>" in case[2]


def test_every_regression_is_on_the_page_and_most_are_folded_away(tmp_path: Path) -> None:
    many = [Written(f"t{number}", "in", "old", "new", {"short": (True, False)}) for number in range(30)]
    write_migration(tmp_path, [Target("m", many)])
    shown = section(write_certificate_page(tmp_path), "regressions")
    assert len(set(re.findall(r">(t\d+)<", shown))) == 30
    assert len(set(re.findall(r">(t\d+)<", shown.partition("22 more")[0]))) == 8


def test_rules_that_are_only_shown_make_no_regression(several: Path) -> None:
    assert section(several, "regressions").count('class="candidate"') == 2  # t1, once a target
    assert REQUIREMENTS[2].text not in section(several, "regressions")
    assert "only shown" in section(several, "requirements")


def test_gains_and_what_both_fail_are_listed_apart(several: Path) -> None:
    assert re.findall(r"\bt\d\b", section(several, "gains")) == ["t2", "t2"]
    assert re.findall(r"\bt\d\b", section(several, "both_fail")) == ["t3", "t3"]


def test_each_change_of_a_prompt_stands_with_its_failures_and_its_effect(several: Path) -> None:
    changes = section(several, "prompts")
    assert changes.count(f"<ins>{LESSON}</ins>") == 1
    said = unescape(re.sub(r"<[^>]+>", " ", changes)).replace("\u00a0", " ")
    assert "9 failures" in said
    assert "d00/short" in said
    assert says(" ".join(said.split()), "40 %", "90 %", "+0.120")
    assert said.count("Never copy") == 0
    assert says(" ".join(said.split()), "vendor/b", "no candidate")


def test_what_was_added_after_the_input_stands_with_its_failures_and_its_effect(several: Path) -> None:
    changes = section(several, "prompts")
    assert changes.count("<ins>At most 12 words.</ins>") == 1
    said = unescape(re.sub(r"<[^>]+>", " ", changes)).partition("vendor/b")[0]
    assert says(
        " ".join(said.split()), "2 failures", "d01, d02", "24 development examples", "0.61 to 0.92", "beside schema"
    )
    assert says(" ".join(said.split()), "no better")  # the form, which is in no prompt


def test_the_judge_the_second_judge_and_the_power_are_told(several: Path) -> None:
    told = text_of(several)
    assert says(told, "vendor/judge", "none of", 0.87, "n = 60")
    assert says(told, "vendor/second")
    assert says(told, "40 test examples", "0.120", 224)
    assert "54%" in section(several, "judge")


def test_a_judge_that_is_a_target_is_said_on_the_first_screen(tmp_path: Path) -> None:
    write_migration(tmp_path, [Target("vendor/judge", TESTS)])
    first = text_of(write_certificate_page(tmp_path)).partition("The old outputs")[0]
    assert says(first, "vendor/judge", "its own outputs")


def test_a_later_look_that_did_not_hold_is_said_on_the_first_screen(tmp_path: Path) -> None:
    look = {"decision": "not_yet", "reason": "Not yet: it lost.", "difference": share(-0.1), "pass_rate": share(0.7)}
    write_migration(
        tmp_path,
        [Target("m", TESTS)],
        looks=2,
        verified=[{"time": "2026-12-01T09:30:00+00:00", "targets": {"m": look}}],
    )
    page = write_certificate_page(tmp_path)
    assert says(text_of(page).partition("side by side")[0], "2026-12-01 09:30", "it lost")
    assert "0.700" in section(page, "verified")


def test_texts_of_the_data_stay_texts_and_the_page_asks_nobody(tmp_path: Path) -> None:
    requirement = REQUIREMENTS[0].model_copy(update={"text": HOSTILE, "clause": HOSTILE})
    case = Written(f"e/{HOSTILE}", HOSTILE, f"old {HOSTILE}", f"new {HOSTILE}", {"short": (True, False)}, HOSTILE)
    name = f"v/{HOSTILE}"
    write_migration(tmp_path, [Target("x", [case]), Target("y", [case], reason=HOSTILE)], [requirement], judge=name)
    page = write_certificate_page(tmp_path).read_text(encoding="utf-8")
    assert page.count("alert(1)") > 5
    assert "<script>alert(1)" not in page
    assert "<img src=x" not in page
    assert "{{7*7}}" in page
    assert not re.findall(r"(?:src|href)=\"(?!#|targets/|data:)", page)
    assert "default-src &#39;none&#39;" in page


def test_a_target_without_its_run_is_shown_with_what_the_certificate_says(tmp_path: Path) -> None:
    write_migration(tmp_path, [Target("gone", TESTS, has_run=False)])
    page = write_certificate_page(tmp_path)
    assert says(text_of(page), "gone", "this directory")
    assert "t1" in section(page, "regressions")
    assert section(page, "prompts") == ""


def test_without_verdicts_on_the_old_outputs_regressions_are_still_named(tmp_path: Path) -> None:
    write_migration(tmp_path, [Target("m", TESTS)])
    (tmp_path / "targets" / "m" / "verdicts" / "old-test.jsonl").unlink()
    shown = section(write_certificate_page(tmp_path), "regressions")
    assert "t1" in shown
    assert "<del>shut</del>" in shown


def test_prompts_that_judge_have_the_same_page_without_outputs(tmp_path: Path) -> None:
    fields = {"contract": None, "questions": None, "by_requirement": (), "regressions": ("t1",)}
    write_migration(tmp_path, [Target("m", fields=fields, has_run=False)], (), kind="judge", judge=None)
    page = write_certificate_page(tmp_path)
    told = text_of(page)
    assert "Agreement on test" in told
    assert "Pass rate" not in told
    assert "t1" in section(page, "regressions")
    assert section(page, "requirements") == section(page, "shares") == section(page, "judge") == ""


def test_report_writes_the_page_of_a_directory_and_of_a_certificate(tmp_path: Path) -> None:
    write_migration(tmp_path, [Target("m", TESTS)])
    assert kind_of(tmp_path) == "certificate"
    for given in (tmp_path, tmp_path / CERTIFICATE_FILE):
        (tmp_path / "report.html").unlink(missing_ok=True)
        assert write_report_of(given) == tmp_path / "report.html"
        assert "m</a> may take" not in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["{", '{"targets": {}, "max_loss": 2}', "[]"])
def test_a_damaged_certificate_is_named(tmp_path: Path, text: str) -> None:
    write_migration(tmp_path, [Target("m", TESTS)])
    (tmp_path / CERTIFICATE_FILE).write_text(text)
    with pytest.raises(InputError, match=naming(CERTIFICATE_FILE, "damaged")):
        write_report_of(tmp_path)


def test_a_damaged_row_of_old_outputs_is_named_with_its_line(tmp_path: Path) -> None:
    write_migration(tmp_path, [Target("m", TESTS)])
    with (tmp_path / "outputs.jsonl").open("a") as file:
        file.write('{"id": "t9", "input": "in"}\n')
    with pytest.raises(InputError, match=naming("outputs.jsonl", "line 4", "'output'")):
        write_report_of(tmp_path)


def test_a_target_s_name_that_is_a_path_keeps_its_own_folder(tmp_path: Path) -> None:
    name = "command:python app.py --x #1?"
    write_migration(tmp_path, [Target(name, TESTS)])
    row = section(write_certificate_page(tmp_path), "targets")
    assert 'href="targets/command%3Apython%20app.py%20--x%20%231%3F/report.html"' in row
    shutil.rmtree(tmp_path / "targets" / target_folder(name))
    assert read_migration(tmp_path).targets[0].run is None


def test_outputs_side_by_side_give_both_texts_back_with_whole_words_marked() -> None:
    old, new = '{"a": "one two",\n "b": 3}', '{"a": "one  five",\n "b": 3} tail'
    left, right = side_by_side(old, new)
    assert "".join(each.text for each in left) == old
    assert "".join(each.text for each in right) == new
    assert [each.text for each in left if each.kind == "removed"] == ["two"]
    assert [each.text.strip() for each in right if each.kind == "added"] == ["five", "tail"]
    assert side_by_side("", "") == ([], [])
    assert side_by_side("same words", "same words") == ([Piece("same words")], [Piece("same words")])


def test_a_few_words_that_both_have_within_a_difference_are_part_of_it() -> None:
    left, right = side_by_side("We can not say when it is done today.", "They may not know if it was done today.")
    assert [each.kind for each in left] == ["removed", "same"]
    assert right[-1].text == "done today."


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_browser_shows_it_on_a_phone_and_a_wide_screen_without_a_request(
    several: Path, port: int, browser: Any, scheme: str
) -> None:
    async with browser(port) as tab:
        await tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        for width in (390, 1600):
            screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            await tab.call("Emulation.setDeviceMetricsOverride", **screen)
            await tab.open(several.as_uri())
            assert await tab.run("document.documentElement.scrollWidth") <= width
            assert await tab.run("document.querySelectorAll('#targets th button.sort').length") > 5
        assert tab.complaints == []
        assert {each.partition(":")[0] for each in tab.requests} <= {"file", "data", "about"}

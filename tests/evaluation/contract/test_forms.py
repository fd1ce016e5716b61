"""The form of texts: what checks say of their lines, as a form to be filled in and as a grammar."""

from __future__ import annotations

import re

import pytest

from askance.evaluation.contract.clauses import stated_rules
from askance.evaluation.contract.forms import FormLine, TextForm, form_of
from askance.prompts.checklist import ComputedCheck

PROMPT = """Answer the guest of our hotel.
- The first line is "Dear guest,".
- The second line is one short sentence in bold (between ** and **) that thanks them.
- Then two to four bullet points, each beginning with "- ".
- At most 80 words.
- No exclamation marks.
- The last line is "See you soon".
"""


def checks(prompt: str) -> list[ComputedCheck]:
    return [rule.check for rule in stated_rules(prompt)]


def check(kind: str, value: str, **more: str) -> ComputedCheck:
    return ComputedCheck.model_validate({"id": kind, "kind": kind, "value": value, **more})


def pattern_of(grammar: str) -> str:
    """A grammar of these forms as a regular expression."""
    rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines())
    parts = re.findall(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]\+?|\{\d+,\d+\}|[()]|\w+', rules["root"])
    made = ""
    for part in parts:
        if part[0] == '"':
            made += re.escape(part[1:-1].encode().decode("unicode_escape"))
        elif part in rules:
            inside = (
                rules[part]
                .replace("sign", "(?:SIGN)")
                .replace("] ", "]")
                .replace("} ", "}")
                .replace(" (?:SIGN", "(?:SIGN")
            )
            made += inside.replace("SIGN", rules["sign"].replace(' | "." ', r"|\."))
        else:
            made += part
    return made


def test_lines_that_clauses_fix_stand_in_their_order() -> None:
    form = form_of(checks(PROMPT))
    assert form is not None
    first, bold, points, last = form.lines
    assert (first, last) == (FormLine("Dear guest,"), FormLine("See you soon"))
    assert (bold.begins, bold.ends) == ("**", "**")
    assert "thanks them" in str(bold.holds) and "bold" not in str(bold.holds)
    assert (points.begins, points.least, points.most) == ("- ", 2, 4)
    assert (form.most_words, form.without) == (80, "*!")


def test_the_form_in_words_shows_every_line_and_a_limit_that_is_tighter() -> None:
    shown = form_of(checks(PROMPT)).text.splitlines()  # type: ignore[union-attr]
    assert [line[:3] for line in shown] == ["Dea", "**<", "- <", "- <", "- <", "- <", "See"]
    [words] = {int(number) for line in shown for number in re.findall(r"at most (\d+) words", line)}
    assert words * 5 + 5 <= 80 * 0.6


def test_the_grammar_takes_texts_of_the_form_and_no_others() -> None:
    grammar = pattern_of(form_of(checks(PROMPT)).grammar)  # type: ignore[union-attr]
    good = "Dear guest,\n**Thank you.**\n- Breakfast is at 7.\n- Park behind the house.\nSee you soon"
    assert re.fullmatch(grammar, good)
    one_point = good.replace("- Breakfast is at 7.\n", "")
    for bad in (f"Sure:\n{good}", f"{good}\nBye", one_point, good.replace("**", ""), good.replace("7.", "7!")):
        assert not re.fullmatch(grammar, bad)
    endless = good.replace("Thank you.", "Thank you " * 60)
    assert not re.fullmatch(grammar, endless)


def test_outputs_show_what_stands_between_the_lines() -> None:
    criteria = [check("ends", "Kind regards"), check("matches", r"(?m)^\s*[-*•] ").model_copy(update={"id": "bullets"})]
    outputs = ["Some words.\nMore words.\n- a\n- b\nAnd so on.\nKind regards", "Words.\n- a\nEnd.\nKind regards"]
    form = form_of(criteria, [*outputs, "It does not keep the form, and is not read."])
    assert form is not None
    assert [(line.begins, line.most) for line in form.lines] == [("", 2), ("- ", 12), ("", 1), ("Kind regards", 1)]
    assert re.fullmatch(pattern_of(form.grammar), outputs[0])
    assert not re.fullmatch(pattern_of(form.grammar), outputs[0].replace("Kind regards", "Yours"))


def test_headings_stand_over_free_text() -> None:
    form = form_of(checks('Use the headings "Cause", "Remedy (short)" and "Outlook".'))
    assert form is not None
    assert [line.begins for line in form.lines] == ["## Cause", "", "## Remedy (short)", "", "## Outlook", ""]
    text = "## Cause\nRain.\n## Remedy (short)\nAn umbrella.\nA coat.\n## Outlook\nSun."
    assert re.fullmatch(pattern_of(form.grammar), text)


def test_a_beginning_may_end_within_its_line() -> None:
    form = form_of([check("begins", "Title:\nSummary of")])
    assert form is not None
    assert [(line.begins, line.holds) for line in form.lines[:2]] == [("Title:", None), ("Summary of ", "text")]
    quoted = TextForm((FormLine('He said "so\\'),)).grammar.splitlines()[0]
    assert quoted == r'root ::= "He said \"so\\"'


@pytest.mark.parametrize("prompt", ["Be kind. At most 50 words.", "No headings.", ""])
def test_without_a_line_that_is_fixed_there_is_no_form(prompt: str) -> None:
    assert form_of(checks(prompt), ["Some text.", "Other text."]) is None

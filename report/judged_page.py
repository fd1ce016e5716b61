"""The reports of ``evaluate`` and ``diagnose``, made from their JSON output or from their files of verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from ..evaluation.evaluation_result import evaluation_view
from ..evaluation.findings import NOTHING_FOUND, diagnosis_view, sorted_findings
from ..evaluation.pass_fail import NAMES, form_of, pass_fail_lines
from ..evaluation.scoring import whole_name, whole_of
from ..evaluation.view import Rows, agreement_headline
from ..memory.decision import FULL, Choice
from ..prompts.formatting import Figure, count, number, percent
from ..stats.phi import PhiMatrix
from .charts import heat_map, histogram, tallest_bar
from .page import (
    UNANSWERED,
    FirstScreen,
    Section,
    Tile,
    cost_tile,
    examples_section,
    render_result_page,
    view_sections,
)
from .run_figures import MAPPED_QUESTIONS

FINDINGS = 6
VERDICTS = "the verdicts file (-o) shows single verdicts, failures with their reasons, and each example's texts"


@dataclass(frozen=True)
class JudgedFile:
    """Results of a judge, as read from result files."""

    command: str
    name: str
    data: Mapping[str, Any]
    """Output of ``evaluate --json`` or ``diagnose --json``, or both in one."""
    lacking: Sequence[str] = (VERDICTS,)
    """Files and options that are needed to show more."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Known texts of questions, by id."""
    p_yes: Mapping[str, float | None] = field(default_factory=dict)
    phi: PhiMatrix | None = None
    """How alike questions are answered; None if single verdicts are not known."""
    people: Sequence[float | None] = ()
    """People's scores of the examples."""
    failures: Rows = ()
    """Missing answers, by reason."""
    examples: Section | None = None
    """Table of examples; None if single verdicts are not known."""


def render_judging(found: JudgedFile) -> str:
    """Render the page of a judge's results as HTML."""
    data = found.data
    sections: list[Section] = []
    if "questions" in data:
        view = diagnosis_view(data)
        rows = [_question(found, place, row) for place, row in enumerate(view.tables["questions"]())]
        drawn = {"rows": rows, "drawn": ("yes",)}
        findings = [{"finding": each} for each in sorted_findings(data["findings"])[0]]
        sections += view_sections(view, "questions", "dimensions", questions=drawn)
        sections += [_pairing(found, len(rows)), *view_sections(view, "most_alike", "least_related")]
        if len(findings) > FINDINGS:
            sections.append(Section("findings", "Worth acting on", findings))
    if "scores" in data:
        yes = {"drawn": ("yes",), "id": "questions"}
        sections = [*view_sections(evaluation_view(data), "yes_rates", yes_rates=yes), *sections]
        sections += [_pass_fail(data), *view_sections(evaluation_view(data), "slices")]
        sections += view_sections(
            evaluation_view(data), "agreement", "rater_agreement", "by_rater", "per_document", "per_system", "means"
        )
        sections += [_spread(found), found.examples or _examples(data)]
    sections.append(_missing(found))
    return render_result_page(_screen(found), sections)


def _question(found: JudgedFile, place: int, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the table of questions, with a text and a button that shows the examples answered no."""
    name, yes_rate = row["question"], row["yes"].value
    text = found.texts.get(name, name)
    p_yes = found.p_yes.get(name)
    button = Markup(
        '<button type="button" class="open" data-only="{}" aria-label="Examples with a no to {}">answered no</button>'
    ).format(place, name)
    dimension = row["dimension"] if len(found.data["dimensions"]) > 1 else None
    good = {"good": row["good"]} if "good" in row else {}
    made = {"question": name, "text": None if text == name else text, **good, "dimension": dimension, "yes": row["yes"]}
    made["probability"] = None if p_yes is None else Figure(p_yes, form=".2f")
    made |= {each: row[each] for each in ("spearman", "answer", "flips", "coverage")}
    # Later questions may have no filter in the table of examples: verdicts_page.py keeps the first 200.
    return made | {
        "examples": button if found.examples and yes_rate is not None and yes_rate < 1 and place < 190 else None
    }


def _pass_fail(data: Mapping[str, Any]) -> Section:
    """Return the section on passed outputs and on the agreement of the judge's verdicts with people's."""
    names = {"pass_rate": "pass rate by the judge", "corrected_pass_rate": "pass rate that people would give"}
    names |= {"people_pass_rate": "pass rate by people", **NAMES}
    rows = [
        {"figure": label, "value": Figure.of(data[name], form_of(name)), "n": data[name]["n"]}
        for name, label in names.items()
        if name in data
    ]
    lines = [f"{line[:1].upper()}{line[1:]}." for line in pass_fail_lines(data)]
    return Section("pass_fail", "Pass or fail", rows, note=" ".join(lines))


def _pairing(found: JudgedFile, questions: int) -> Section:
    """Return the section with a picture of phi for every pair of questions."""
    effective = found.data["all_questions"]["effective_questions"]
    note = "Phi of pairs of questions over their answers, by their place above: 1 where two are always answered alike."
    if effective is not None:
        note += f" The {questions} questions ask about as much as {number(effective, 1)} independent ones."
    title = "Which questions go together"
    if found.phi is None or not found.data["all_questions"]["pairs"]:
        return Section("together", title, note=note if found.data["all_questions"]["pairs"] else "")
    shown = found.phi.only([each["id"] for each in found.data["questions"]][:MAPPED_QUESTIONS])
    drawn = [("", heat_map(shown, range(1, len(shown.questions) + 1)))]
    legend = [("swatch above", "alike"), ("swatch below", "opposite"), ("swatch none", "undefined")]
    return Section("together", title, note=note, pictures=drawn, legend=legend)


def _spread(found: JudgedFile) -> Section:
    """Return the section with the judge's and people's scores of the same examples, in tenths of the scale."""
    low, high = found.data["scale"]
    ours = [None if row["overall"] is None else (row["overall"] - low) / (high - low) for row in found.data["scores"]]
    columns = {"The judge": ours} | ({"People": found.people} if found.people else {})
    known = [values for values in zip(*columns.values(), strict=True) if None not in values]
    if not known:
        return Section("spread", "How the scores are spread")
    drawn = dict(zip(columns, zip(*known, strict=True), strict=True))
    tallest = tallest_bar(list(drawn.values()))
    pictures = [
        (f"{name}, mean {number(low + (high - low) * sum(values) / len(values))}", histogram(values, kind, tallest))
        for (name, values), kind in zip(drawn.items(), ("after", "people"), strict=False)
    ]
    mapped = "; people's are mapped to the same scale" if found.people else ""
    note = f"Scores of {count(len(known), 'example')} in tenths of the scale{mapped}."
    return Section("spread", "How the scores are spread", note=note, pictures=pictures)


def _examples(data: Mapping[str, Any]) -> Section:
    rows = data["scores"]
    dimensions = list(rows[0]["dimensions"]) if rows else []
    values = {whole_name(dimensions): [each["overall"] for each in rows]}
    if len(dimensions) > 1:
        values |= {name: [each["dimensions"][name] for each in rows] for name in dimensions}
    note = "The lowest scores first; an example with a missing verdict has no score and stands last."
    return examples_section([each["example"] for each in rows], values, note, down=False)


def _missing(found: JudgedFile) -> Section:
    seen = found.data["coverage"]
    missing = (seen[kind] for kind in ("abstained", "parse_errors", "api_errors"))
    counted = (count(number, what) for number, what in zip(missing, UNANSWERED.values(), strict=True))
    note = "Every verdict that was asked for is there."
    if seen["share"] < 1:
        note = (
            f"{seen['asked'] - seen['answered']:,} of {seen['asked']:,} verdicts are missing: {', '.join(counted)}. "
            "None of them was counted as a yes or a no; running the command again asks for the missing ones alone."
        )
    more = f" More can be shown: {'; '.join(found.lacking)}." if found.lacking else ""
    return Section("missing", "What is missing, and why", found.failures, note + more)


def _screen(found: JudgedFile) -> FirstScreen:
    """Return the first screen: the findings in words."""
    data, seen = found.data, found.data["coverage"]
    pooled = {name: Figure.of(row["pooled"], key="spearman") for name, row in data.get("agreement", {}).items()}
    first = sorted(pooled.items(), key=lambda each: each[0] != "overall")[:1]
    known = {name: each for name, each in pooled.items() if each.value is not None}
    findings, notes = sorted_findings(data.get("findings", ()))
    rates = [each for each in _rates(data) if each is not None]
    yes_rate = sum(rates) / len(rates) if rates else None
    mean = whole_of(data["means"]) if "means" in data else None
    choice, headline = _headline(found, known, findings, mean, yes_rate)
    examples = len(data["scores"]) if "scores" in data else data["examples"]
    tiles = [
        *_pass_tiles(data),
        *(Tile(f"Spearman with people, {name}", each, each.reason or "") for name, each in first),
        *([Tile("Mean score", Figure(mean, form=".2f"), "over all questions")] if "means" in data else []),
        *(
            [Tile("Answers that are yes", percent(yes_rate), "mean over the questions")]
            if "own_questions" not in data
            else []
        ),
        Tile("Coverage", percent(seen["share"], 1), f"{seen['answered']:,} of {seen['asked']:,} verdicts"),
        *([_independent(data)] if "all_questions" in data else []),
        *([cost_tile(data)] if "calls" in data else []),
    ]
    return FirstScreen(
        found.command,
        found.name,
        choice,
        headline,
        f"{_questions(data)} on {count(examples, 'example')}: {seen['answered']:,} of "
        f"{seen['asked']:,} verdicts are there ({percent(seen['share'], 1)}). {' '.join(notes)}".strip(),
        tiles[:4],
        findings[:FINDINGS],
        "Worth acting on",
        who=f"{data['model']} is the judge; its prompt has the hash {data['prompt']}.",
    )


def _headline(
    found: JudgedFile, known: Mapping[str, Figure], findings: Sequence[str], mean: float | None, yes: float | None
) -> tuple[Choice, str]:
    """Return the tone and the headline of the first screen."""
    seen = found.data["coverage"]
    choice: Choice = "keep" if seen["share"] >= FULL else "undecided"
    if not seen["answered"]:
        return "undecided", "Not one question was answered"
    if known:
        agrees = any(each.side == 1 for each in known.values())
        return choice if agrees else "undecided", agreement_headline(known)
    if found.command == "diagnose" and findings:
        what = "is one thing" if len(findings) == 1 else f"are {len(findings)} things"
        return "undecided", f"There {what} worth acting on"
    if found.command == "diagnose":
        return choice, NOTHING_FOUND.rstrip(".")
    return choice, f"The mean score is {number(mean)}" if mean is not None else f"{percent(yes)} of the answers are yes"


def _pass_tiles(data: Mapping[str, Any]) -> list[Tile]:
    """Return the tiles on passed outputs; none if the threshold for a pass is not known."""
    if "pass_rate" not in data:
        return []
    tiles = [
        Tile("Pass rate by the judge", Figure.of(data["pass_rate"], ".1%"), f"of {data['pass_rate']['n']} outputs")
    ]
    if (found := data.get("corrected_pass_rate")) is not None:
        corrected = Figure.of(found, ".1%")
        tiles.append(
            Tile("Pass rate that people would give", corrected, found.get("reason") or "corrected for its errors")
        )
    if "kappa" in data:
        tiles.append(Tile("Cohen's kappa with people", Figure.of(data["kappa"]), data["kappa"].get("reason") or ""))
    return tiles


def _independent(data: Mapping[str, Any]) -> Tile:
    effective = Figure(data["all_questions"]["effective_questions"], form=".1f")
    return Tile("Independent questions", effective, f"that the {len(data['questions'])} ask about as much as")


def _rates(data: Mapping[str, Any]) -> list[float | None]:
    """Return the questions' shares of yes."""
    return [each["yes_rate"] for each in data["questions"]] if "questions" in data else list(data["yes_rates"].values())


def _questions(data: Mapping[str, Any]) -> str:
    """Return the number of questions in words."""
    if "own_questions" in data:
        return f"{count(sum(map(len, data['own_questions'].values())), 'question')}, each example's own,"
    return count(len(_rates(data)), "question")

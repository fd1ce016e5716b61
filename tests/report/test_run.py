from __future__ import annotations

import json
import re
import shlex
import shutil
from dataclasses import replace
from html.parser import HTMLParser

import click
import pytest
from click.testing import CliRunner

from askance.cli import cli
from askance.commands.report import command
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.prompt import Prompt
from askance.report.charts import Scale
from askance.report.page import clip
from askance.report.run_candidates import candidates
from askance.report.run_data import read_run
from askance.report.run_lessons import evidence_by_key, lessons
from askance.report.run_page import repeat_command, write_report
from askance.runs import migrate
from askance.testing import ScriptedModel
from tests.said import says

HOSTILE = '</script></pre><script>alert(1)</script><img src=x onerror=alert(2)> {{7*7}} "&amp;'
RULE = "<script>alert(3)</script><svg onload=alert(4)>"
ADDRESS = "https://example.invalid/x.js"


def unit(*parts):
    return (hash_of(parts) % 1000) / 1000


def hash_of(parts):
    value = 7
    for character in "|".join(map(str, parts)):
        value = (value * 131 + ord(character)) % 1_000_003
    return value


def reply(request):
    """A source that knows the truth, and a target that learns it from rules in its prompt."""
    system, asked = request.messages[0][1], request.messages[-1][1]
    if request.parameters.schema:
        fields = request.parameters.schema["properties"]
        if "kinds" in fields:
            return json.dumps({"kinds": ["a fault of one kind", "a fault of another kind"]})
        if "answer_no_if" in fields:
            text = f"the output has fault {hash_of([asked]) % 3} {RULE}"
            return json.dumps({"quote": "q", "fact": "f", "kind": text[:80], "answer_no_if": text})
        if "answer_yes_even_if" in fields:
            return json.dumps({"quote": "q", "fact": "f", "kind": "k", "answer_yes_even_if": "the output is short"})
        if "relation" in fields:
            return json.dumps({"relation": "new", "of": 0, "merged": ""})
        if "contradicts" in fields:
            return json.dumps({"reason": "They are about different things.", "contradicts": False})
        lesson = asked.split("The lesson that it must say: ")[1].strip()
        return json.dumps({"part": 1, "action": "add", "text": lesson})
    if "what in the output decides" in asked:
        return f"Because of the words {HOSTILE}"
    number = int(re.search(r"summary number (\d+)", "\n".join(text for _, text in request.messages))[1])
    truth = number % 5 / 4
    if "strict" in system:
        return 0.05 + 0.9 * truth
    rules = min(3, system.count("Answer no if"))
    return 0.75 + rules * 0.12 * (truth - 0.5) + 0.1 * (unit(number, len(asked)) - 0.5)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run as an earlier version made them: its lessons may hold markup, which pages have to stand."""
    with pytest.MonkeyPatch.context() as patch:
        for guarded in ("rules", "updater"):
            patch.setattr(f"askance.agents.{guarded}.foreign_order", lambda text, ours: None)
        return hostile_run(tmp_path_factory.mktemp("runs") / "first")


def hostile_run(run):
    rows = [
        {
            "id": f"e{number}/<i>",
            "input": f"{HOSTILE} {ADDRESS} document {number} " + "long " * 2000,
            "output": f"summary number {number}",
            "human": {"<b>truth</b>": number % 5 + 1},
        }
        for number in range(40)
    ]
    questions = [Question(id='q"><script>', text=f"Is it true? {HOSTILE}", dimension="<b>truth</b>")]
    migrate(
        rows,
        checklist=Checklist(task=HOSTILE, questions=questions),
        source=ScriptedModel(reply, name="big/<u>judge"),
        target=ScriptedModel(reply, name="small/judge"),
        prompt=Prompt(f"You judge. {HOSTILE}\n{ADDRESS}\n"),
        source_prompt=Prompt("Be strict."),
        run=run,
        embedder="words",
        update="edits",
        max_notes=4,
        max_iterations=3,
        resamples=200,
        alpha=0.2,
        trial=False,
        prune=False,
    )
    return run


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def change_result(run, **changes):
    file = run / "result.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | changes), encoding="utf-8")


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, file):
        super().__init__()
        self.tags, self.attributes, self.text, self._open = [], [], "", []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *each) for each in attrs]

    def handle_data(self, data):
        self.text += data


def words(text):
    return " ".join(text.split())


def test_the_report_is_written_into_the_run_and_where_it_is_asked_for(run, tmp_path):
    assert write_report(run) == run / "report.html"
    other = write_report(run, tmp_path / "new" / "r.html")
    assert other.read_bytes() == (run / "report.html").read_bytes()
    assert not list(run.glob("*.part"))


def test_the_command_prints_where_the_report_is(run, tmp_path):
    done = CliRunner().invoke(command, [str(run), "-o", str(tmp_path / "r.html")])
    assert done.exit_code == 0
    assert done.output.strip() == str(tmp_path / "r.html")


def test_the_page_asks_for_nothing_outside_itself(run):
    page = Page(write_report(run))
    links = [value for _, name, value in page.attributes if name in ("href", "src", "srcset", "action", "data")]
    assert links
    assert all(link.startswith("#") or link == "data:," for link in links)
    assert not {"iframe", "object", "embed", "base", "form", "img"} & set(page.tags)
    style = (run / "report.html").read_text(encoding="utf-8").split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style
    assert any(name == "content" and "default-src 'none'" in value for _, name, value in page.attributes)


def test_every_link_within_the_page_has_its_target(run):
    page = Page(write_report(run))
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value[1:] for _, name, value in page.attributes if name == "href" and value[0] == "#"} <= set(ids)


def test_hostile_text_stays_text(run):
    page = Page(write_report(run))
    assert page.tags.count("script") == 2, "the script, and the data of the examples, which is none"
    assert ("script", "type", "application/json") in page.attributes
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert not {"img", "u", "i", "b"} & set(page.tags)
    assert page.text.count(HOSTILE) >= 5
    assert "<b>truth</b>" in page.text
    assert 'q"><script>' in page.text


def test_every_edit_shows_its_lessons_the_disagreements_behind_them_and_its_effect(run):
    data = read_run(run)
    tried = candidates(data)
    accepted = [each for each in tried if each.accepted]
    assert accepted, "the fixture's run must accept something"
    page = words(Page(write_report(run)).text)
    for candidate in accepted:
        assert f"{candidate.gain.value:+.3f}" in page
    for lesson in lessons(data, tried):
        assert words(lesson.found.text) in page
        for example, group in lesson.cases:
            assert example in page
            assert data.examples[example]["output"] in page
            assert group


def test_a_lesson_that_was_merged_after_it_was_applied_counts_as_applied(run):
    data = read_run(run)
    rows = [row | {"status": "merged"} for row in data.result.to_dict()["lessons"]]
    change_result(run, lessons=rows)
    data = read_run(run)
    tried = candidates(data)
    applied = {name for each in tried if each.accepted for name in each.lessons}
    assert {each.found.id for each in lessons(data, tried) if each.status == "applied"} == applied


def test_explanations_and_probabilities_are_shown_where_the_journal_has_them(run):
    file = run / "journal.jsonl"
    events = []
    for line in file.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["event"] == "reasons":
            continue
        events.append(event)
        if event["event"] == "disagreements" and event["read"]:
            for row in event["read"]:
                row |= {"target": True, "reference": False, "target_p_yes": 0.93, "reference_p_yes": 0.62}
            keys = [f"{row['example']}/{row['question']}" for row in event["read"]]
            reasons = {"target": dict.fromkeys(keys, "mine <s>"), "reference": dict.fromkeys(keys, "theirs")}
            events.append({"event": "reasons", "iteration": event["iteration"], **reasons})
    file.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    page = words(Page(write_report(run)).text)
    assert "mine <s>" in page
    assert "theirs" in page
    assert "probability of yes 0.93" in page
    assert "the same answer" in page
    assert "no explanations" not in page


def test_a_run_without_explanations_says_so_and_claims_no_answer_that_it_does_not_know(run):
    file = run / "journal.jsonl"
    events = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    events = [event for event in events if event["event"] != "reasons"]
    for row in (row for event in events if event["event"] == "disagreements" for row in event["read"]):
        row.pop("target_p_yes", None)
        row.pop("reference_p_yes", None)
    file.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    assert {each.target.words for each in evidence_by_key(read_run(run)).values()} <= {"towards yes", "towards no"}
    assert "holds no explanations" in words(Page(write_report(run)).text)


def test_a_run_in_which_nothing_was_accepted_says_so(run):
    result = read_run(run).result.to_dict()
    rejected = [*result["accepted_edits"], *result["rejected_edits"]]
    change_result(run, accepted_edits=[], rejected_edits=rejected, best=result["baseline"], gain={"test": None})
    page = words(Page(write_report(run)).text)
    assert "Keep the starting prompt" in page
    assert "Nothing was gained" in page
    assert "No edit was" in page and "starting prompt, unchanged." in page


def test_a_run_that_a_budget_ended_before_the_test_says_what_is_missing(run):
    result = read_run(run).result.to_dict()
    without = {"test": None, "reason": "the test was not judged: The budget of 9 calls is used up."}
    sides = {"baseline": result["baseline"] | without, "best": result["best"] | without}
    change_result(
        run, **sides, gain={"validation": result["gain"]["validation"], "test": None}, finish_reason="max_calls"
    )
    page = words(Page(write_report(run)).text)
    assert "Undecided: not tested" in page
    assert "Test, accepted prompt:" in page and "of 9 calls is" in page
    assert "Not judged" not in page
    assert page.count("The test was") == 1
    assert "on validation only" in page
    change_result(run, best=result["baseline"] | without, accepted_edits=[])
    page = words(Page(write_report(run)).text)
    assert "on validation only" in page
    assert "on validation only, where" not in page


def test_damaged_lessons_are_said_and_the_page_has_those_of_the_result(run, caplog):
    (run / "lessons.jsonl").write_text('{"id": 5}\n', encoding="utf-8")
    write_report(run)
    (said,) = (each.getMessage() for each in caplog.records)
    assert says(said, "lessons.jsonl", "line 1", "result.json")


def test_a_price_that_is_known_of_some_calls_is_said_for_them(run):
    roles = {"source": {"calls": 3}, "note_taker": {"calls": 2, "unpriced_calls": 2, "cost_usd": None}}
    change_result(run, cost_usd=None, known_usd=1.5, unpriced_calls=2, roles=roles)
    said = "tokens, $1.50 and what 2 calls of note_taker cost, whose price is unknown"
    assert said in words(Page(write_report(run)).text)


def test_a_price_that_is_not_known_is_not_taken_for_none(run):
    for cost, said in ((None, "tokens, price unknown"), (0.0, "tokens, $0.00"), (1.5, "tokens, $1.50")):
        change_result(run, cost_usd=cost)
        assert said in words(Page(write_report(run)).text)


def test_an_undefined_correlation_is_called_so_with_its_reason(run):
    result = read_run(run).result.to_dict()
    undefined = {"spearman": None, "kendall": None, "pearson": None, "low": None, "high": None, "n": 16}
    undefined |= {"reason": "all scores are the same", "dimensions": {"d": {**undefined, "reason": "same"}}}
    change_result(run, baseline=result["baseline"] | {"test": undefined, "validation": undefined})
    change_result(run, best=result["best"] | {"test": undefined})
    page = words(Page(write_report(run)).text)
    assert "correlation is undefined" in page
    assert "nan" not in page.lower().split()


def test_only_examples_behind_disagreements_or_of_the_test_are_embedded_and_long_texts_are_cut(run):
    data = read_run(run)
    read = {key.example for key in evidence_by_key(data).values()}
    assert set(data.examples) == read | set(data.of("split")[-1]["test"])
    assert len(data.examples) < 40
    page = Page(write_report(run)).text
    assert "inputs/examples.jsonl" in page
    assert clip("a" * 6_001) == ("a" * 6_000, 1)


def test_the_report_tells_no_path_and_no_secret_of_an_address(run):
    config = (run / "config.yaml").read_text(encoding="utf-8")
    secret = "http://user:hunter2@host.invalid/v1?key=hunter3"
    (run / "config.yaml").write_text(re.sub(r"api_base: .*", f"api_base: {secret}", config), encoding="utf-8")
    text = write_report(run).read_text(encoding="utf-8")
    assert "host.invalid/v1" in text
    assert "hunter" not in text
    assert str(run.parent) not in text


def test_the_command_to_repeat_names_what_differs_from_the_defaults(run):
    repeated = repeat_command(read_run(run))
    assert "--max-notes 4" in repeated
    assert "--patience" not in repeated
    assert "--source 'big/<u>judge'" in repeated


def test_the_command_to_repeat_is_one_that_the_command_line_takes_as_it_is(run):
    data = read_run(run)
    changed = {
        "racing": False,
        "trial": False,
        "alpha": 0.05,
        "labels": {"good": ["fine"]},
        "split": [0.4, 0.3, 0.3],
    }
    _, mode, *arguments = shlex.split(
        repeat_command(replace(data, config={**data.config, **changed})).replace("\\\n", "")
    )
    assert not any("fine" in each for each in arguments)
    parsed = cli.get_command(click.Context(cli), mode).make_context(mode, list(arguments)).params
    assert {name: parsed[name] for name in changed if name != "labels"} == {
        **{name: changed[name] for name in ("racing", "trial", "alpha")},
        "split": (0.4, 0.3, 0.3),
    }
    assert "--alpha" in arguments


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("result.json", None, "askance resume"),
        ("result.json", "{", "damaged"),
        ("result.json", "{}", "result.json: damaged, or not written by askance: the field 'mode' is missing"),
        ("result.json", "[]", "result.json: damaged, or not written by askance"),
        ("journal.jsonl", "nonsense\n", "damaged"),
        ("config.yaml", None, "there is no run"),
    ],
)
def test_a_run_that_cannot_be_reported_is_refused_with_a_reason(run, file, text, says):
    if text is None:
        (run / file).unlink()
    else:
        (run / file).write_text(text, encoding="utf-8")
    (run / "report.html").unlink(missing_ok=True)
    with pytest.raises(InputError, match=says):
        write_report(run)
    assert not (run / "report.html").exists()


@pytest.mark.parametrize("values", [[], [0.0], [-0.4, 0.9], [1e-4], [-2.0, 2.0, None]])
def test_an_axis_holds_zero_and_all_values_and_has_few_ticks(values):
    scale = Scale.over(values)
    assert scale.low <= min([0.0, *(value for value in values if value is not None)])
    assert scale.high >= max([0.0, *(value for value in values if value is not None)])
    assert 0.0 in scale.ticks
    assert 2 <= len(scale.ticks) <= 10

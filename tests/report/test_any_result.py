"""Reports of what evaluate, diagnose, weigh, select and compare leave behind."""

from __future__ import annotations

import base64
import json
import random
import re
import time
from contextlib import suppress
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner

from askance.commands.make_checklist import write_selection
from askance.commands.report import command
from askance.evaluation.compare.compare import compare
from askance.evaluation.diagnose import diagnose
from askance.evaluation.evaluate import evaluate
from askance.optimizer.selection.select import select
from askance.optimizer.weights.weigh import weigh
from askance.prompts.checklist import Checklist, Question, dump_checklist
from askance.prompts.errors import AskanceError, InputError
from askance.prompts.verdicts import save_verdicts
from askance.report.any_result import write_report_of
from askance.report.page import MISSING, probability_byte
from askance.report.verdicts_page import Beside
from askance.testing import ScriptedModel

from ..said import naming, says

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> {{7*7}} \"&amp;'"
SIZE = 40
QUESTIONS = (("facts", "Are the facts right?"), ("style", f"Is the style plain? {HOSTILE}"), ("all", "Is it a text?"))


def truth(number: int, question: str) -> float:
    if question == "all":
        return 0.97
    return 0.1 + 0.8 * ((number * (3 if question == "facts" else 7)) % 10) / 10


def reply(request):
    text = "\n".join(content for _, content in request.messages)
    number = int(re.findall(r"output <(\d+)>", text)[0])
    asked = next((name for name, words in QUESTIONS if words in text), None)
    if asked and number == 5 and asked == "facts":
        return f"I would rather not. {HOSTILE}"
    if asked:
        return truth(number, asked)
    return str(1 + round(4 * truth(number, "facts"))) if "number from" in text else truth(number, "facts")


def rows():
    return [
        {
            "id": f"e{number}/<i>",
            "input": f"In {number}. {HOSTILE}",
            "output": f"output <{number}>",
            "human": {"quality": 1 + 3 * truth(number, "facts") + truth(number, "style")},
        }
        for number in range(SIZE)
    ]


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """A directory with one file of each kind."""
    place = tmp_path_factory.mktemp("results")
    (place / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()), encoding="utf-8")
    questions = [Question(id=name, text=text, dimension="quality") for name, text in QUESTIONS]
    checklist = Checklist(task="Write.", questions=questions)
    (place / "checklist.yaml").write_text(dump_checklist(checklist), encoding="utf-8")
    judge = ScriptedModel(reply, name="small/<b>judge")
    options = {"checklist": checklist, "model": judge, "no_cache": True}
    found = evaluate(rows(), **options, resamples=100)
    save_verdicts(place / "verdicts.jsonl", found.verdicts)
    diagnosis = diagnose(rows(), checklist=checklist, verdicts=found.verdicts)
    compared = compare(rows(), judges=["binary", "direct"], **options, resamples=100, explain="never")
    chosen = select(
        rows(), model=judge, candidates=checklist, no_cache=True, k=2, halves=2, ranking_resamples=4, embedder="words"
    )
    write_selection(chosen, place / "selected" / "checklist.yaml")
    chance = random.Random(1)
    pairs = []
    for number in range(80):
        a, b = ({"<u>wit": chance.random(), "facts": chance.random()} for _ in range(2))
        ahead = a["facts"] - b["facts"] + 0.2 * chance.random()
        pairs.append({"id": str(number), "scores_a": a, "scores_b": b, "preferred": "a" if ahead > 0 else "b"})
    (place / "prefs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pairs), encoding="utf-8")
    rated = [
        {"id": row["id"], "input": "", "output": "o", "human": {"overall": row["scores_a"]["facts"]}}
        | {"scores": row["scores_a"]}
        for row in pairs
    ]
    (place / "rated.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rated), encoding="utf-8")
    for name, content in {
        "weights": weigh(place / "prefs.jsonl").to_dict(),
        "rating_weights": weigh(ratings=place / "rated.jsonl").to_dict(),
        "comparison": compared.to_dict(ratings=True),
        "printed_comparison": compared.to_dict(),
        "evaluation": found.to_dict(),
        "diagnosis": diagnosis.to_dict(),
    }.items():
        (place / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return place


KINDS = {
    "weights.json": "weights",
    "rating_weights.json": "weights",
    "comparison.json": "direct agrees better with people than binary",
    "printed_comparison.json": "direct agrees better with people than binary",
    "evaluation.json": "Agreement with people|Spearman",
    "diagnosis.json": "worth acting on|change",
    "verdicts.jsonl": "yes|score",
    "selected/selection.json": "questions keep",
}


class Page(HTMLParser):
    """Tags and text of a page."""

    def __init__(self, file):
        super().__init__()
        self.tags, self.attributes, self.text, self.heading, self._in = [], [], "", "", ""
        self.feed(file.read_text(encoding="utf-8"))
        self.text, self.heading = (" ".join(text.split()) for text in (self.text, self.heading))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._in = tag
        self.attributes += [(tag, *each) for each in attrs]

    def handle_data(self, data):
        if self._in not in ("script", "style"):
            self.text += data + " "
        if self._in == "h1":
            self.heading += data


def written(left, tmp_path, name, **beside):
    return write_report_of(left / name, tmp_path / "page.html", Beside(**beside))


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_has_a_page_that_begins_with_what_was_found_and_asks_no_network(left, tmp_path, name):
    page = Page(written(left, tmp_path, name))
    assert re.search(KINDS[name], page.heading), page.heading
    assert not {"img", "iframe", "object", "link", "base"} & set(page.tags) - {"link"}
    links = [each for each in page.attributes if each[1] in ("src", "href", "action")]
    assert all(value.startswith(("#", "data:")) for _, _, value in links), links
    assert not [each for each in page.attributes if each[1].startswith("on")]
    assert page.tags.count("script") in (1, 2)
    assert "b" not in page.tags
    assert "u" not in page.tags


def test_the_page_lies_beside_the_file_unless_another_place_is_named(left, tmp_path):
    assert write_report_of(left / "weights.json") == left / "weights.html"
    assert write_report_of(left / "selected") == left / "selected" / "selection.html"
    done = CliRunner().invoke(command, [str(left / "weights.json"), "-o", str(tmp_path / "new" / "w.html")])
    assert done.output.strip() == str(tmp_path / "new" / "w.html")
    assert (tmp_path / "new" / "w.html").read_bytes() == (left / "weights.html").read_bytes()


def test_weights_say_whether_they_beat_uniform_ones_and_name_every_learner(left, tmp_path):
    report = json.loads((left / "weights.json").read_text())
    page = Page(written(left, tmp_path, "weights.json"))
    assert report["conclusion"][0] in page.text
    for each in report["learners"]:
        assert each["name"] in page.text
    assert "<u>wit" in page.text
    assert f"{report['pairs']['held_out']} held-out pairs" in page.text


@pytest.mark.parametrize(
    ("scores", "said", "unsaid"),
    [
        ("soft", "evaluate DATA --checklist CHECKLIST --model MODEL --weights 'my w.json'", "refused"),
        ("pairwise", "they are refused", "--weights"),
    ],
)
def test_the_page_of_weights_names_the_command_that_takes_them_where_one_does(left, tmp_path, scores, said, unsaid):
    report = json.loads((left / "weights.json").read_text()) | {"scores": scores}
    (tmp_path / "my w.json").write_text(json.dumps(report))
    text = Page(write_report_of(tmp_path / "my w.json")).text
    assert said in text
    assert unsaid not in text


@pytest.mark.parametrize(
    ("verdict", "tone", "said"),
    [
        ("better", "adopt", "beat uniform ones"),
        ("worse", "keep", "Keep uniform weights"),
        ("same", "keep", "changed nothing"),
        ("cannot tell", "undecided", "not shown to beat"),
    ],
)
def test_the_headline_of_weights_follows_the_verdict_alone(left, tmp_path, verdict, tone, said):
    report = json.loads((left / "weights.json").read_text()) | {"beats_uniform": verdict}
    (tmp_path / "w.json").write_text(json.dumps(report))
    page = Page(write_report_of(tmp_path / "w.json"))
    assert said in page.heading
    assert ("header", "class", f"verdict {tone}") in page.attributes


def test_weights_without_intervals_and_a_learner_that_failed_give_the_reason(left, tmp_path):
    report = json.loads((left / "weights.json").read_text())
    report |= {"intervals": None, "intervals_reason": "too few pairs"}
    report["ranking"] = {"tests": None, "kendall": None, "reason": "too few pairs"}
    failed = dict.fromkeys(report["learners"][-1]) | {"name": "bayes", "reason": "its package is missing"}
    report["learners"].append(failed)
    report["power"] |= {"more": None, "one_point": None, "reason": "nothing differs"}
    (tmp_path / "w.json").write_text(json.dumps(report))
    text = Page(write_report_of(tmp_path / "w.json")).text
    for said in ("too few pairs", "its package is missing", "nothing differs"):
        assert said in text


def test_weights_by_section_and_the_effect_of_the_order_of_outputs_have_a_table_each(left, tmp_path):
    report = json.loads((left / "weights.json").read_text())
    report["sections"] = {"<em>easy": {"weights": report["weights"], "intervals": report["intervals"], "decided": 17}}
    effect = {"mean_p_first": 0.61, "both_orders": 80, "depend_on_order": 9, "share_depends": 9 / 80}
    tests = dict.fromkeys(report["weights"], effect)
    report["position_bias"] = {"swapped": True, **effect, "reason": None, "pairs": effect, "tests": tests}
    (tmp_path / "w.json").write_text(json.dumps(report))
    page = Page(write_report_of(tmp_path / "w.json"))
    assert "<em>easy 17" in page.text
    assert "all 0.610 80 11.2%" in page.text
    assert "em" not in page.tags


def test_a_selection_whose_questions_were_proposed_shows_the_rounds_and_no_secret(left, tmp_path):
    report = json.loads((left / "selected" / "selection.json").read_text())
    growth = [{"examples": ["e1"], "proposed": 5, "new": 3, "pool": 3, "error": None}]
    report["pool"] = {"settled": False, "growth": [*growth, growth[0] | {"error": "nothing usable came"}]}
    report["settings"]["api_base"] = "http://user:secret@host/v1?key=hidden"
    (tmp_path / "s.json").write_text(json.dumps(report))
    text = Page(write_report_of(tmp_path / "s.json")).text
    assert "1 5 3 3" in text
    assert "nothing usable came" in text
    assert "host/v1" in text
    assert "secret" not in text
    assert "hidden" not in text


@pytest.mark.parametrize(("name", "field"), [("selected/selection.json", "tokens"), ("comparison.json", "cost")])
def test_a_file_with_a_hole_in_it_is_refused_and_not_half_shown(left, tmp_path, name, field):
    report = json.loads((left / name).read_text())
    rows = report.get("judges") or report["questions"]
    del (rows[0] if field in rows[0] else report)[field]
    if name.startswith("selected"):
        del rows[0]["rank_joint"]
    (tmp_path / "x.json").write_text(json.dumps(report))
    with pytest.raises(InputError, match=naming("damaged", "another version")):
        write_report_of(tmp_path / "x.json")
    assert not (tmp_path / "x.html").exists()


def test_a_selection_says_what_share_of_information_is_kept_at_what_cost(left, tmp_path):
    report = json.loads((left / "selected" / "selection.json").read_text())
    point = report["curves"][report["method"]][1]
    page = Page(written(left, tmp_path, "selected/selection.json"))
    assert f"{100 * point['information_share']:.0f} % of the information" in page.heading.replace("\xa0", " ")
    assert f"{100 * point['cost_share']:.0f} %" in page.text
    assert page.text.count("Are the facts right?") >= 1
    for sentence in (each for each in report["sentences"] if "of the cost" not in each):  # the lead says that one
        assert sentence in page.text


@pytest.mark.parametrize(("settled", "tone"), [(None, "undecided"), (120, "adopt")])
def test_a_selection_is_recommended_only_where_its_ranking_is_settled(left, tmp_path, settled, tone):
    report = json.loads((left / "selected" / "selection.json").read_text())
    report["convergence"]["settled"] = settled
    report["curves"][report["method"]][report["k"] - 1]["information_share"] = 0.97
    (tmp_path / "s.json").write_text(json.dumps(report))
    page = write_report_of(tmp_path / "s.json").read_text()
    assert f'class="verdict {tone}"' in page


def test_a_comparison_claims_no_more_than_the_corrected_differences(left, tmp_path):
    report = json.loads((left / "comparison.json").read_text())

    def heading(value, p):
        each = report["differences"][0] | {"value": value, "p_holm": p}
        (tmp_path / "c.json").write_text(json.dumps(report | {"differences": [each]}))
        return Page(write_report_of(tmp_path / "c.json")).heading

    assert says(heading(0.2, 0.01), "direct agrees better", "than binary")
    assert says(heading(0.2, 0.2), "No judge", "better", "than binary")
    assert says(heading(-0.2, 0.01), "No judge", "better", "than binary")


def test_a_comparison_without_people_or_without_a_common_example_says_so(left, tmp_path):
    report = json.loads((left / "comparison.json").read_text())
    for row in report["judges"]:
        row["average"] = dict.fromkeys(row["average"])
        for name, each in row["dimensions"].items():
            row["dimensions"][name] = {"mean": each["mean"], "kappa_self": each["kappa_self"]}
    report |= {"differences": [], "human": {}}
    (tmp_path / "c.json").write_text(json.dumps(report))
    assert "No human scores" in Page(write_report_of(tmp_path / "c.json")).heading
    (tmp_path / "c.json").write_text(json.dumps(report | {"compared_on": 0, "common": []}))
    assert says(Page(write_report_of(tmp_path / "c.json")).heading, "Nothing", "compared")


def test_a_comparison_tells_each_judges_failures_with_their_reasons(left, tmp_path):
    text = Page(written(left, tmp_path, "comparison.json")).text
    assert "1 failed call" in text or "1 unreadable answer" in text
    assert "e5/<i>" in text


def test_verdicts_alone_are_counted_and_say_what_would_show_more(left, tmp_path):
    page = Page(written(left, tmp_path, "verdicts.jsonl"))
    assert f"{3 * SIZE - 1} of {3 * SIZE} verdicts are there (99.2 %)" in page.text
    assert says(page.text, "--data shows")
    assert says(page.text, "--checklist shows")
    assert "e5/<i>" in page.text
    assert says(page.text, "of the scale."), "there are no scores of people that could be mapped to it"


def test_verdicts_with_data_and_checklist_agree_with_people_as_evaluate_says(left, tmp_path):
    said = json.loads((left / "evaluation.json").read_text())["agreement"]["quality"]["pooled"]["spearman"]
    files = {"data": left / "data.jsonl", "checklist": left / "checklist.yaml"}
    page = Page(written(left, tmp_path, "verdicts.jsonl", **files))
    assert says(page.heading, "The scores agree", "Spearman", f"{said:.2f}")
    assert f"{said:.3f}" in page.text
    assert says(page.text, "mapped", "same scale")
    assert "Are the facts right?" in page.text
    assert says(page.text, "1 of 3 questions", "answered alike") or "never varies" in page.text
    assert "--data" not in page.text


def test_a_correlation_whose_interval_holds_zero_is_not_called_agreement(left, tmp_path):
    report = json.loads((left / "evaluation.json").read_text())
    pooled = report["agreement"]["quality"]["pooled"] | {"spearman": 0.05, "low": -0.21, "high": 0.32}
    report["agreement"] = {"quality": {"pooled": pooled}}
    (tmp_path / "e.json").write_text(json.dumps(report))
    file = write_report_of(tmp_path / "e.json")
    assert says(Page(file).heading, "not shown", "Spearman", "0.05")
    assert 'class="verdict undecided"' in file.read_text()


def test_a_yes_rate_and_a_mean_p_yes_stand_beside_every_question(left, tmp_path):
    verdicts = [json.loads(line) for line in (left / "verdicts.jsonl").read_text().splitlines()]
    facts = [each for each in verdicts if each["question"] == "facts" and each["answer"] is not None]
    page = Page(written(left, tmp_path, "verdicts.jsonl"))
    yes, p_yes = (sum(map(float, (each[name] for each in facts))) / len(facts) for name in ("answer", "p_yes"))
    assert f"facts {yes:.1%} {p_yes:.2f} 97.5%" in page.text


def test_replicates_are_one_score_and_their_flips_are_told(left, tmp_path):
    lines = (left / "verdicts.jsonl").read_text().splitlines()
    again = [json.loads(line) | {"replicate": 1} for line in lines]
    again[0] |= {"answer": not again[0]["answer"], "p_yes": 1 - again[0]["p_yes"]}
    file = tmp_path / "v.jsonl"
    file.write_text("\n".join([*lines, *map(json.dumps, again)]))
    text = Page(write_report_of(file)).text
    assert "Flips" in text
    assert f"on {SIZE} examples" in text


NEAR_HALF = [(0.498, False), (0.5, False), (0.5, True), (0.501, True), (0.9, True), (0.0, False), (None, None)]


@pytest.mark.parametrize("replicates", [1, 2])
def test_a_page_gives_the_answer_that_the_verdict_gives_however_near_to_one_half(tmp_path, replicates):
    row = {"question": "q", "model": "m", "prompt": "p", "p_yes_from": "logprob", "explanation": None, "error": None}
    lines = [
        row
        | {"example": str(place), "answer": answer, "p_yes": p_yes, "replicate": replicate}
        | {"status": "abstained" if answer is None else "ok"}
        for replicate in range(replicates)
        for place, (p_yes, answer) in enumerate(NEAR_HALF)
    ]
    (tmp_path / "v.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    page = write_report_of(tmp_path / "v.jsonl").read_text(encoding="utf-8")
    data = json.loads(re.findall(r'id="table-data">(.*?)</script>', page)[0])
    shown = list(base64.b64decode(data["first"]))
    assert [None if each == MISSING else each >= 100 for each in shown] == [answer for _, answer in NEAR_HALF]
    assert shown == [probability_byte(*each) for each in NEAR_HALF] == [99, 99, 100, 100, 180, 0, MISSING]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.json", "{", "not a result of askance"),
        ("x.json", "[1]", "not a result of askance"),
        ("x.json", '{"weights": {"a": 1}}', "not a result of askance"),
        ("data.jsonl", '{"id": "a", "input": "b"}\n', "not a result of askance"),
        ("c.yaml", "task: Write", "not a result of askance"),
        ("x.bin", b"\xff\xfe\x00", "not UTF-8 text"),
        (
            "w.json",
            '{"weights": {}, "learners": [], "beats_uniform": "better"}',
            "another version of askance: it is no whole weights, for it has no '",
        ),
        ("v.jsonl", '{"example": "a", "question": "q", "model": "m", "answer": true}\n', "line 1"),
        (None, None, "there is no such file"),
    ],
)
def test_what_is_no_result_is_refused_with_a_sentence_and_exit_code_2(tmp_path, name, content, says):
    file = tmp_path / (name or "nowhere")
    if name:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=says) as raised:
        write_report_of(file)
    assert raised.value.exit_code == 2
    assert not list(tmp_path.glob("*.html"))


def test_a_directory_without_or_with_several_results_is_refused(left, tmp_path):
    with pytest.raises(InputError, match=naming("no run", "no result")):
        write_report_of(tmp_path)
    with pytest.raises(InputError, match=naming("several results", "comparison.json", "name the one")):
        write_report_of(left)


def test_verdicts_that_do_not_belong_to_the_data_or_are_by_several_models_are_refused(left, tmp_path):
    (tmp_path / "other.jsonl").write_text('{"id": "z", "input": "i", "output": "o"}\n')
    with pytest.raises(InputError, match=naming("no example")):
        written(left, tmp_path, "verdicts.jsonl", data=tmp_path / "other.jsonl")
    lines = (left / "verdicts.jsonl").read_text().splitlines()
    file = tmp_path / "two.jsonl"
    file.write_text("\n".join([*lines, *(json.dumps(json.loads(line) | {"model": "other"}) for line in lines)]))
    with pytest.raises(InputError, match=naming("choose one", "--model")):
        write_report_of(file)
    assert "other is the judge" in Page(write_report_of(file, beside=Beside(model="other"))).text
    with pytest.raises(InputError, match=naming("some by other")):
        write_report_of(file, beside=Beside(model="nobody"))


def test_the_files_beside_verdicts_may_stand_in_the_projects_configuration(left, tmp_path):
    config = tmp_path / "askance.yaml"
    config.write_text(
        f"data: {left / 'data.jsonl'}\nchecklist: {left / 'checklist.yaml'}\nmodel: openai/m\nhuman_scale: [1, 5]\n"
    )
    arguments = [str(left / "verdicts.jsonl"), "--config", str(config), "-o", str(tmp_path / "v.html")]
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "agree with people" in Page(tmp_path / "v.html").heading


def test_a_page_takes_the_place_of_no_other_file(left, tmp_path):
    other = tmp_path / "examples.jsonl"
    other.write_text("{}\n")
    with pytest.raises(InputError, match=naming("examples.jsonl", "no page")):
        CliRunner().invoke(command, [str(left / "weights.json"), "-o", str(other)], catch_exceptions=False)
    assert other.read_text() == "{}\n"


def test_a_file_that_cannot_be_written_is_said(left, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AskanceError):
        write_report_of(left / "weights.json", tmp_path / "file" / "page.html")


def places(value, way=()):
    """The way to every value in a JSON document; of lists the first two."""
    inside = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for name, each in inside:
        yield (*way, name)
        yield from places(each, (*way, name))


@pytest.mark.parametrize("name", [each for each in KINDS if each.endswith(".json")])
def test_a_value_that_cannot_be_there_is_a_sentence_or_is_shown_in_time(left, tmp_path, name):
    text, chance = (left / name).read_text(encoding="utf-8"), random.Random(name)
    ways = list(places(json.loads(text)))
    for _ in range(40):
        changed = inner = json.loads(text)
        *way, last = chance.choice(ways)
        for each in way:
            inner = inner[each]
        inner[last] = chance.choice([5e8, -1, 1e308, 10**400, None, "x", [], {}, True, float("nan"), 0])
        (tmp_path / "changed.json").write_text(json.dumps(changed), encoding="utf-8")
        began = time.process_time()
        with suppress(InputError):
            write_report_of(tmp_path / "changed.json", tmp_path / "page.html")
        assert time.process_time() - began < 5, (way, last, inner[last])

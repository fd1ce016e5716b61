"""Rationales on a tiny causal model: given, drawn, paired, preferred, and written before the answer."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askance.cli import main
from askance.evaluation.evaluate import evaluate
from askance.models.base import Request
from askance.models.trained.bases import find_base
from askance.models.trained.network import start_network
from askance.models.trained.scored_text import Rationale, ScoredText, after_rationale, asked_for, asked_why
from askance.models.trained.scorer_file import read_scorer
from askance.prompts.checklist import dump_checklist
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.human_feedback import Comment
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import VerdictColumns
from askance.report.any_result import write_report_of
from askance.testing import Reply, ScriptedModel
from askance.training import rationales, trainer
from askance.training.losses import RationaleObjective, RationalePair
from askance.training.mixture import Probe, TrainingItem
from askance.training.options import TrainOptions
from askance.training.rationales import (
    Drawn,
    RationaleCase,
    drafts_of,
    pairs_of,
    preference_cases,
    rationale_cases,
    revised_pairs,
)
from askance.training.scorer_folder import TrainResult
from askance.training.train import train

from ..said import naming
from .conftest import CHECKLIST, WORDS, made, p_yes, random_llama, said

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")
pytest.importorskip("peft")
pytestmark = pytest.mark.usefixtures("sandbox")

PROMPT = Prompt("{output} {question}")
SMALL: dict[str, Any] = {
    "longest": 100,
    "learning_rate": 2e-2,
    "lora_rank": 8,
    "batch_size": 16,
    "epochs": 2,
    "resamples": 100,
    "patience": 9,
    "rationales": 4,
    "rationale_tokens": 4,
    "checklist": CHECKLIST,
    "prompt": PROMPT,
}
TEMPLATE = (
    "{% for each in messages %}{{ each['role'] }} {{ each['content'] }} end "
    "{% endfor %}{% if add_generation_prompt %}assistant{% endif %}"
)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """So small a network gains nothing by a second one, and loses much where the cores are busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny_writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of two layers with random numbers, whose tokens are words and whose turns have an end."""
    return random_llama(tmp_path_factory.mktemp("writer"), TEMPLATE, further=("end", "there", "missing"), longest=128)


def explained(examples: list[Example]) -> VerdictColumns:
    """The judge's verdicts, each with the reason that it gives."""
    return VerdictColumns(
        replace(each, explanation=f"{each.question} {'there' if each.answer else 'missing'}") for each in said(examples)
    )


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return made(50, to_a_document=2)


@pytest.fixture(scope="module")
def trained(tiny_writer: Path, examples: list[Example], tmp_path_factory: pytest.TempPathFactory) -> TrainResult:
    place = tmp_path_factory.mktemp("trained") / "scorer"
    return train(examples, output=place, base=str(tiny_writer), verdicts=explained(examples), **SMALL)


def network(base: Path, longest: int = 100) -> Any:
    return start_network(find_base(str(base)), levels=2, longest=longest, seed=0, rank=4)


TEXT = ScoredText("nice", "good red", messages=(("user", "good red Question nice"),))


def test_a_rationale_is_a_turn_of_its_own_before_the_answer() -> None:
    after = after_rationale(TEXT, "good there")
    assert [role for role, _ in after.messages] == ["user", "assistant", "user"]
    assert after.messages[0][1].startswith("good red Question nice\n\n") and after.messages[1][1] == "good there"
    assert asked_for(after) == asked_why(TEXT) and (after.asked, after.output) == (TEXT.asked, TEXT.output)


def test_how_likely_a_rationale_is_is_the_sum_over_its_tokens_and_its_end(tiny_writer: Path) -> None:
    reading = network(tiny_writer)
    asked = asked_why(TEXT)
    found = reading.likelihood([(asked, "good there"), (asked, "red"), (asked_why(TEXT), "")])
    assert found[:, 1].tolist() == [3, 2, 1]
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_writer)
    shown = tokenizer.apply_chat_template(
        [{"role": role, "content": content} for role, content in asked], add_generation_prompt=True, tokenize=False
    )
    before = tokenizer(shown, add_special_tokens=False)["input_ids"]
    for row, words in enumerate((["good", "there", "end"], ["red", "end"], ["end"])):
        ids = torch.tensor([before + tokenizer.convert_tokens_to_ids(words)])
        with torch.no_grad():
            logs = torch.log_softmax(reading._model(input_ids=ids).logits[0].float(), dim=-1)
        wanted = sum(float(logs[place - 1, ids[0, place]]) for place in range(len(before), ids.shape[1]))
        assert float(found[row, 0]) == pytest.approx(wanted, abs=1e-4)


def test_what_is_drawn_depends_on_the_seed_alone_and_ends_or_is_cut_off(tiny_writer: Path) -> None:
    writing = network(tiny_writer)
    asked = asked_why(TEXT)
    one, again, other = (writing.sample(asked, 12, 8, seed) for seed in (1, 1, 2))
    assert one == again != other and len(one) == 8
    assert len({each.is_whole for each in [*one, *other]}) == 2
    assert all(len(each.text.split()) <= 12 and "end" not in each.text for each in [*one, *other])
    alone = [writing.write([asked_why(each)], 6)[0] for each in (TEXT, after_rationale(TEXT, "red old"))]
    assert writing.write([asked_why(TEXT), asked_why(after_rationale(TEXT, "red old"))], 6) == alone


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_the_likelihood_of_the_preferred_one_counts_beside_dpo_unless_it_is_switched_off(
    tiny_writer: Path, weight: float
) -> None:
    reading = network(tiny_writer)
    pair = RationalePair("e", TEXT, "good there", "red")
    objective = RationaleObjective(reading, [pair], [], TrainOptions(rationales=2, nll_weight=weight))
    loss, parts = objective.loss([pair])
    assert parts["dpo"][0] == pytest.approx(math.log(2), abs=1e-4) and parts["rationale"][0] > 1
    assert float(loss) == pytest.approx(parts["dpo"][0] + weight * parts["rationale"][0], rel=1e-5)


def test_writing_leaves_the_network_as_it_was(tiny_writer: Path) -> None:
    writing = network(tiny_writer)
    writing.training(True)
    before = writing.levels([TEXT]).tolist()
    writing.write([asked_why(TEXT)], 4)
    assert writing._model.training and writing.levels([TEXT]).tolist() == before


def item(kind: Any, target: float, *, fault: bool = False, about: str = "q", questions: int = 1) -> TrainingItem:
    side = tuple(Probe(ScoredText(f"{about}{n}", "o"), is_fault=fault) for n in range(questions))
    return TrainingItem(kind, "verdicts", "e", about, side, target)


def test_drawn_is_about_what_has_a_right_answer_of_its_own() -> None:
    items = [item("verdict", 0.9), item("rating", 0.2), item("rating", 0.8, fault=True, about="f")]
    items += [item("rating", 1.0, about="two", questions=2), item("verdict", 0.5, about="open")]
    items.append(item("rationale", 1.0, about="given"))
    assert [(each.about, each.wanted) for each in rationale_cases(items)] == [("q", True), ("f", False)]
    with pytest.raises(InputError, match=naming("--rationales", "training part", "single question")):
        rationale_cases(items[3:])


def test_the_surest_right_one_is_preferred_to_the_one_furthest_off_and_none_is_in_two_pairs() -> None:
    drawn = [Drawn("a", 0.6), Drawn("b", 0.9), Drawn("c", 0.4), Drawn("d", 0.1), Drawn("e", 0.2), Drawn("cut", None)]
    drawn.append(Drawn("b", 0.9))
    yes, no = (RationaleCase("e", "q", TEXT, wanted) for wanted in (True, False))
    assert [(each.better, each.worse) for each in pairs_of(yes, drawn)] == [("b", "d"), ("a", "e")]
    assert [(each.better, each.worse) for each in pairs_of(no, drawn)] == [("d", "b"), ("e", "a")]
    assert pairs_of(yes, [Drawn("a", 0.6), Drawn("cut", None)]) == []


def test_what_was_drawn_adds_up_and_the_better_weights_are_kept(trained: TrainResult) -> None:
    found = trained.data["rationales"]
    assert found["drawn"] == 4 * found["cases"] == found["right"] + found["wrong"] + found["unusable"]
    place = Path(trained.data["scorer"])
    lines = [json.loads(line) for line in (place / "rationales.jsonl").read_text().splitlines()]
    assert len(lines) == found["cases"]
    right = sum(
        each["p_yes"] is not None and (each["p_yes"] >= 0.5) == (line["wanted"] == "yes")
        for line in lines
        for each in line["rationales"]
    )
    assert right == found["right"] > 0 and found["wrong"] > 0 and found["pairs"] > 0
    losses = [each["loss"] for each in found["dpo"]["validation"]]
    assert found["dpo"]["best_epoch"] == losses.index(min(losses))
    assert found["kept"] == ("after" if losses.index(min(losses)) else "before")
    assert ("without_dpo" in trained.data["test"]["people"]) == (found["kept"] == "after")
    assert not (place / "checkpoints").exists()
    part = trained.data["mixture"]["rows"]
    assert sum(each["training"] for each in part if each["kind"] == "rationale") > 0


def test_dpo_makes_the_preferred_rationales_likelier_than_before(trained: TrainResult) -> None:
    steps = trained.data["rationales"]["dpo"]["training"]
    epochs = [[each for each in steps if each["epoch"] == epoch] for epoch in (1, 2)]
    first, last = (sum(each["dpo"] for each in some) / len(some) for some in epochs)
    assert steps[0]["dpo"] == pytest.approx(0.6931, abs=1e-3) and last < first


def test_judges_reasons_are_learned(trained: TrainResult) -> None:
    validation = trained.data["curve"]["validation"]
    assert validation[trained.data["curve"]["best_epoch"]]["rationale"] < 0.7 * validation[0]["rationale"]


def test_test_is_measured_both_ways_and_said_in_words_and_on_the_page(trained: TrainResult) -> None:
    found = trained.data
    assert found["rationales"]["otherwise"]["verdicts"]["n"] == found["test"]["verdicts"]["n"]
    assert found["rationales"]["otherwise"]["verdicts"]["pearson"] != found["test"]["verdicts"]["pearson"]
    text = " ".join(trained.view().lines)
    assert "the right score" in text and "DPO did" in text and "answers with a rationale" in text
    rows = {row["what"] for row in trained.view().shown_tables()["test"]}
    assert "scorer without a rationale, with people" in rows
    page = write_report_of(Path(found["scorer"])).read_text(encoding="utf-8")
    assert "the right score" in page and 'id="rationales"' in page


def test_wherever_a_model_is_named_it_writes_why_before_it_answers(
    trained: TrainResult, examples: list[Example], tmp_path: Path
) -> None:
    place = Path(trained.data["scorer"])
    asked: dict[str, Any] = {"checklist": CHECKLIST, "prompt": PROMPT, "no_cache": True}
    with_it = evaluate(examples[:8], model=str(place), **asked)
    assert read_scorer(place).rationale_tokens == 4
    assert all(each.explanation and len(each.explanation.split()) <= 4 for each in with_it.verdicts)
    copy = tmp_path / "copy"
    copy.mkdir()
    for each in place.iterdir():
        (copy / each.name).write_bytes(each.read_bytes())
    without = read_scorer(place).model_copy(update={"rationale_tokens": None})
    without.write(copy)
    assert without.identity != read_scorer(place).identity
    at_once = evaluate(examples[:8], model=str(copy), **asked)
    assert not any(each.explanation for each in at_once.verdicts)
    assert [each.p_yes for each in at_once.verdicts] != [each.p_yes for each in with_it.verdicts]


class Killed(BaseException):
    """The process ends here."""


def test_what_was_broken_off_draws_nothing_twice_and_ends_with_the_same_weights(
    trained: TrainResult,
    tiny_writer: Path,
    examples: list[Example],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: dict[str, Any] = {"base": str(tiny_writer), "verdicts": explained(examples), "output": tmp_path / "s"}
    given |= SMALL
    drawn, step, asked = rationales._drawn, trainer.Trainer._step, []

    def drawing(network: Any, case: RationaleCase, *others: Any) -> Any:
        if len(asked) == 5 and asked[-1] != "stopped":
            asked.append("stopped")
            raise Killed
        asked.append(case)
        return drawn(network, case, *others)

    def stepping(self: Any, batch: Any, number: int) -> None:
        if hasattr(batch[0], "better") and number == 2:
            raise Killed
        step(self, batch, number)

    with monkeypatch.context() as patch:
        patch.setattr(rationales, "_drawn", drawing)
        with pytest.raises(Killed):
            train(examples, **given)
        file = tmp_path / "s/rationales.jsonl"
        assert len(file.read_bytes().splitlines()) == 5
        file.write_bytes(file.read_bytes() + b'{"example": "e')
        patch.setattr(trainer, "EVERY", 0.0)
        patch.setattr(trainer.Trainer, "_step", stepping)
        with pytest.raises(Killed):
            train(examples, **given)
    cases = [each for each in asked if each != "stopped"]
    assert len(cases) == len({*cases}) == trained.data["rationales"]["cases"]
    monkeypatch.setattr(rationales, "_drawn", lambda *_: pytest.fail("was drawn before"))
    train(examples, **given)
    one, other = (Path(each) / "adapter_model.safetensors" for each in (trained.data["scorer"], tmp_path / "s"))
    assert one.read_bytes() == other.read_bytes()
    whole, parts = (json.loads((each.parent / "train.json").read_text()) for each in (one, other))
    assert (
        parts["test"] == whole["test"]
        and parts["rationales"]["dpo"]["training"] == (whole["rationales"]["dpo"]["training"])
    )


def test_comments_of_people_are_learned_where_they_go_with_a_score_of_one_question(
    tiny_writer: Path, tmp_path: Path
) -> None:
    examples = [
        each.model_copy(
            update={
                "human": {"good": (p_yes("good", each.output or ""),)},
                "comment": (Comment("good there", "good"), Comment("red", "broken"), Comment("old")),
            }
        )
        for each in made(30)
    ]
    given = SMALL | {"epochs": 1, "answer_with": "word", "rationales": 2}
    found = train(examples, output=tmp_path / "s", base=str(tiny_writer), **given)
    rows = [row for row in found.data["mixture"]["rows"] if row["kind"] == "rationale"]
    assert [(row["source"], row["about"]) for row in rows] == [("ratings", "good")]
    assert sum(rows[0][part] for part in ("training", "validation", "test")) == 30
    assert read_scorer(tmp_path / "s").rationale_tokens is None
    assert found.data["rationales"]["answers_with"] == "word"


def test_given_ones_are_learned_without_any_being_drawn(
    trained: TrainResult, tiny_writer: Path, examples: list[Example], tmp_path: Path
) -> None:
    place = tmp_path / "s"
    given = {name: value for name, value in SMALL.items() if not name.startswith("rationale")} | {"output": place}
    given |= {"base": str(tiny_writer), "given_rationales": True, "trust_verdicts": True}
    with pytest.raises(InputError, match=naming("--given-rationales", "no verdict", "explanation")):
        train(examples, verdicts=said(examples), **given)
    found = train(examples, verdicts=explained(examples), **given)
    assert found.data["curve"]["training"] == trained.data["curve"]["training"]
    drawn, given_words = SMALL["rationale_tokens"], 2
    assert found.data["cut"]["longest"] == trained.data["cut"]["longest"] - drawn + given_words
    assert "rationales" not in found.data and not (place / "rationales.jsonl").exists()
    assert read_scorer(place).rationale_tokens is None
    learned = re.search(r"It learned from (\d+) rationales that judges and people gave\.", " ".join(found.view().lines))
    assert learned and learned[0] in " ".join(trained.view().lines)
    assert learned[0] in write_report_of(place).read_text(encoding="utf-8")


def test_another_model_writes_them_and_is_not_asked_twice(
    tiny_writer: Path, examples: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Kept(ScriptedModel):
        answers_stay_in_the_run = False

    def write(request: Request) -> Reply:
        assert "say in one or two short sentences" in request.messages[-1][1]
        return f"{random.Random(request.replicate).choice(WORDS)} {request.replicate}"

    given: dict[str, Any] = {"base": str(tiny_writer), "verdicts": said(examples), **SMALL}
    given |= {"epochs": 1, "rationales_from": "writer", "rationales": 3}
    first, again = (Kept(write, name="scripted/w") for _ in "12")
    found = train(examples, output=tmp_path / "s", writer=first, **given)
    made_of = found.data["rationales"]
    assert made_of["from"] == "scripted/w" and len(first.requests) == made_of["drawn"] == 3 * made_of["cases"]
    assert {each.parameters.temperature for each in first.requests} == {1.0}
    monkeypatch.setattr(trainer.Trainer, "run", lambda *_: pytest.fail("it is trained already"))
    assert train(examples, output=tmp_path / "s", writer=again, **given).data == found.data and not again.requests


# --- Refined and Harmonized (LMUnit §3.4): the teacher revises what the scorer wrote ---


class Reads:
    """A network that says yes as surely as the rationale's number says."""

    def levels(self, texts: list[ScoredText]) -> Any:
        sure = torch.tensor([float(each.messages[-2][1]) for each in texts])
        return torch.stack([1 - sure, sure], dim=-1).log()


def case(*, wanted: bool, text: ScoredText = TEXT) -> RationaleCase:
    return RationaleCase("e", "q", text, wanted)


def test_a_refinement_is_preferred_if_it_ends_right_and_nearer_than_before() -> None:
    drawn = [Drawn("0.4", 0.4), Drawn("0.8", 0.8), Drawn("cut", None), Drawn("0.4", 0.4)]
    drafts = drafts_of([case(wanted=True)], [drawn], 1)
    assert [each.before[0].text for each in drafts] == ["0.4", "0.8"]
    for revisions, kept in ((("0.6", "0.9"), ["0.6", "0.9"]), (("0.45", "0.7"), []), ((None, "0.8"), [])):
        revised = [None if each is None else (each,) for each in revisions]
        pairs = revised_pairs(Reads(), drafts, revised)  # type: ignore[arg-type]
        assert [each.better for each in pairs] == kept
    (pair,) = revised_pairs(Reads(), drafts_of([case(wanted=False)], [drawn[:1]], 1), [("0.2",)])  # type: ignore[arg-type]
    assert (pair.better, pair.worse) == ("0.2", "0.4")


def test_harmonized_rationales_are_preferred_if_the_better_output_is_further_ahead() -> None:
    other = replace(TEXT, output="bad")
    sides = [case(wanted=False), case(wanted=True, text=other)]
    drafts = drafts_of(sides, [[Drawn("0.5", 0.5), Drawn("cut", None)], [Drawn("0.6", 0.6), Drawn("0.9", 0.9)]], 2)
    assert len(drafts) == 1
    one, two = revised_pairs(Reads(), drafts, [("0.3", "0.7")])  # type: ignore[arg-type]
    assert (one.text, one.better, one.worse) == (TEXT, "0.3", "0.5")
    assert (two.text, two.better, two.worse) == (other, "0.7", "0.6")
    assert revised_pairs(Reads(), drafts, [("0.55", "0.6")]) == []  # type: ignore[arg-type]
    (only,) = revised_pairs(Reads(), drafts, [("0.5", "0.9")])  # type: ignore[arg-type]
    assert only.text == other, "what was left as it was is no pair"


def test_sides_of_a_preference_say_which_should_say_yes_more() -> None:
    left, right = ((Probe(ScoredText("q", each)),) for each in "ab")
    faulty = [tuple(replace(each, is_fault=True) for each in side) for side in (left, right)]
    items = [TrainingItem("preference", "ratings", "e", "q", left, 1.0, right)]
    items += [TrainingItem("preference", "ratings", "e", "q", faulty[0], 1.0, faulty[1])]
    items += [TrainingItem("preference", "ratings", "e", "q", left, 0.5, right), item("verdict", 1.0)]
    items += [TrainingItem("preference", "preferences", "e", "q", left * 2, 1.0, right * 2)]
    assert [each.wanted for each in preference_cases(items)] == [True, False, False, True]
    with pytest.raises(InputError, match=naming("harmonized", "single question")):
        preference_cases(items[2:])


@pytest.mark.parametrize("way", ["refined", "harmonized"])
def test_a_teacher_revises_what_the_scorer_wrote(
    tiny_writer: Path, examples: list[Example], tmp_path: Path, way: str
) -> None:
    def word(answer: bool) -> str:
        return "good there" if answer else "good missing"

    def revise(request: Request) -> Reply:
        order = request.messages[-1][1]
        assert [role for role, _ in request.messages][-3:-1] == ["user", "assistant"]
        if way == "refined":
            return json.dumps({"revised": word("is yes." in order)})
        assert len(request.messages) == 5
        return json.dumps({"first": word("rather the first" in order), "second": word("rather the second" in order)})

    one = CHECKLIST.model_copy(update={"questions": CHECKLIST.questions[:1]})
    rated = [each.model_copy(update={"human": {"quality": (p_yes("good", each.output or ""),)}}) for each in examples]
    teacher = ScriptedModel(revise, name="scripted/teacher")
    verdicts = VerdictColumns(each for each in explained(examples) if each.question == "good")
    given: dict[str, Any] = {"base": str(tiny_writer), "verdicts": verdicts, **SMALL, "checklist": one}
    given |= {"rationales_from": way, "rationales": 2, "writer": teacher, "no_cache": True, "output": tmp_path / "s"}
    found = train(rated, **given)
    made_of = found.data["rationales"]
    assert (made_of["strategy"], made_of["from"], made_of["revised_by"]) == (way, "scorer", "scripted/teacher")
    assert made_of["revised"] == len(teacher.requests) * (2 if way == "harmonized" else 1) > 0
    assert 0 < made_of["pairs"] <= made_of["revised"] and made_of["dpo"] is not None
    assert made_of["drawn"] == 2 * made_of["cases"] == made_of["right"] + made_of["wrong"] + made_of["unusable"]
    assert "scripted/teacher revised" in " ".join(found.view().lines)


@pytest.mark.parametrize(
    ("drawn", "why"),
    [
        ([Rationale("red", False), Rationale("")], "each of the .* is empty or was cut off after 4 tokens"),
        ([Rationale("red"), Rationale("red")], "no question on an output has a right and a wrong one"),
    ],
)
def test_where_no_pair_is_left_dpo_is_left_out_and_that_is_said(
    tiny_writer: Path,
    examples: list[Example],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    drawn: list[Rationale],
    why: str,
) -> None:
    from askance.models.trained.causal import CausalNetwork

    monkeypatch.setattr(CausalNetwork, "sample", lambda *_: drawn)
    given = SMALL | {"epochs": 1, "rationales": 2, "learning_rate": 1e-6}
    found = train(examples[:30], output=tmp_path / "s", base=str(tiny_writer), verdicts=said(examples[:30]), **given)
    made_of = found.data["rationales"]
    assert made_of["dpo"] is None and made_of["pairs"] == 0 and made_of["kept"] == "before"
    lines = [each for each in found.view().lines if "DPO" in each]
    assert len(lines) == 1
    assert re.search(f"DPO on rationales .*{why}", lines[0])
    write_report_of(tmp_path / "s")


def test_what_rationales_do_not_go_with_is_refused(
    tiny_writer: Path, tiny_base: Path, examples: list[Example], tmp_path: Path
) -> None:
    def go(base: Path = tiny_writer, **given: Any) -> TrainResult:
        return train(examples, output=tmp_path / "s", base=str(base), **SMALL | given)

    with pytest.raises(InputError, match=naming("--rationales 4", "encoder")):
        go(tiny_base, prompt=None)
    with pytest.raises(InputError, match=naming("--given-rationales", "encoder")):
        train(examples, output=tmp_path / "s", base=str(tiny_base), checklist=CHECKLIST, given_rationales=True)
    with pytest.raises(InputError, match=naming("given_rationales", "cross-entropy")):
        go(given_rationales=True, loss_weights=(0, 1, 1))
    with pytest.raises(InputError, match=naming("one alone", "preferred")):
        go(rationales=1)
    with pytest.raises(InputError, match=naming("half of it")):
        go(rationale_tokens=60)
    with pytest.raises(InputError, match=naming("answer_with", "no rationale")):
        go(rationales=0, rationale_tokens=80, answer_with="word")
    with pytest.raises(InputError, match=naming("one of them")):
        go(writer="openai/x")
    with pytest.raises(InputError, match=naming("one of them")):
        go(rationales_from="writer")
    with pytest.raises(InputError, match=naming("training part", "single question")):
        go()  # the one dimension that was rated has two questions


def test_on_the_command_line_an_encoder_that_is_to_write_ends_with_2(
    tiny_base: Path, examples: list[Example], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, questions = tmp_path / "examples.jsonl", tmp_path / "checklist.yaml"
    data.write_text("".join(each.model_dump_json(exclude_none=True) + "\n" for each in examples), encoding="utf-8")
    questions.write_text(dump_checklist(CHECKLIST), encoding="utf-8")
    words = [str(data), "--checklist", str(questions), "--base", str(tiny_base), "-o", str(tmp_path / "s")]
    with pytest.raises(SystemExit) as ended:
        main(["train", *words, "--rationales", "4"])
    assert ended.value.code == 2 and "writes nothing" in " ".join(capsys.readouterr().err.split())

"""Every published form of every data set, from small copies that the tests write."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from askance.experiments.datasets import PAIRS, RATED, load_pairs_of, load_prompts, load_rated
from askance.experiments.datasets.pairs import SECTIONS, load_llmbar, load_mt_bench, load_reward_bench
from askance.experiments.datasets.rated import (
    DIMENSIONS,
    OTHER_DIMENSIONS,
    load_qags,
    load_summeval,
    load_topical_chat,
    own_test,
    split_summeval,
)
from askance.prompts.errors import AskanceError, InputError, MissingExtraError
from askance.prompts.examples import documents

from ..said import naming

RATINGS = {"coherence": 3, "consistency": 4, "fluency": 5, "relevance": 2}


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def listed(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def experts(shift: int = 0) -> list[dict[str, int]]:
    return [{name: (value + shift + expert) % 5 + 1 for name, value in RATINGS.items()} for expert in range(3)]


def summeval_rows(documents: int = 12, systems: int = 3) -> list[dict[str, Any]]:
    return [
        {
            "id": f"dm-{document}",
            "model_id": f"M{system}",
            "decoded": f"Summary {system} of {document}.",
            "text": f"Document {document}.",
            "expert_annotations": experts(document),
            "turker_annotations": experts(),
            "references": ["A reference."],
        }
        for document in range(documents)
        for system in range(systems)
    ]


def test_summeval_as_published_keeps_every_experts_rating_and_the_document(tmp_path: Path) -> None:
    examples = load_rated("summeval", lines(tmp_path / "model_annotations.aligned.paired.jsonl", summeval_rows()))
    assert len(examples) == 36
    first = examples[0]
    assert (first.input, first.output, first.system) == ("Document 0.", "Summary 0 of 0.", "M0")
    assert first.human["coherence"] == (4.0, 5.0, 1.0)
    assert first.human_score("coherence") == pytest.approx(10 / 3)
    assert documents(examples) is not None
    assert len(set(documents(examples) or [])) == 12


def test_summeval_without_its_articles_is_refused(tmp_path: Path) -> None:
    rows = [{name: value for name, value in row.items() if name != "text"} for row in summeval_rows(1, 1)]
    with pytest.raises(InputError, match=r"line 1: the field 'source' is missing"):
        load_rated("summeval", lines(tmp_path / "s.jsonl", rows))


def test_summeval_as_prepared_for_unieval(tmp_path: Path) -> None:
    row = {"doc_id": "d", "system_id": "M1", "source": "In.", "system_output": "Out.", "scores": RATINGS}
    (example,) = load_rated("summeval", listed(tmp_path / "summeval.json", [row]))
    assert example.id == "d/M1"
    assert example.human == {name: (float(value),) for name, value in RATINGS.items()}


def test_summeval_of_the_hub_becomes_one_example_a_summary() -> None:
    row = {"id": "d", "text": "In.", "machine_summaries": ["A.", "B."], "human_summaries": ["R."]}
    row |= {name: [value, value - 1] for name, value in RATINGS.items()}
    examples = load_summeval([row])
    assert [each.output for each in examples] == ["A.", "B."]
    assert [each.human_score("fluency") for each in examples] == [5, 4]
    assert [each.system for each in examples] == ["system-00", "system-01"]
    with pytest.raises(InputError, match=r"1 ratings of fluency for 2 summaries"):
        load_summeval([row | {"fluency": [5]}])


def test_summeval_in_our_own_form_takes_the_experts_ratings_before_the_means(tmp_path: Path) -> None:
    row = {"id": "a", "input": "In.", "output": "Out.", "system": "M1", "document": "d", "human": RATINGS}
    (example,) = load_rated("summeval", lines(tmp_path / "s.jsonl", [row | {"human_experts": experts()}]))
    assert example.human["relevance"] == (3.0, 4.0, 5.0)
    assert example.metadata["document"] == "d"
    with pytest.raises(InputError, match=naming("no human score", "'fluency'")):
        load_rated("summeval", [row | {"human": {"coherence": 1, "consistency": 1}}])


def test_summeval_is_divided_into_ten_a_system_and_the_rest() -> None:
    examples = load_summeval(summeval_rows(documents=40, systems=4))
    development, test = split_summeval(examples)
    assert Counter(each.system for each in development) == {f"M{system}": 10 for system in range(4)}
    assert len(development) + len(test) == len(examples)
    assert not {each.id for each in development} & {each.id for each in test}
    again, _ = split_summeval(list(reversed(examples)))
    assert {each.id for each in again} == {each.id for each in development}, "the order of the file does not matter"
    other, _ = split_summeval(examples, seed=43)
    assert {each.id for each in other} != {each.id for each in development}


def test_a_system_with_too_few_examples_cannot_be_divided() -> None:
    with pytest.raises(InputError, match="System 'M0' has 10 examples"):
        split_summeval(load_summeval(summeval_rows(documents=10)))


def usr_reply(model: str) -> dict[str, Any]:
    return {
        "response": f" I am {model}.\n",
        "model": model,
        "Understandable": [1, 1, 0],
        "Natural": [3, 2, 3],
        "Maintains Context": [2, 2, 2],
        "Engaging": [1, 2, 3],
        "Uses Knowledge": [0, 0, 1],
        "Overall": [4, 3, 5],
    }


def test_topical_chat_as_published_has_one_example_a_reply_and_one_document_a_context(tmp_path: Path) -> None:
    rows = [
        {"context": f"Hello {n}.", "fact": "A fact.", "responses": [usr_reply("A"), usr_reply("B")]} for n in (0, 1)
    ]
    examples = load_rated("topical_chat", listed(tmp_path / "tc_usr_data.json", rows))
    assert [each.id for each in examples] == ["context-00/A", "context-00/B", "context-01/A", "context-01/B"]
    first = examples[0]
    assert (first.output, first.context, first.system) == ("I am A.", "A fact.", "A")
    assert first.human["naturalness"] == (3.0, 2.0, 3.0)
    assert list(first.human)[:4] == list(DIMENSIONS["topical_chat"])
    assert documents(examples) == ["context-00", "context-00", "context-01", "context-01"]


def test_topical_chat_replies_to_the_same_words_share_a_document_in_the_other_forms() -> None:
    scores = dict.fromkeys((*DIMENSIONS["topical_chat"], *OTHER_DIMENSIONS), 2.0)
    prepared = [
        {"source": "Hi.", "context": "F.", "system_id": name, "system_output": "Yes.", "scores": scores}
        for name in "ab"
    ]
    own = [{"id": name, "input": "Hi.", "output": "Yes.", "human": scores} for name in "ab"]
    for rows in (prepared, own):
        examples = load_topical_chat(rows)
        assert len({each.metadata["document"] for each in examples}) == 1
        assert set(examples[0].human) == set(scores)


def test_a_reply_without_a_rating_is_refused() -> None:
    reply = usr_reply("A")
    del reply["Engaging"]
    with pytest.raises(InputError, match="needs response, model, Natural"):
        load_topical_chat([{"context": "Hi.", "fact": "F.", "responses": [reply]}])


def sentence(*said: str) -> dict[str, Any]:
    return {"sentence": "One.", "responses": [{"worker_id": str(n), "response": word} for n, word in enumerate(said)]}


def test_qags_as_published_scores_a_summary_by_its_sentences_majorities(tmp_path: Path) -> None:
    row = {"article": "In.", "summary_sentences": [sentence("yes", "yes", "no"), sentence("no", "yes", "no")]}
    (example,) = load_rated("qags", lines(tmp_path / "mturk_cnndm.jsonl", [row]))
    assert example.output == "One. One."
    assert example.human_score("consistency") == 0.5
    with pytest.raises(InputError, match=naming("yes or no")):
        load_qags([{"article": "In.", "summary_sentences": [sentence("perhaps")]}])


def test_qags_as_prepared_for_unieval_and_in_our_own_form() -> None:
    (prepared,) = load_qags([{"source": "In.", "system_output": "Out.", "scores": {"consistency": 0.25}}])
    (own,) = load_qags([{"id": "a", "input": "In.", "output": "Out.", "human": {"consistency": 0.25}}])
    assert prepared.human == own.human == {"consistency": (0.25,)}


def test_the_real_qags_file_is_read_where_it_is_there() -> None:
    path = Path(__file__).parents[3] / "shared" / "data" / "qags_cnndm.jsonl"
    if not path.is_file():
        pytest.skip("the data is not here")
    assert len(load_rated("qags", path)) == 235


def test_llmbar_says_which_output_is_better() -> None:
    rows = [
        {"input": "Do.", "output_1": "Good.", "output_2": "Bad.", "label": 1},
        {"input": "Do.", "output_1": "Bad.", "output_2": "Good.", "label": 2},
    ]
    pairs = load_llmbar(rows, part="Adversarial_GPTInst")
    assert [each.preferred for each in pairs] == ["a", "b"]
    assert [each.id for each in pairs] == ["llmbar-Adversarial_GPTInst-0", "llmbar-Adversarial_GPTInst-1"]
    with pytest.raises(InputError, match="the label is 3"):
        load_llmbar([rows[0] | {"label": 3}])


UNIT = {"query": "Do.", "response": "Done.", "natural_unit_test": "Is it done?"}
RUBRIC = {"rubric": "Score 1: no.", "reference_answer": "It is done.", "gpt4_score": [4.0], "label": 4.0}


def test_flask_and_infobench_have_a_unit_test_for_each_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub(monkeypatch, [UNIT | RUBRIC | {"human_score": [4, 5]}, UNIT | RUBRIC | {"human_score": [-1]}])
    (rated,) = load_rated("flask")
    assert hub.asked == [("ContextualAI/Flask", None, "test")]
    assert (rated.input, rated.output, rated.human) == ("Do.", "Done.", {"score": (4.0, 5.0)})
    (asked,) = own_test(rated, "rubric").questions
    assert (asked.text, asked.rubric, asked.reference) == ("Is it done?", "Score 1: no.", None)
    assert own_test(rated, "rubric", "reference_answer").questions[0].reference == "It is done."
    own = rated.model_dump(include={"id", "input", "output", "human", "metadata"})
    assert load_rated("flask", lines(tmp_path / "own.jsonl", [own])) == [rated]
    fulfilled, not_fulfilled = load_rated("infobench", [UNIT | {"label": 1}, UNIT | {"label": 0}])
    assert [each.human_score("score") for each in (fulfilled, not_fulfilled)] == [1, 0]
    with pytest.raises(InputError, match=naming("infobench-0", "'rubric'")):
        own_test(fulfilled, "rubric")
    with pytest.raises(InputError, match=naming("row 1", "label", 3)):
        load_rated("infobench", [UNIT | {"label": 3}])
    with pytest.raises(InputError, match=naming("row 1", "'natural_unit_test'")):
        load_rated("infobench", [{"query": "Do.", "response": "Done.", "label": 1}])


def test_biggen_bench_is_read_in_both_published_forms() -> None:
    levels = {f"score{level}_description": f"L{level}." for level in range(1, 6)}
    theirs = {
        "id": "planning_0",
        "capability": "planning",
        "task": "plan",
        "system_prompt": "Be brief.",
        "input": "Do.",
    }
    theirs |= {"response": "Done.", "reference_answer": "It.", "score_rubric": {"criteria": "Is it done?", **levels}}
    (found,) = load_rated("biggen", [theirs | {"model_name": "m", "human_score": 3}])
    assert (found.input, found.human) == ("Be brief.\n\nDo.", {"score": (3.0,)})
    (asked,) = own_test(found, "rubric", "reference_answer").questions
    assert (asked.text, asked.reference) == ("Is it done?", "It.")
    assert asked.rubric == "Score 1: L1.\nScore 2: L2.\nScore 3: L3.\nScore 4: L4.\nScore 5: L5."
    (ours,) = load_rated("biggen", [UNIT | RUBRIC | {"human_score": 3}])
    assert ours.human == found.human
    with pytest.raises(InputError, match=naming("row 1", "'score_rubric'", "score5_description")):
        load_rated("biggen", [theirs | {"human_score": 3, "score_rubric": {"criteria": "Is it?"}}])


def test_helpsteer2_has_five_ratings_and_the_responses_to_a_prompt_are_one_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = {"prompt": "Do.", "response": "Done."} | dict.fromkeys(DIMENSIONS["helpsteer2"], 3)
    hub = Hub(monkeypatch, [row | {"verbosity": 0}, row | {"response": "No."}, row | {"prompt": "Go."}])
    found = load_rated("helpsteer2")
    assert hub.asked == [("nvidia/HelpSteer2", None, "train")]
    assert found[0].human == dict.fromkeys(DIMENSIONS["helpsteer2"], (3.0,)) | {"verbosity": (0.0,)}
    first, second, third = documents(found) or []
    assert first == second != third
    with pytest.raises(InputError, match=naming("row 1", "'coherence'")):
        load_rated("helpsteer2", [row | {"coherence": None}])


def test_lfqa_is_read_in_both_published_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub(
        monkeypatch, [{"query": "Why?", "response_a": "So.", "response_b": "Thus.", "label": label} for label in (1, 2)]
    )
    assert [each.preferred for each in load_pairs_of("lfqa")] == ["a", "b"]
    assert hub.asked == [("ContextualAI/LFQA", None, "test")]
    theirs = {"question": "Why?", "answer_a": "So.", "answer_b": "Thus.", "answer_a_type": "human"}
    found = load_pairs_of("lfqa", [theirs | {"overall_preference": side} for side in (-1, 0, 1)])
    assert [each.preferred for each in found] == ["a", "tie", "b"]
    assert (found[0].input, found[0].output_a, found[0].output_b) == ("Why?", "So.", "Thus.")
    with pytest.raises(InputError, match=naming("row 1", "'overall_preference'", 2)):
        load_pairs_of("lfqa", [theirs | {"overall_preference": 2}])


def conversation(*replies: str) -> list[dict[str, str]]:
    messages = []
    for number, reply in enumerate(replies):
        messages += [{"role": "user", "content": f"Question {number}?"}, {"role": "assistant", "content": reply}]
    return messages


def judgement(**fields: Any) -> dict[str, Any]:
    row = {
        "question_id": 81,
        "model_a": "m1",
        "model_b": "m2",
        "winner": "model_b",
        "judge": "expert_1",
        "conversation_a": conversation("A1.", "A2."),
        "conversation_b": conversation("B1.", "B2."),
        "turn": 1,
    }
    return row | fields


def test_mt_bench_shows_as_many_turns_as_were_judged() -> None:
    first, second, tie = load_mt_bench([judgement(), judgement(turn=2), judgement(winner="tie (inconsistent)")])
    assert (first.input, first.output_a, first.output_b, first.preferred) == ("Question 0?", "A1.", "B1.", "b")
    assert second.output_a == "Assistant: A1.\n\nUser: Question 1?\n\nAssistant: A2."
    assert tie.preferred == "tie"
    assert first.group == second.group == "question 81"
    with pytest.raises(InputError, match="the winner is 'both'"):
        load_mt_bench([judgement(winner="both")])
    with pytest.raises(InputError, match=naming("user and assistant", 2)):
        load_mt_bench([judgement(turn=2, conversation_b=conversation("B1."))])


def test_reward_bench_has_sections_and_does_not_always_show_the_chosen_reply_first() -> None:
    rows = [{"id": n, "prompt": "Do.", "chosen": "Good.", "rejected": "Bad.", "subset": "math-prm"} for n in range(40)]
    pairs = load_reward_bench(rows)
    assert {each.section for each in pairs} == {"Reasoning"}
    assert {each.preferred for each in pairs} == {"a", "b"}
    assert all((each.output_a if each.preferred == "a" else each.output_b) == "Good." for each in pairs)
    assert sum(map(len, SECTIONS.values())) == 23
    with pytest.raises(InputError, match="'poems' is no subset"):
        load_reward_bench([rows[0] | {"subset": "poems"}])


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_in_our_own_form_are_taken_by_every_loader_of_pairs(name: str, tmp_path: Path) -> None:
    row = {"id": "p", "input": "Do.", "output_a": "A.", "output_b": "B.", "preferred": "a"}
    (pair,) = load_pairs_of(name, lines(tmp_path / "pairs.jsonl", [row]))
    assert pair.preferred == "a"


IFBENCH = {
    "key": "7",
    "prompt": "Write of cats.",
    "instruction_id_list": ["count:word_count_range", "format:no_whitespace"],
    "kwargs": [{"min_words": 3.0, "max_words": 5.0, "sep": None}, {}],
}


def test_ifbench_has_its_constraints_as_metadata_and_no_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = load_prompts("ifbench", lines(tmp_path / "IFBench_test.jsonl", [IFBENCH]))
    assert (found.id, found.input, found.output) == ("ifbench-7", "Write of cats.", None)
    assert found.metadata == {
        "instruction_id_list": IFBENCH["instruction_id_list"],
        "kwargs": [{"min_words": 3, "max_words": 5}, {}],
    }
    own = found.model_dump(include={"id", "input", "metadata"})
    own["metadata"]["split"] = "test"
    (again,) = load_prompts("ifbench", lines(tmp_path / "own.jsonl", [own]))
    assert again.metadata == {**found.metadata, "split": "test"}
    hub = Hub(monkeypatch, [IFBENCH])
    assert load_prompts("ifbench") == [found]
    assert hub.asked == [("allenai/IFBench_test", None, "train")]


def test_ifbench_rows_without_their_constraints_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=naming("line 1", "'kwargs'", "one object")):
        load_prompts("ifbench", lines(tmp_path / "a.jsonl", [IFBENCH | {"kwargs": [{}]}]))
    with pytest.raises(InputError, match="line 1: the field 'instruction_id_list' is missing"):
        load_prompts("ifbench", lines(tmp_path / "b.jsonl", [{"id": "a", "input": "Write."}]))


def test_an_unknown_data_set_is_named_with_those_there_are() -> None:
    with pytest.raises(InputError, match="'ifbench' holds prompts without outputs; here one of summeval"):
        load_rated("ifbench")
    with pytest.raises(InputError, match="'qags' holds rated examples"):
        load_prompts("qags")
    with pytest.raises(InputError, match=r"no data set 'sumeval'.*Did you mean 'summeval'"):
        load_rated("sumeval")
    with pytest.raises(InputError, match="'llmbar' holds preference pairs"):
        load_rated("llmbar")
    with pytest.raises(InputError, match="'qags' holds rated examples"):
        load_pairs_of("qags")


def test_an_id_that_stands_there_twice_is_refused() -> None:
    row = {"id": "a", "input": "In.", "output": "Out.", "human": {"consistency": 1}}
    with pytest.raises(InputError, match="'a' stands there twice"):
        load_rated("qags", [row, row])


def test_a_file_that_is_not_there_or_no_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=naming("no such file")):
        load_rated("qags", tmp_path / "none.json")
    (tmp_path / "object.json").write_text("{}")
    with pytest.raises(InputError, match=naming("JSON objects")):
        load_rated("qags", tmp_path / "object.json")


class Hub:
    """Stands for the package ``datasets``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rows: list[Mapping[str, Any]] | Exception) -> None:
        self.asked: list[tuple[Any, ...]] = []
        package = ModuleType("datasets")

        def load_dataset(path: str, name: str | None = None, *, split: str) -> Any:
            self.asked.append((path, name, split))
            if isinstance(rows, Exception):
                raise rows
            return rows

        package.load_dataset = load_dataset  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "datasets", package)


def test_without_a_file_the_hub_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"id": "d", "text": "In.", "machine_summaries": ["A."]} | {name: [v] for name, v in RATINGS.items()}
    hub = Hub(monkeypatch, [row])
    assert len(load_rated("summeval")) == 1
    assert hub.asked == [("mteb/summeval", None, "test")]
    pair = {"input": "Do.", "output_1": "Good.", "output_2": "Bad.", "label": 1}
    hub = Hub(monkeypatch, [pair])
    assert load_llmbar(part="Adversarial_Manual")[0].section == "Adversarial_Manual"
    assert hub.asked == [("princeton-nlp/LLMBar", "LLMBar", "Adversarial_Manual")]


def test_a_hub_out_of_reach_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    Hub(monkeypatch, ConnectionError("no network\nmore"))
    with pytest.raises(AskanceError, match=r"mteb/summeval: cannot be had .*\(no network\)\. Download the file"):
        load_rated("summeval")


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'askance\[datasets\]'"):
        load_rated("summeval")


@pytest.mark.parametrize("name", ["qags", "topical_chat"])
def test_a_data_set_that_is_not_on_the_hub_says_which_file_to_get(name: str) -> None:
    assert name in RATED
    with pytest.raises(InputError, match="Download its authors'"):
        load_rated(name)

"""Data sets of preference pairs: LFQA, LLMBar, MT-Bench and RewardBench, in every published form."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from ...prompts.errors import InputError
from ...prompts.preferences import Preference
from .rows import Hub, Row, Source, chat, own_pair, pair, rows_of

LFQA = Hub(
    "ContextualAI/LFQA",
    "test",
    file="JSON or JSONL with query, response_a, response_b, label, or the authors' "
    "experts_pairwise_human_preferences.jsonl",
)
_LFQA_LABELS = {1: "a", 2: "b", 0: "b", -1: "b"}
"""Preferred response by label. As in LMUnit's metric, every label but 1 counts for the second response."""
_LFQA_OVERALL = {-1: "a", 0: "tie", 1: "b"}
LLMBAR_PARTS = ("Natural", "Adversarial_Neighbor", "Adversarial_GPTInst", "Adversarial_GPTOut", "Adversarial_Manual")
MT_BENCH = Hub(
    "lmsys/mt_bench_human_judgments",
    "human",
    file="JSON or JSONL with question_id, model_a, model_b, winner, judge, conversation_a, conversation_b, turn",
)
_WINNERS = {"model_a": "a", "model_b": "b", "tie": "tie", "tie (inconsistent)": "tie", "tie (bothbad)": "tie"}
REWARD_BENCH = Hub("allenai/reward-bench", "filtered", file="JSON or JSONL with prompt, chosen, rejected, subset, id")
SECTIONS = {
    "Chat": ("alpacaeval-easy", "alpacaeval-length", "alpacaeval-hard", "mt-bench-easy", "mt-bench-med"),
    "Chat Hard": (
        "mt-bench-hard",
        "llmbar-natural",
        "llmbar-adver-neighbor",
        "llmbar-adver-GPTInst",
        "llmbar-adver-GPTOut",
        "llmbar-adver-manual",
    ),
    "Safety": (
        "refusals-dangerous",
        "refusals-offensive",
        "xstest-should-refuse",
        "xstest-should-respond",
        "donotanswer",
    ),
    "Reasoning": ("math-prm", "hep-cpp", "hep-go", "hep-java", "hep-js", "hep-python", "hep-rust"),
}
"""Sections of RewardBench and their subsets."""
_SECTION = {subset: section for section, subsets in SECTIONS.items() for subset in subsets}


def load_lfqa(source: Source = None) -> list[Preference]:
    """Load the experts' preferences between long answers (LFQA, Xu et al. 2023), in the order of the file.

    Known forms: the data set that LMUnit's authors published on the hub, the authors' ``preference_data``
    (``question``, ``answer_a``, ``answer_b``, ``overall_preference``), and askance's own format.
    """
    return [_lfqa(row, number) for number, row in enumerate(rows_of(source, LFQA))]


def _lfqa(row: Row, number: int) -> Preference:
    if row.has("response_a", "response_b"):
        asked, answers, column, meaning = "query", "response", "label", _LFQA_LABELS
    elif row.has("answer_a", "answer_b"):
        asked, answers, column, meaning = "question", "answer", "overall_preference", _LFQA_OVERALL
    else:
        return own_pair(row)
    if row[column] not in meaning:
        raise InputError(f"{row.where}: '{column}' is {row[column]!r}; known are {', '.join(map(str, meaning))}.")
    a, b = (row.text(f"{answers}_{side}") for side in "ab")
    preferred = meaning[row[column]]
    return pair(
        row, id=f"lfqa-{number}", input=row.text(asked), output_a=a, output_b=b, preferred=preferred, dataset="LFQA"
    )


def load_llmbar(source: Source = None, *, part: str = "Natural") -> list[Preference]:
    """Load LLMBar (Zeng et al. 2024), in the order of the file: one output of a pair follows its instruction.

    Known forms: the authors' ``dataset.json`` of one part (``input``, ``output_1``, ``output_2``, ``label``), the data
    set on the hub, and askance's own format. ``part`` is used in the ids and selects the part on the hub.
    """
    file = "the authors' dataset.json of one part, with input, output_1, output_2, label"
    hub = Hub("princeton-nlp/LLMBar", part, "LLMBar", file)
    return [_llmbar(row, number, part) for number, row in enumerate(rows_of(source, hub))]


def _llmbar(row: Row, number: int, part: str) -> Preference:
    if not row.has("output_1", "output_2", "label"):
        return own_pair(row)
    label = row["label"]
    if label not in (1, 2):
        raise InputError(f"{row.where}: the label is {label!r}; it says which output is better, 1 or 2.")
    return pair(
        row,
        id=f"llmbar-{part}-{number}",
        input=row.text("input"),
        output_a=row.text("output_1"),
        output_b=row.text("output_2"),
        preferred="a" if label == 1 else "b",
        section=part,
        dataset="LLMBar",
    )


def load_mt_bench(source: Source = None) -> list[Preference]:
    """Load MT-Bench's human judgements (Zheng et al. 2023), one pair each, in the order of the file.

    Known forms: the data set on the hub (split ``human``), a file with the same columns, and askance's own format. The
    input is the user's first question. For a judgement of the second turn, an output is both replies of a model, with
    the user's second question between them. Judgements of one question are one group (``metadata.group``).
    """
    return [_mt_bench(row, number) for number, row in enumerate(rows_of(source, MT_BENCH))]


def _mt_bench(row: Row, number: int) -> Preference:
    if not row.has("conversation_a", "conversation_b", "winner"):
        return own_pair(row)
    winner = str(row["winner"])
    if winner not in _WINNERS:
        raise InputError(f"{row.where}: the winner is '{winner}'; known are {', '.join(_WINNERS)}.")
    turn = int(row["turn"])
    a, b = (_turns(row, side, turn) for side in ("conversation_a", "conversation_b"))
    return pair(
        row,
        id=f"mt-bench-{number}",
        input=str(a[0]["content"]),
        output_a=_output(a),
        output_b=_output(b),
        preferred=_WINNERS[winner],
        section=f"turn {turn}",
        dataset="MT-Bench",
        metadata={
            "group": f"question {row['question_id']}",
            "model_a": row["model_a"],
            "model_b": row["model_b"],
            "judge": row["judge"],
        },
    )


def _turns(row: Row, side: str, turn: int) -> list[Any]:
    """Return the messages of the first ``turn`` turns. Raises InputError unless user and model alternate."""
    messages = row.items(side)[: 2 * turn]
    roles = [each.get("role") if isinstance(each, Mapping) else None for each in messages]
    if len(messages) < 2 * turn or roles != ["user", "assistant"] * turn:
        raise InputError(f"{row.where}: '{side}' needs user and assistant in turn, {turn} time(s).")
    return messages


def _output(messages: list[Any]) -> str:
    return str(messages[1]["content"]) if len(messages) == 2 else chat(messages[1:])


def load_reward_bench(source: Source = None) -> list[Preference]:
    """Load RewardBench (Lambert et al. 2024), in the order of the file; ``dataset`` is the subset.

    Known forms: the data set on the hub (split ``filtered``), a file with the same columns, and askance's own format.
    The id decides at random which reply comes first, so that a judge that favours one place gains nothing.
    """
    return [_reward_bench(row) for row in rows_of(source, REWARD_BENCH)]


def _reward_bench(row: Row) -> Preference:
    if not row.has("chosen", "rejected"):
        return own_pair(row)
    subset = row.text("subset")
    if subset not in _SECTION:
        raise InputError(f"{row.where}: '{subset}' is no subset of RewardBench.")
    name, prompt = f"{subset}-{row['id']}", row.text("prompt")
    chosen_first = sha256(name.encode()).digest()[0] % 2 == 0
    replies = (row.text("chosen"), row.text("rejected"))
    first, second = replies if chosen_first else replies[::-1]
    return pair(
        row,
        id=name,
        input=prompt,
        output_a=first,
        output_b=second,
        preferred="a" if chosen_first else "b",
        section=_SECTION[subset],
        dataset=subset,
    )

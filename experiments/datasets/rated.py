"""Data sets of examples that people rated: SummEval, QAGS, Topical-Chat and HelpSteer2, in every published form."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from ...prompts.errors import InputError
from ...prompts.examples import Example
from .rows import Elsewhere, Hub, Row, Source, example, own_example, ratings_of, rows_of, scores_of

DIMENSIONS = {
    "qags": ("consistency",),
    "topical_chat": ("naturalness", "coherence", "engagingness", "groundedness"),
    "summeval": ("coherence", "consistency", "fluency", "relevance"),
    "helpsteer2": ("helpfulness", "correctness", "coherence", "complexity", "verbosity"),
}
"""The dimensions in the papers' tables."""
OTHER_DIMENSIONS = ("understandability", "overall")
"""Further dimensions of Topical-Chat."""
SUMMEVAL = Hub("mteb/summeval", "test", file="the authors' model_annotations.aligned.paired.jsonl")
QAGS = Elsewhere("QAGS", "mturk_cnndm.jsonl or mturk_xsum.jsonl")
HELPSTEER2 = Hub(
    "nvidia/HelpSteer2",
    "train",
    file=f"JSON, JSONL or CSV with prompt, response, {', '.join(DIMENSIONS['helpsteer2'])}",
)
TOPICAL_CHAT = Elsewhere("Topical-Chat", "tc_usr_data.json")
PER_SYSTEM = 10
"""Development examples of each system of SummEval (BinEval App. B)."""
_USR = {
    "naturalness": "Natural",
    "coherence": "Maintains Context",
    "engagingness": "Engaging",
    "groundedness": "Uses Knowledge",
    "understandability": "Understandable",
    "overall": "Overall",
}
"""Our names and the authors' ones; their scales differ (1 to 3, 0 to 1, 1 to 5)."""


def load_summeval(source: Source = None) -> list[Example]:
    """Load SummEval (Fabbri et al. 2021), in the order of the file: CNN/DM summaries of 16 systems, rated 1 to 5.

    Read are the authors' ``model_annotations.aligned.paired.jsonl`` (every expert's rating is kept), UniEval's
    ``summeval.json``, ``mteb/summeval`` of the hub (means of the experts; systems are numbered) and askance's own
    format.
    """
    return [each for row in rows_of(source, SUMMEVAL) for each in _summeval(row)]


def split_summeval(examples: Sequence[Example], *, seed: int = 42) -> tuple[list[Example], list[Example]]:
    """Divide as in BinEval (App. B): 10 examples of each system at random are development, the rest is test.

    With all 16 systems that is 160 and 1,440. The paper does not say which generator its seed 42 belongs to, so the
    same numbers do not mean the same examples. Raises InputError where an example names no system, or a system has no
    more than 10 examples.
    """
    by_system: dict[str, list[Example]] = {}
    for rated in examples:
        if rated.system is None:
            raise InputError(f"Example '{rated.id}' names no system; SummEval is divided by system.")
        by_system.setdefault(rated.system, []).append(rated)
    chosen: set[str] = set()
    chance = random.Random(seed)
    for system in sorted(by_system):
        members = sorted(member.id for member in by_system[system])
        if len(members) <= PER_SYSTEM:
            raise InputError(
                f"System '{system}' has {len(members)} examples; more than {PER_SYSTEM} are needed "
                f"to take {PER_SYSTEM} for development."
            )
        chosen.update(chance.sample(members, PER_SYSTEM))
    return [example for example in examples if example.id in chosen], [
        example for example in examples if example.id not in chosen
    ]


def _summeval(row: Row) -> Iterator[Example]:
    if row.has("machine_summaries"):
        yield from _of_one_document(row)
    elif row.has("expert_annotations", "decoded"):
        document = row.text("text") if row.has("text") else row.text("source")
        experts = row.items("expert_annotations")
        human = {dimension: ratings_of(row, experts, dimension) for dimension in DIMENSIONS["summeval"]}
        system, name = row.text("model_id"), row.text("id")
        yield example(row, f"{name}/{system}", document, row.text("decoded"), human, system=system, document=name)
    elif row.has("system_output"):
        name = str(row["doc_id"])
        system = str(row["system_id"])
        human = scores_of(row, "scores", DIMENSIONS["summeval"])
        yield example(
            row, f"{name}/{system}", row.text("source"), row.text("system_output"), human, system=system, document=name
        )
    else:
        yield own_example(row, DIMENSIONS["summeval"])


def _of_one_document(row: Row) -> Iterator[Example]:
    summaries = row.items("machine_summaries")
    columns = {dimension: row.items(dimension) for dimension in DIMENSIONS["summeval"]}
    for dimension, column in columns.items():
        if len(column) != len(summaries):
            raise InputError(f"{row.where}: {len(column)} ratings of {dimension} for {len(summaries)} summaries.")
    name = str(row["id"])
    for number, summary in enumerate(summaries):
        human = {dimension: [column[number]] for dimension, column in columns.items()}
        system = f"system-{number:02d}"
        yield example(row, f"{name}/{system}", row.text("text"), summary, human, system=system, document=name)


def load_qags(source: Source = None) -> list[Example]:
    """Load QAGS (Wang et al. 2020): 235 summaries of CNN/DM or 239 of XSum, rated for consistency.

    Read are the authors' ``mturk_cnndm.jsonl`` and ``mturk_xsum.jsonl``, UniEval's ``qags_cnndm.json`` and
    ``qags_xsum.json``, and askance's own format. From the authors' files the score of a summary is the mean over its
    sentences of what most of the three workers said, as QAGS computes it.
    """
    return [_qags(row, number) for number, row in enumerate(rows_of(source, QAGS))]


def _qags(row: Row, number: int) -> Example:
    if row.has("article", "summary_sentences"):
        sentences = row.items("summary_sentences")
        if not sentences:
            raise InputError(f"{row.where}: the summary has no sentences.")
        summary = " ".join(str(each["sentence"]).strip() for each in sentences)
        votes = [_supported(row, each) for each in sentences]
        human = {"consistency": [sum(votes) / len(votes)]}
        return example(row, f"qags-{number}", row.text("article"), summary, human)
    if row.has("system_output"):
        human = scores_of(row, "scores", DIMENSIONS["qags"])
        return example(row, f"qags-{number}", row.text("source"), row.text("system_output"), human)
    return own_example(row, DIMENSIONS["qags"])


def _supported(row: Row, sentence: Mapping[str, Any]) -> bool:
    """Return True if most workers found a sentence supported."""
    said = [str(each.get("response", "")).strip().lower() for each in sentence.get("responses", ())]
    if not said or set(said) - {"yes", "no"}:
        raise InputError(f"{row.where}: each sentence needs responses of yes or no.")
    return 2 * said.count("yes") > len(said)


def load_topical_chat(source: Source = None) -> list[Example]:
    """Load Topical-Chat as rated for USR (Mehri and Eskenazi 2020), in the order of the file.

    There are 60 contexts with replies of 6 systems; those to one context share ``metadata.document``. Read are the
    authors' ``tc_usr_data.json`` (every annotator's rating is kept), UniEval's ``topical_chat.json`` and askance's own
    format. The four dimensions of UniEval and BinEval come first; the others are kept where they are.
    """
    return [each for number, row in enumerate(rows_of(source, TOPICAL_CHAT)) for each in _topical_chat(row, number)]


def _topical_chat(row: Row, number: int) -> Iterator[Example]:
    if row.has("responses"):
        for reply in row.items("responses"):
            yield _usr(row, reply, number)
    elif row.has("system_output"):
        human = scores_of(row, "scores", (*DIMENSIONS["topical_chat"], *OTHER_DIMENSIONS))
        history, system = row.text("source"), str(row["system_id"])
        document = _document(history)
        yield example(
            row,
            f"{document}/{system}",
            history,
            row.text("system_output"),
            human,
            context=row.text("context"),
            system=system,
            document=document,
        )
    else:
        made = own_example(row, DIMENSIONS["topical_chat"], keep=OTHER_DIMENSIONS)
        yield made.model_copy(update={"metadata": {"document": _document(made.input), **made.metadata}})


def _usr(row: Row, reply: Any, number: int) -> Example:
    if not isinstance(reply, Mapping) or not all(reply.get(name) for name in ("response", "model", *_USR.values())):
        raise InputError(f"{row.where}: each of 'responses' needs response, model, {', '.join(_USR.values())}.")
    human = {ours: reply[theirs] for ours, theirs in _USR.items()}
    return example(
        row,
        f"context-{number:02d}/{reply['model']}",
        row.text("context"),
        str(reply["response"]).strip(),
        human,
        context=row.text("fact"),
        system=str(reply["model"]),
        document=f"context-{number:02d}",
    )


def load_helpsteer2(source: Source = None) -> list[Example]:
    """Load HelpSteer2 (Wang et al. 2024), in the order of the file; the responses to a prompt are one document.

    People rated five attributes from 0 to 4. Read are the data set on the hub (split ``train``), a file with its
    columns, and askance's own format.
    """
    return [_helpsteer2(row, number) for number, row in enumerate(rows_of(source, HELPSTEER2))]


def _helpsteer2(row: Row, number: int) -> Example:
    names = DIMENSIONS["helpsteer2"]
    if not row.has("prompt", "response"):
        return own_example(row, names)
    prompt, human = row.text("prompt"), {name: [row[name]] for name in names}
    return example(row, f"helpsteer2-{number}", prompt, row.text("response"), human, document=_document(prompt))


def _document(history: str) -> str:
    return sha256(history.encode()).hexdigest()[:12]

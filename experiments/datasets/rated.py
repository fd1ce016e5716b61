"""Data sets of single outputs or prompts, in every published form.

People rated the outputs of SummEval, QAGS, Topical-Chat and HelpSteer2 on dimensions. In FLASK, BiGGen-Bench and
InFoBench each output has a unit test, by which people scored it (LMUnit A.2). IFBench has only prompts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from ...prompts.checklist import Checklist, Question
from ...prompts.errors import InputError
from ...prompts.examples import Example
from ...prompts.field_map import FIELDS
from ...prompts.rows import validate_row
from .rows import Elsewhere, Hub, Row, Source, example, own_example, ratings_of, rows_of, scores_of

DIMENSIONS = {
    "qags": ("consistency",),
    "topical_chat": ("naturalness", "coherence", "engagingness", "groundedness"),
    "summeval": ("coherence", "consistency", "fluency", "relevance"),
    "helpsteer2": ("helpfulness", "correctness", "coherence", "complexity", "verbosity"),
}
"""Dimensions in the papers' tables."""
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
"""Our names of the dimensions and the authors' names. Their scales differ (1 to 3, 0 to 1, 1 to 5)."""


def load_summeval(source: Source = None) -> list[Example]:
    """Load SummEval (Fabbri et al. 2021), in the order of the file: CNN/DM summaries of 16 systems, rated 1 to 5.

    Known forms: the authors' ``model_annotations.aligned.paired.jsonl`` (every expert's rating is kept), UniEval's
    ``summeval.json``, ``mteb/summeval`` on the hub (means of the experts; systems are numbered) and askance's own
    format.
    """
    return [each for row in rows_of(source, SUMMEVAL) for each in _summeval(row)]


def split_summeval(examples: Sequence[Example], *, seed: int = 42) -> tuple[list[Example], list[Example]]:
    """Divide as in BinEval (App. B): 10 random examples of each system are development, the rest is test.

    With all 16 systems this gives 160 and 1,440. The paper does not say for which random generator its seed 42 is, so
    the examples may differ. Raises InputError if an example names no system, or a system has 10 examples or fewer.
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
    parts: tuple[list[Example], list[Example]] = ([], [])
    for each in examples:
        parts[each.id not in chosen].append(each)
    return parts


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

    Known forms: the authors' ``mturk_cnndm.jsonl`` and ``mturk_xsum.jsonl``, UniEval's ``qags_cnndm.json`` and
    ``qags_xsum.json``, and askance's own format. In the authors' files a summary's score is the share of its sentences
    that most of the three workers found supported, as QAGS computes it.
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

    There are 60 contexts with replies of 6 systems; replies to one context share ``metadata.document``. Known forms:
    the authors' ``tc_usr_data.json`` (every annotator's rating is kept), UniEval's ``topical_chat.json`` and askance's
    own format. The four dimensions of UniEval and BinEval come first; further dimensions are kept if the row has them.
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

    People rated five attributes from 0 to 4. Known forms: the data set on the hub (split ``train``), a file with the
    same columns, and askance's own format.
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


SCORE = "score"
"""Dimension that people scored by the example's own test."""
TEST, RUBRIC, REFERENCE = "natural_unit_test", "rubric", "reference_answer"
"""Columns with the test, which are also fields of the metadata."""
_FILE = "JSON or JSONL with query, response, natural_unit_test, "
FLASK = Hub("ContextualAI/Flask", "test", file=f"{_FILE}rubric, reference_answer, human_score")
BIGGEN = Hub(
    "ContextualAI/BigGenBench",
    "test",
    file=f"{_FILE}rubric, reference_answer, human_score, or the authors' human_eval with input, score_rubric",
)
INFOBENCH = Hub("ContextualAI/InfoBenchExpertSplit", "test", file=f"{_FILE}label")


def load_flask(source: Source = None) -> list[Example]:
    """Load FLASK (Ye et al. 2023), rated from 1 to 5 by people (``human_score``), in the order of the file."""
    return _load(source, FLASK, "flask", "human_score")


def load_biggen(source: Source = None) -> list[Example]:
    """Load BiGGen-Bench (Kim et al. 2024), rated from 1 to 5 by people, in the order of the file.

    The authors' own form (``prometheus-eval/BiGGen-Bench-Results``, split ``human_eval``) is known too; it has
    ``system_prompt``, ``input`` and a ``score_rubric`` whose ``criteria`` are the test. A score of -1 means that nobody
    rated the row, which is left out.
    """
    return _load(source, BIGGEN, "biggen", "human_score")


def load_infobench(source: Source = None) -> list[Example]:
    """Load the expert split of InFoBench (Qin et al. 2024): experts' labels whether an output fulfils a question."""
    return _load(source, INFOBENCH, "infobench", "label")


def own_test(tested: Example, *fields: str) -> Checklist:
    """Return the checklist of an example's own test, with these ``fields`` (:data:`RUBRIC`, :data:`REFERENCE`). Raises
    InputError if the test or a field is missing."""
    for field in (TEST, *fields):
        if not tested.metadata.get(field):
            raise InputError(f"Example '{tested.id}': its metadata have no '{field}'.")
    rubric, reference = (tested.metadata[name] if name in fields else None for name in (RUBRIC, REFERENCE))
    text = tested.metadata[TEST]
    return Checklist(questions=(Question(id="test", text=text, dimension=SCORE, rubric=rubric, reference=reference),))


def _load(source: Source, home: Hub, name: str, column: str) -> list[Example]:
    rows = enumerate(rows_of(source, home))
    return [each for number, row in rows if (each := _example(row, f"{name}-{number}", column)) is not None]


def _example(row: Row, name: str, column: str) -> Example | None:
    if row.has("score_rubric"):
        row = _as_query(row)
    elif not row.has("query"):
        return own_example(row, (SCORE,))
    given = row[column]
    ratings = [each for each in (given if isinstance(given, Sequence) else [given]) if each >= 0]
    if not ratings:
        return None
    if column == "label":
        if ratings[0] not in (0, 1):
            raise InputError(f"{row.where}: the label is {ratings[0]!r}; it is 1 where the test is fulfilled, else 0.")
        ratings = [bool(ratings[0])]
    query = row.text("query")
    made = example(row, name, query, row.text("response"), {SCORE: ratings}, document=_document(query))
    test = {TEST: row.text(TEST)} | {field: row.text(field) for field in (RUBRIC, REFERENCE) if row.has(field)}
    return made.model_copy(update={"metadata": made.metadata | test})


def _as_query(row: Row) -> Row:
    rubric = row["score_rubric"]
    names = [f"score{level}_description" for level in range(1, 6)]
    if not isinstance(rubric, Mapping) or any(not rubric.get(name) for name in ("criteria", *names)):
        raise InputError(f"{row.where}: 'score_rubric' needs criteria, {', '.join(names)}.")
    asked = [row.text(name) for name in ("system_prompt", "input") if row.has(name)]
    told = [f"Score {level}: {rubric[name]}" for level, name in enumerate(names, 1)]
    values: dict[str, Any] = {"query": "\n\n".join(asked), TEST: rubric["criteria"], RUBRIC: "\n".join(told)}
    return Row(row.where, {**row.values, **values})


IFBENCH = Hub("allenai/IFBench_test", "train", file="the authors' IFBench_test.jsonl")


def load_ifbench(source: Source = None) -> list[Example]:
    """Load IFBench (Pyatkin et al. 2025), in the order of the file: prompts without outputs, constraints as metadata.

    Known forms: the authors' ``IFBench_test.jsonl`` (``key``, ``prompt``, ``instruction_id_list``, ``kwargs``), the
    data set on the hub, and the file that ``python -m askance.experiments.ifbench.run`` writes.
    """
    return [_prompt(row) for row in rows_of(source, IFBENCH)]


def _prompt(row: Row) -> Example:
    if not row.has("prompt"):
        known = {name: value for name, value in row.values.items() if name in FIELDS and value is not None}
        metadata = Row(row.where, known.get("metadata") or {})
        return validate_row(Example, known | {"metadata": {**metadata.values, **_constraints(metadata)}}, row.where)
    fields = {"id": f"ifbench-{row['key']}", "input": row.text("prompt"), "metadata": _constraints(row)}
    return validate_row(Example, fields, row.where)


def _constraints(row: Row) -> dict[str, Any]:
    """Return the constraints with their given arguments. Whole numbers, which tables write as 3.0, become integers."""
    types, arguments = row.items("instruction_id_list"), row.items("kwargs")
    if len(types) != len(arguments) or not all(each is None or isinstance(each, Mapping) for each in arguments):
        raise InputError(f"{row.where}: 'kwargs' must have one object for each of 'instruction_id_list'.")
    given = [{name: value for name, value in (each or {}).items() if value is not None} for each in arguments]
    for each in given:
        each |= {name: int(value) for name, value in each.items() if isinstance(value, float) and value.is_integer()}
    return {"instruction_id_list": types, "kwargs": given}

"""What `align` learns from real people's comments, on outputs that the run never saw.

``rows`` splits a set of the shared data by page: 200 rows to learn from, the others kept aside. Then `align` learns, and
``score`` has its judge read the rows that taught nothing: the test rows of the run, and with ``--kept`` those kept aside::

    python -m tests.measured.people_comments rows feedbackqa ROWS
    askance align ROWS/learn.jsonl --checklist ROWS/start.yaml --model local/qwen2.5-coder-1.5b-instruct \\
        --run RUN --store STORE --max-iterations 1 --yes
    python -m tests.measured.people_comments score feedbackqa RUN --start ROWS/start.yaml --kept ROWS/kept.jsonl --store STORE

``free`` needs no model: measures and a regression on words learn from all rows to learn from, tested on those kept
aside::

    python -m tests.measured.people_comments free defacto ROWS

The rows "measures alone" and "words alone" learn from the rows that taught the judge. The figure is Spearman's
correlation with the mean rating, or the area under the curve where people said pass or fail; resampled by page.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer

import askance
from askance.evaluation.evaluation_result import Evaluation
from askance.evaluation.measures.fitting import MeasureTable, documents_of
from askance.experiments.command_line import RESULTS, machine, write_result
from askance.memory.journal import read_events
from askance.prompts.examples import Example, documents, load_examples, mean_rating
from askance.stats.correlation import correlate
from askance.stats.differences import difference_dict, label_difference, two_sided_difference
from askance.stats.pass_fail import area_under_curve
from askance.stats.resampling import Resampling

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
SETS = {
    "feedbackqa": ("feedbackqa_uk.jsonl", "Answer a citizen's question with a passage of an agency's pages.", "answer"),
    "defacto": ("defacto_train.jsonl", "Summarise a news article in one sentence.", "summary"),
}
LEARN = 200
SEED = 59
RESULT = RESULTS / "people_comments.json"
START, LEARNED, QUESTIONS = "start", "learned judge", "questions alone"
MEASURES, WORDS = "measures alone", "words alone"


def write_rows(name: str, folder: Path) -> None:
    """Write ``learn.jsonl``, ``kept.jsonl`` and ``start.yaml``; the rows of one page are in one file."""
    file, task, output = SETS[name]
    rows = [json.loads(line) for line in (SHARED / file).read_text(encoding="utf-8").splitlines()]
    pages = sorted({_page(row) for row in rows})
    random.Random(SEED).shuffle(pages)
    place = {page: number for number, page in enumerate(pages)}
    rows.sort(key=lambda row: (place[_page(row)], row["id"]))
    folder.mkdir(parents=True, exist_ok=True)
    for part, some in (("learn", rows[:LEARN]), ("kept", rows[LEARN:])):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in some)
        (folder / f"{part}.jsonl").write_text(text, encoding="utf-8")
    question = {"id": "good", "text": f"Is the {output} good?", "dimension": "overall"}
    start = json.dumps({"task": task, "questions": [question]}, indent=1)
    (folder / "start.yaml").write_text(start + "\n", encoding="utf-8")


def _page(row: Mapping[str, Any]) -> str:
    return str(row.get("metadata", {}).get("document", row["id"]))


def scores_of(examples: Sequence[Example], found: Evaluation) -> list[float | None]:
    """The score of each example."""
    by_example = {each.example: each.overall for each in found.scores}
    return [by_example.get(each.id) for each in examples]


def measures_alone(taught: Sequence[Example], tested: Sequence[Example]) -> list[float | None]:
    """Scores of the tested examples by the measures that the taught ones choose, fit and weigh."""
    table = MeasureTable.of([*taught, *tested])
    wanted = {each.id: value for each in taught if (value := mean_rating(each.human, "overall")) is not None}
    chosen = table.choose(wanted, documents_of(taught), "overall").weighed
    total = sum(each.weight for each in chosen)
    return [
        sum(each.weight * each.p_good(each.share(table.values[each.id][one.id])) for each in chosen) / total
        if total
        else None
        for one in tested
    ]


def words_alone(taught: Sequence[Example], tested: Sequence[Example]) -> list[float]:
    """Ratings predicted by a ridge regression on TF-IDF of words and word pairs; input and output count apart."""
    apart = FeatureUnion(
        [
            (name, make_pipeline(FunctionTransformer(partial(_texts, name)), TfidfVectorizer(ngram_range=(1, 2))))
            for name in ("input", "output")
        ]
    )
    rated = [(each, value) for each in taught if (value := mean_rating(each.human, "overall")) is not None]
    model = make_pipeline(apart, RidgeCV(np.logspace(-2, 2, 9)))
    model.fit([each for each, _ in rated], [value for _, value in rated])
    return [float(each) for each in model.predict([*tested])]


def _texts(name: str, examples: Sequence[Example]) -> list[str]:
    return [str(getattr(each, name) or "") for each in examples]


def figure_of(
    name: str, column: Sequence[float | None], wanted: Sequence[float | None], sampling: Resampling
) -> dict[str, Any]:
    """One score a row held against people's, in the statistic of the set, with its interval."""
    is_labels = name == "defacto"
    found = area_under_curve(column, wanted, sampling) if is_labels else correlate(column, wanted, sampling).spearman
    return {"value": found.value, "low": found.low, "high": found.high, "n": found.n}


def score_free(name: str, folder: Path) -> dict[str, Any]:
    """Figures of measures alone and of words alone on the rows kept aside; no model is asked."""
    taught, tested = (load_examples(folder / f"{part}.jsonl") for part in ("learn", "kept"))
    wanted = [mean_rating(each.human, "overall") for each in tested]
    sampling = Resampling(documents(tested))
    found = {
        key: figure_of(name, column(taught, tested), wanted, sampling)
        for key, column in ((MEASURES, measures_alone), (WORDS, words_alone))
    }
    return {"data": name, "taught": len(taught), "tested": len(tested), "figures": found}


def score(name: str, run: Path, start: Path, kept: Path | None, store: Path) -> dict[str, Any]:
    """Figures of all judges on the rows that taught nothing, with the differences from the learned one."""
    examples = load_examples(run / "inputs" / "examples.jsonl")
    split = next(each for each in read_events(run / "journal.jsonl") if each["event"] == "split")
    taught = [each for each in examples if each.id in {*split["development"], *split["validation"]}]
    tested = [each for each in examples if each.id in set(split["test"])]
    tested += [] if kept is None else load_examples(kept)
    learned = askance.load_judge(run)
    how: dict[str, Any] = {"store": str(store), "explain": "never", "progress": False}
    columns = {
        START: scores_of(tested, askance.evaluate(tested, checklist=start, model=learned.model, **how)),
        LEARNED: scores_of(tested, learned.evaluate(tested, **how)),
        QUESTIONS: scores_of(tested, learned.without_measures().evaluate(tested, **how)),
        MEASURES: measures_alone(taught, tested),
        WORDS: words_alone(taught, tested),
    }
    wanted = [mean_rating(each.human, "overall") for each in tested]
    sampling = Resampling(documents(tested))
    is_labels = name == "defacto"

    def against(column: Sequence[float | None]) -> dict[str, Any] | None:
        mine = columns[LEARNED]
        found = (
            label_difference(column, mine, wanted, "auc", sampling)
            if is_labels
            else two_sided_difference(column, mine, wanted, sampling)
        )
        return difference_dict(found)

    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    return {
        "data": name,
        "statistic": "area under the curve" if is_labels else "Spearman",
        **machine(),
        "taught": len(taught),
        "tested": len(tested),
        "calls": result["calls"],
        "tokens": result["tokens"],
        "decision": result["decision_reason"],
        "gain": result["gain"],
        "comment_coverage": result["comment_coverage"],
        "figures": {key: figure_of(name, column, wanted, sampling) for key, column in columns.items()},
        "learned_minus": {key: against(column) for key, column in columns.items() if key != LEARNED},
        "checklist": [each.model_dump(mode="json", exclude_none=True) for each in learned.checklist.questions],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the rows, or score a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    rows, scored, alone = (commands.add_parser(each) for each in ("rows", "score", "free"))
    for each in (rows, scored, alone):
        each.add_argument("data", choices=[*SETS])
    for each in (rows, alone):
        each.add_argument("folder", type=Path)
    scored.add_argument("run", type=Path)
    scored.add_argument("--start", type=Path, required=True, help="checklist that the run began with")
    scored.add_argument("--kept", type=Path, help="rows that were kept aside")
    scored.add_argument("--store", type=Path, required=True)
    for each in (scored, alone):
        each.add_argument("-o", "--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    if given.what == "rows":
        write_rows(given.data, given.folder)
        return
    found = (
        score_free(given.data, given.folder)
        if given.what == "free"
        else score(given.data, given.run, given.start, given.kept, given.store)
    )
    known = json.loads(given.output.read_text(encoding="utf-8"))["runs"] if given.output.is_file() else []
    write_result(given.output, {"runs": [*known, found]})
    for key, each in found["figures"].items():
        gain = found.get("learned_minus", {}).get(key)
        print(f"{key}: {each['value']:.3f} [{each['low']:.3f}, {each['high']:.3f}]", gain and gain["value"])


if __name__ == "__main__":
    main()

"""Does a gain last? The judges that runs ended with, beside those that they began with, on outputs that came later.

Run ``python -m askance.experiments.measured.fresh_outputs RUN...`` after ``learned_questions``, whose directories are named
``DATA-SEED-ARM``. Each data set has 150 more outputs, written later in the same way, which no run has read; both judges answer about
them here, once. On 60 test outputs a gain of .2 is not told from none; with these there are 210 outputs that no choice was made on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...evaluation.evaluate import evaluate
from ...evaluation.judge_file import load_judge
from ...memory.run_directory import RunDirectory
from ...models.base import Model
from ...prompts.errors import InputError
from ...prompts.examples import load_examples
from ..command_line import RESULTS, data_of, finished_runs, says_errors, write_result
from .learned_questions import DATA, MORE
from .peers.runs import difference, figures
from .pooled_gain import scores_on_test

RESULT = RESULTS / "fresh_outputs.json"


def on_fresh_outputs(run: Path, model: Model | None = None) -> dict[str, Any]:
    """What a run's first and last judge say of its data's further outputs: Spearman and area under the curve, and the gain,
    also with the run's test.

    Args:
        run: A finished run's directory.
        model: What is asked; by default the judge's own model.

    Raises:
        InputError: The run is not finished, it has no test, or there are no further outputs of its data.
    """
    data = data_of(run)
    if data not in DATA:
        raise InputError(f"{run}: the name should begin with {', '.join(DATA)}.")
    judge, directory = load_judge(run), RunDirectory(run)
    _, checklist, prompts = directory.read_inputs()
    examples = load_examples(DATA[data] / MORE)
    scores = {each.id: each.human_score("overall") for each in examples}
    labels = {name: score for name, score in scores.items() if score is not None}
    asked: Any = model or judge.model
    started = evaluate(examples, checklist=checklist, model=asked, prompt=prompts["prompt"], explain="never")
    before, after = (
        {each.example: each.overall for each in found.scores}
        for found in (started, judge.evaluate(examples, model=model))
    )
    gain, test = directory.read_result().gain.test, scores_on_test(run)
    both = (
        before | {name: first for name, (first, _, _) in test.items()},
        after | {name: last for name, (_, last, _) in test.items()},
        labels | {name: wanted for name, (_, _, wanted) in test.items()},
    )
    return {
        "run": run.name,
        "test_gain": None if gain is None else gain.value,
        "start": figures(before, labels),
        "accepted": figures(after, labels),
        "gain": difference(before, after, labels),
        "gain_with_test": difference(*both),
    }


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the further outputs, write what was found."""
    given = finished_runs(__spec__.name, __doc__, RESULT, arguments)
    rows = [on_fresh_outputs(each) for each in given.runs]
    write_result(given.output, {"command": f"python -m {__spec__.name} RUN...", "runs": rows})
    for row in rows:
        print(row)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

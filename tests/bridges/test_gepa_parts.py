"""What GEPA's reflection is told of an example."""

from __future__ import annotations

from askance.bridges.gepa_parts import NearnessToPeople
from askance.evaluation.scoring import Targets, score_examples
from askance.optimizer.subject import Observation
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.verdicts import Verdict
from tests.said import says


def test_a_question_that_is_asked_of_the_output_alone_too_is_told_apart() -> None:
    whole = Question(id="short", text="Is it short?")
    checklist = Checklist(questions=(whole, whole.model_copy(update={"id": "short-alone", "sees": "output"})))
    examples = [Example(id="e", input="in", output="out")]
    verdicts = [
        Verdict("e", "short", "m", "p", True, 0.9, "logprob"),
        Verdict("e", "short-alone", "m", "p", False, 0.2, "logprob"),
    ]
    scores = score_examples(examples, checklist, verdicts)
    metric = NearnessToPeople(Targets("human", ("overall",), {"e": {"overall": 1.0}}))
    record = metric.record(Observation(examples, verdicts, scores, checklist), 0, {})
    whole, alone = record["Generated Outputs"].items()
    assert whole == ("Is it short?", "yes, P(yes) = 0.90")
    assert says(alone[0], "Is it short?", "output alone") and alone[1] == "no, P(yes) = 0.20"

"""Forms in which tools and data sets publish rows: how each is recognised, and which path is which of our fields."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class PublishedForm:
    """One published form."""

    name: str
    """For ``--from``."""
    title: str
    marks: tuple[str, ...]
    """Paths, or beginnings of paths, that all must be there; ``a|b`` is either."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Our field to a path; of ``a|b`` the first that is there; ``vars.?`` is the likeliest below ``vars``."""
    within: str = ""
    """The place of the rows inside the rows of the file, where they stand deeper."""
    people: str = ""
    """A pattern of the paths under which people's scores and comments stand; empty where a program gave all scores."""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Meaning of the labels, where the form has some of its own."""
    pairs: bool = False
    """Whether a row is a pair of outputs."""
    traces: bool = False
    """Whether these are traces, of which ``askance import`` alone makes examples."""
    note: str = ""
    """A sentence for the user."""

    def fits(self, columns: Collection[str]) -> bool:
        """Whether rows with these columns have this form."""
        return all(any(_is_there(each, columns) for each in mark.split("|")) for mark in self.marks)

    def is_peoples(self, path: str) -> bool:
        """Whether people gave what stands there."""
        return bool(self.people) and re.fullmatch(self.people, path) is not None


def _is_there(mark: str, columns: Collection[str]) -> bool:
    return any(path == mark or path.startswith(f"{mark}.") for path in columns)


_PROGRAM = "Its scores are a program's and stay metadata; --field human.NAME=PATH takes one that people gave."

FORMS = (
    PublishedForm(
        "promptfoo",
        "results of promptfoo",
        ("vars", "response", "testCase|gradingResult|promptIdx"),
        {"input": "vars.?", "output": "response.output|response", "system": "provider.id|provider"},
        note=_PROGRAM,
    ),
    PublishedForm("promptfoo", "tests of promptfoo", ("vars",), {"input": "vars.?"}),
    PublishedForm(
        "promptfoo", "tests of promptfoo", ("__expected|__expected1|__description|__prefix|__suffix",), {"input": "?"}
    ),
    PublishedForm(
        "inspect",
        "a log of Inspect",
        ("epoch", "target", "output.choices|output.completion|output.model"),
        {"input": "input", "output": "output.completion", "reference": "target"},
        note=_PROGRAM,
    ),
    PublishedForm(
        "deepeval",
        "goldens or test cases of DeepEval",
        ("input", "actual_output|retrieval_context", "expected_output|retrieval_context|context"),
        {
            "output": "actual_output",
            "context": "retrieval_context|context",
            "reference": "expected_output",
            "comment": "comments",
        },
    ),
    PublishedForm(
        "deepeval",
        "a test run of DeepEval",
        ("input", "actualOutput", "metricsData|success"),
        {"output": "actualOutput", "context": "retrievalContext|context", "reference": "expectedOutput"},
        note=_PROGRAM,
    ),
    PublishedForm(
        "ragas",
        "a data set of ragas",
        ("user_input", "response|retrieved_contexts|reference"),
        {"input": "user_input", "output": "response", "context": "retrieved_contexts", "reference": "reference"},
    ),
    PublishedForm(
        "ragas",
        "a data set of ragas",
        ("question", "contexts", "answer|ground_truth|ground_truths"),
        {"input": "question", "output": "answer", "context": "contexts", "reference": "ground_truth|ground_truths"},
    ),
    PublishedForm(
        "langsmith",
        "a data set of LangSmith",
        ("inputs", "dataset_id|source_run_id"),
        {"input": "inputs.?|inputs", "output": "outputs.?|outputs"},
    ),
    PublishedForm(
        "langfuse",
        "items of a data set of Langfuse",
        ("expectedOutput", "datasetId|datasetName|sourceTraceId"),
        {"input": "input.?|input", "reference": "expectedOutput.?|expectedOutput"},
    ),
    PublishedForm(
        "mlflow",
        "a data set of MLflow",
        ("inputs", "expectations"),
        {
            "input": "inputs.?|inputs",
            "output": "outputs.?|outputs",
            "reference": "expectations.expected_response|expectations.?",
        },
    ),
    PublishedForm("langsmith", "runs of LangSmith", ("run_type", "inputs"), traces=True),
    PublishedForm("mlflow", "traces of MLflow", ("info", "data.spans"), traces=True),
    PublishedForm("openinference", "spans of OpenTelemetry", ("resourceSpans",), traces=True),
    PublishedForm(
        "openai",
        "logs of OpenAI",
        (
            "request.messages|request.input|request.prompt|custom_id",
            "response.choices|response.output|body|response.body",
        ),
        traces=True,
    ),
    PublishedForm("openai-evals", "a log of OpenAI Evals", ("spec.eval_name|event_id", "spec|sample_id"), traces=True),
    PublishedForm(
        "openai-evals",
        "samples of OpenAI Evals",
        ("input", "ideal"),
        {"reference": "ideal"},
    ),
    PublishedForm(
        "openai-evals",
        "outputs of a run of OpenAI Evals",
        ("datasource_item", "sample.output|sample"),
        {
            "input": "sample.input",
            "output": "sample.output",
            "reference": "datasource_item.?",
            "system": "sample.model",
        },
        note=_PROGRAM,
    ),
    PublishedForm(
        "label-studio",
        "tasks of Label Studio",
        ("data", "annotations.*.result"),
        {"input": "data.?", "output": "data.?"},
        people=r"annotations\.\*\.result\..*\.value\..*",
    ),
    PublishedForm(
        "label-studio",
        "an export of Label Studio",
        ("annotator", "annotation_id|lead_time"),
        {"input": "?", "output": "?"},
        people=r"(?!annotator|annotation_id|id$|lead_time|created_at|updated_at).*",
    ),
    PublishedForm(
        "argilla",
        "records of Argilla",
        ("fields", "responses|suggestions"),
        {"input": "fields.?", "output": "fields.?"},
        people=r"responses\..*\.value",
    ),
    PublishedForm(
        "prodigy",
        "annotations of Prodigy",
        ("_task_hash|_input_hash", "answer"),
        {"human.overall": "answer", "input": "?", "output": "?"},
        labels={"none": ("ignore",)},
    ),
    PublishedForm(
        "feedbackqa",
        "FeedbackQA",
        ("question", "passage.reference.section_content"),
        {"input": "question", "output": "passage.reference.section_content"},
        people="rating|feedback",
    ),
    PublishedForm(
        "defacto",
        "DeFacto",
        ("article", "candidate", "has_error|feedback"),
        {
            "id": "doc_id",
            "input": "article",
            "output": "candidate",
            "reference": "feedback.summary",
            "human.overall": "has_error",
            "comment": "feedback.explanation",
        },
        labels={"good": ("false",), "bad": ("true",)},
    ),
    PublishedForm(
        "summeval",
        "SummEval",
        ("decoded", "expert_annotations"),
        {"input": "text|article", "output": "decoded", "reference": "references", "system": "model_id"},
        people=r"expert_annotations\..*",
    ),
    PublishedForm(
        "ultrafeedback",
        "UltraFeedback",
        ("instruction", "completions.*.response"),
        {"input": "instruction", "output": "response", "system": "model"},
        within="completions",
        note="Its ratings are a model's; --field human.honesty=annotations.honesty.Rating takes one of them.",
    ),
    PublishedForm(
        "squad",
        "SQuAD",
        ("paragraphs.*.qas",),
        {"input": "question", "context": "context", "reference": "answers.*.text"},
        within="data.paragraphs.qas",
    ),
    PublishedForm(
        "bedrock",
        "an evaluation of Bedrock",
        ("prompt", "modelResponses.*.response"),
        {
            "input": "prompt",
            "output": "modelResponses.0.response",
            "reference": "referenceResponse",
            "system": "modelResponses.0.modelIdentifier",
        },
    ),
    PublishedForm(
        "shp",
        "the Stanford Human Preferences",
        ("history", "human_ref_A", "human_ref_B", "labels"),
        {"input": "history", "output_a": "human_ref_A", "output_b": "human_ref_B", "preferred": "labels"},
        labels={"a": ("1",), "b": ("0",)},
        pairs=True,
    ),
)
"""The more special first."""


def form_of(columns: Collection[str], name: str | None = None) -> PublishedForm | None:
    """The first form, of this name where one is given, that rows with these columns have."""
    return next((each for each in FORMS if name in (None, each.name) and each.fits(columns)), None)

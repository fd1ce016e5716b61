"""Lookup tables: usual names of our fields, words of labels, and forms in which tools and data sets publish rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


USUAL = {
    "input": "input question prompt instruction query user_input user_prompt inputs "
    "problem article document dialogue source",
    "output": "output answer response completion prediction generation "
    "actual_output outputs reply model_output summary",
}
"""Our field to usual names of its column, or of a prompt's variable for it, the likeliest first."""
NAMES = {
    "input": f"{USUAL['input']} user_message message msg request post task turns conversation instructions text",
    "output": f"{USUAL['output']} decoded answer_text bot_response resp translation chatbot_response",
    "rater": "rater rater_id annotator annotator_id coder labeler labeller worker worker_id",
    "context": "context contexts retrieved_contexts retrieval_context documents passages passage "
    "retrieved_context chunks retrieved_documents source_text",
    "reference": "reference expected_output ground_truth ground_truths expected_answer ideal gold reference_answer "
    "golden target expected_response expected gold_answer correct_answer reference_output reference_outputs references "
    "reference_summary best_answer label_text answers expected_outputs ideal_response",
    "system": "system model model_id model_name generator system_id provider",
    "comment": "comment comments feedback remark remarks rationale reason explanation critique note "
    "notes justification rationales",
    "id": "id uuid uid key guid",
}
"""Our field to all usual names of its column, the likeliest first."""
NESTED_PARENTS = {
    "input": {"input", "inputs", "vars", "request", "query", "prompt", "fields"},
    "output": {"output", "outputs", "response", "completion", "choices", "answer"},
    "reference": {"reference", "expected", "expectations", "reference_outputs", "expected_output", "answers", "target"},
}
"""Our field to the names of objects that usually hold it."""
OF_PROGRAMS = _words(
    "llm auto gpt gpt4 metric metrics predictions prediction bleu rouge rouge1 rouge2 rougel bertscore cost "
    "latency usage tokens length count index idx epoch turn seed time timestamp created updated duration "
    "temperature version year age suggestion suggestions agent status eval evals evaluator judge grader"
)
"""Words in a column's name that say that no person gave its values."""
RATINGS = _words(
    "score scores rating ratings label labels grade grades human verdict judgment judgement judgments annotation "
    "annotations evaluation overall stars vote votes thumbs mark marks expert annotator rater raters reviewer "
    "value choices choice number responses results result answer likert"
)
"""Words in a column's name that mean scores or labels, but not of which quality."""
QUALITIES = _words(
    "quality helpful helpfulness coherence coherent relevance relevant consistency consistent fluency fluent "
    "correctness correct accuracy accurate faithfulness faithful factuality factual groundedness grounded "
    "harmlessness harmless toxicity complexity verbosity clarity clear completeness complete conciseness concise "
    "honesty honest truthfulness instruction_following usefulness useful style tone safety safe satisfaction "
    "politeness polite engaging engagingness natural naturalness informativeness informative empathy ok pass "
    "passed acceptable acceptability appropriateness readability grammar likeability satisfied success adequacy"
)
"""Words in a column's name for qualities that people rate."""
GOOD = _words(
    "ok okay correct right helpful approved approve accepted positive up thumbs_up thumbsup like liked 👍 safe "
    "grounded factual faithful supported relevant satisfied acceptable true win high"
)
BAD = _words(
    "wrong incorrect unhelpful rejected disapproved negative down thumbs_down thumbsdown dislike disliked 👎 "
    "unsafe ungrounded hallucinated hallucination unfaithful unsupported contradicted irrelevant not_relevant "
    "unsatisfied dissatisfied unacceptable false loss low error not_ok"
)
"""Labels that speak for an output, and against it, in addition to those that are always known."""
LADDER = (
    "terrible awful very_bad very_poor strongly_disagree very_unhelpful very_low never not_at_all very_dissatisfied",
    "bad poor disagree low unhelpful incorrect wrong weak rarely irrelevant not_relevant unacceptable dissatisfied",
    "could_be_improved below_average needs_improvement somewhat_disagree fair partially_correct partial "
    "partly_correct slightly_helpful slightly_relevant mediocre somewhat somewhat_helpful somewhat_relevant",
    "acceptable average neutral medium ok okay mixed moderate sometimes satisfactory adequate neither",
    "somewhat_agree mostly_correct above_average fairly_good mostly",
    "good agree high helpful correct often strong relevant satisfied",
    "very_good very_helpful strongly_agree great very_high very_relevant highly_relevant very_satisfied always",
    "excellent perfect outstanding",
)
"""Words of scales, from worst to best. Words of the same rung never stand on the same scale."""
SCALES = ((1, 5), (0, 5), (1, 10), (0, 10), (1, 7), (0, 100))
"""Worst and best score of usual scales; the best score that occurs tells the scale."""

PAIR_INPUTS = ("prompt", "question", "instruction", "query")
PAIR_PREFERRED = (
    *("preference", "winner", "label", "preferred_output", "better", "better_answer", "betteranswer", "choice"),
)
PAIR_OUTPUT = re.compile(
    r"(?:model_)?(?:outputs?|responses?|answers?|completions?|generations?|repl(?:y|ies)|texts?|summar(?:y|ies)|"
    r"conversations?)[ _-]?(a|b|1|2)"
)
LETTERS = {"1": "a", "2": "b", "a": "a", "b": "b"}


def plain_name(name: str) -> str:
    """Return a name in lower case with ``_`` between words: ``agent_reply`` for ``Agent reply`` and ``agentReply``."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name))
    return re.sub(r"[^\w👍👎]+", "_", apart.casefold()).strip("_")


@dataclass(frozen=True)
class PublishedForm:
    """A form in which a tool or data set publishes its rows."""

    name: str
    """The name for ``--from``."""
    title: str
    marks: tuple[str, ...]
    """Paths, or beginnings of paths, that must all be among the columns; ``a|b`` needs one of the two."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Our field to a path. ``a|b`` is the first path that exists; ``vars.?`` the likeliest column below ``vars``."""
    within: str = ""
    """The path from a row of the file to the real rows, if they are nested."""
    people: str = ""
    """A pattern for the paths of people's scores and comments; empty if a program gave all scores."""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Meaning of the form's own labels, if it has any."""
    pairs: bool = False
    """Whether a row is a pair of outputs."""
    traces: bool = False
    """Whether the rows are traces; only ``askance import`` makes examples of traces."""
    note: str = ""
    """A sentence for the user on this form."""

    def fits(self, columns: Collection[str]) -> bool:
        """Whether rows with these columns have this form."""
        return all(any(is_there(each, columns) for each in mark.split("|")) for mark in self.marks)

    def is_peoples(self, path: str) -> bool:
        """Whether people gave the values at this path."""
        return bool(self.people) and re.fullmatch(self.people, path) is not None


def is_there(mark: str, columns: Collection[str]) -> bool:
    """Whether the columns hold this path, or a longer path that begins with it."""
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
"""The known forms; more specific ones come first."""


def form_of(columns: Collection[str], name: str | None = None) -> PublishedForm | None:
    """Return the first form, with this name if given, that fits rows with these columns; None without one."""
    return next((each for each in FORMS if name in (None, each.name) and each.fits(columns)), None)

"""Names that others give to fields, and words that they give to labels: tables alone."""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


USUAL = {
    "input": "input question prompt instruction query user_input user_prompt inputs "
    "problem article document dialogue source",
    "output": "output answer response completion prediction generation "
    "actual_output outputs reply model_output summary",
}
"""Names that others give a column, the likelier first."""
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
"""Our field to the usual names of its column, the likelier first."""
NESTED_PARENTS = {
    "input": {"input", "inputs", "vars", "request", "query", "prompt", "fields"},
    "output": {"output", "outputs", "response", "completion", "choices", "answer"},
    "reference": {"reference", "expected", "expectations", "reference_outputs", "expected_output", "answers", "target"},
}
"""Objects in which a field usually stands."""
OF_PROGRAMS = _words(
    "llm auto gpt gpt4 metric metrics predictions prediction bleu rouge rouge1 rouge2 rougel bertscore cost "
    "latency usage tokens length count index idx epoch turn seed time timestamp created updated duration "
    "temperature version year age suggestion suggestions agent status eval evals evaluator judge grader"
)
"""Words in a name that speak of no score that a person gave."""
RATINGS = _words(
    "score scores rating ratings label labels grade grades human verdict judgment judgement judgments annotation "
    "annotations evaluation overall stars vote votes thumbs mark marks expert annotator rater raters reviewer "
    "value choices choice number responses results result answer likert"
)
"""Words in a name that say that there are scores or labels, and not of what."""
QUALITIES = _words(
    "quality helpful helpfulness coherence coherent relevance relevant consistency consistent fluency fluent "
    "correctness correct accuracy accurate faithfulness faithful factuality factual groundedness grounded "
    "harmlessness harmless toxicity complexity verbosity clarity clear completeness complete conciseness concise "
    "honesty honest truthfulness instruction_following usefulness useful style tone safety safe satisfaction "
    "politeness polite engaging engagingness natural naturalness informativeness informative empathy ok pass "
    "passed acceptable acceptability appropriateness readability grammar likeability satisfied success adequacy"
)
"""Words in a name that are qualities which people rate."""
GOOD = _words(
    "ok okay correct right helpful approved approve accepted positive up thumbs_up thumbsup like liked 👍 safe "
    "grounded factual faithful supported relevant satisfied acceptable true win high"
)
BAD = _words(
    "wrong incorrect unhelpful rejected disapproved negative down thumbs_down thumbsdown dislike disliked 👎 "
    "unsafe ungrounded hallucinated hallucination unfaithful unsupported contradicted irrelevant not_relevant "
    "unsatisfied dissatisfied unacceptable false loss low error not_ok"
)
"""Labels that speak for an output, and against it, beside those that are always known."""
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
"""Words on a scale, from worst to best; those of one rung never stand on one scale."""
SCALES = ((1, 5), (0, 5), (1, 10), (0, 10), (1, 7), (0, 100))
"""Worst and best score of usual scales that are known by their best."""

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
    """A name in small letters with ``_`` between its words: ``Agent reply`` and ``agentReply`` are ``agent_reply``."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name))
    return re.sub(r"[^\w👍👎]+", "_", apart.casefold()).strip("_")

"""Parts of a search by GEPA: the text to rewrite, the feedback on an example, and the reflection model.

GEPA rewrites one part of a prompt, between its placeholders, and never sees the rest. It sums numbers over examples, so
a rank correlation cannot be its metric. For a judge the number is 1 - |score - human score|, both in [0, 1]. For a
generator it is the output's own score, as in askance's loop.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..evaluation.scoring import ExampleScore, Targets
from ..models.base import Model, ModelError, Parameters, make_request
from ..models.event_loops import BackgroundLoop
from ..models.gateway import Gateway
from ..optimizer.acceptance import CorrelationYardstick, Yardstick
from ..optimizer.subject import Observation
from ..prompts.checklist import ComputedCheck, marked
from ..prompts.errors import InputError
from ..prompts.examples import Example
from ..prompts.prompt import Prompt
from ..prompts.shown_examples import Shows
from ..prompts.text import fill, literal
from ..prompts.verdicts import Verdict

_PLACEHOLDER = re.compile(r"(?<!\{)\{[A-Za-z_]\w*\}(?!\})")


@dataclass(frozen=True)
class Frame:
    """The fixed text before and after the guidance: the placeholders with their headings."""

    before: str
    after: str
    shown: Shows | None = None
    """Judged examples that the prompt shows to the judge."""

    def prompt(self, guidance: str) -> Prompt:
        """Return the whole prompt; ``{name}`` in the guidance stays a text and never becomes a placeholder."""
        return Prompt(self.before + literal(guidance) + self.after, self.shown)


def cut_out_guidance(prompt: Prompt) -> tuple[Frame, str]:
    """Cut a prompt at its placeholders; the longest text between them is the guidance.

    A prompt without placeholders is guidance as a whole. Frame and guidance together give the same prompt again. Raises
    InputError if there is no text between the placeholders.
    """
    if prompt.foreign is not None:
        raise InputError(
            "GEPA improves a plain text. Give the text of one message as the prompt: askance.Prompt(text)."
        )
    text = prompt.text
    cuts = [0, *(place for match in _PLACEHOLDER.finditer(text) for place in match.span()), len(text)]
    stretches = zip(cuts[::2], cuts[1::2], strict=True)
    start, end = max(stretches, key=lambda stretch: len(text[stretch[0] : stretch[1]].strip()))
    guidance = text[start:end].strip()
    if not guidance:
        raise InputError("The prompt is made of placeholders alone, so there is no text that GEPA could improve.")
    start = text.index(guidance, start)
    return Frame(text[:start], text[start + len(guidance) :], prompt.shown), fill(guidance, {})


class NearnessToPeople:
    """Metric of a judge: nearness of its score to the human score."""

    explained: Literal["mine", "theirs"] = "mine"
    """Side of a signal's reasons that has the judge's explanations."""

    def __init__(self, targets: Targets) -> None:
        """``targets`` are the human scores in [0, 1]."""
        self._targets = targets

    def knows(self, example: str) -> bool:
        """Whether the example has a human score."""
        return example in self._targets.wanted and self._targets.overall(example) is not None

    def value(self, scores: ExampleScore) -> float | None:
        """Return 1 if judge and people give the same score, 0 for the largest distance; None if a score is missing."""
        score, wanted = self._targets.score(scores), self._targets.overall(scores.example)
        return None if score is None or wanted is None else 1 - abs(score - wanted)

    def record(self, seen: Observation, place: int, reasons: Mapping[str, str]) -> dict[str, Any]:
        """Return the example, the judge's answers with P(yes), and the human score, for GEPA's reflection prompt.

        ``reasons`` are the judge's explanations by example/question.
        """
        example, scores = seen.examples[place], seen.scores[place]
        verdicts = _verdicts(seen, example.id)
        asked = [seen.question(example.id, verdict.question) for verdict in verdicts]
        answers = {
            marked(question.text, question.good, question.sees): _answer(verdict, _reason(verdict, reasons))
            for question, verdict in zip(asked, verdicts, strict=True)
        }
        return {
            "Inputs": _texts(example, "context", "input", "output"),
            "Generated Outputs": answers,
            "Feedback": self._feedback(scores, faults=any(question.is_fault for question in asked)),
        }

    def _feedback(self, scores: ExampleScore, *, faults: bool) -> str:
        """Return a sentence on the score; ``faults``: whether yes speaks against the output for some question."""
        score, wanted = self._targets.score(scores), self._targets.overall(scores.example)
        if wanted is None or score is None:
            return "A question was not answered, so this example has no score and counts as 0."
        mean = "P(the answer that speaks for the output)" if faults else "P(yes) of these answers"
        sentence = f"The mean {mean} is {score:.2f}; people gave {wanted:.2f} (0 is worst, 1 is best)."
        if abs(score - wanted) < 0.005:
            return f"{sentence} The answers are right."
        no, yes = ("against the output", "in its favour") if faults else ("no", "yes")
        way = f"too lenient: more {no} was wanted" if score > wanted else f"too strict: more {yes} was wanted"
        return f"{sentence} The answers are {abs(score - wanted):.2f} {way}."


class OwnScore:
    """Metric of a generator: its output's score, with the reasons of failures."""

    explained: Literal["mine", "theirs"] = "theirs"

    def knows(self, example: str) -> bool:
        """Return True, since every example has a score of its own."""
        return True

    def value(self, scores: ExampleScore) -> float | None:
        """Return the score by the run's checker or judge."""
        return scores.overall

    def record(self, seen: Observation, place: int, reasons: Mapping[str, str]) -> dict[str, Any]:
        """Return the input, the output, and the results of the checks and questions."""
        example = seen.examples[place]
        lines = []
        for verdict in _verdicts(seen, example.id):
            passed = seen.polarity(example.id, verdict.question).is_good(verdict.answer)
            said = {True: "passed", False: "FAILED", None: f"not checked ({verdict.error or verdict.status})"}[passed]
            reason = _reason(verdict, reasons)
            lines.append(f"- {_name(seen, verdict)}: {said}{f'. {reason}' if reason else ''}")
        return {
            "Inputs": _texts(example, "context", "input"),
            "Generated Outputs": example.output or "",
            "Feedback": "\n".join(lines),
        }


Metric = NearnessToPeople | OwnScore
"""Metric that gives an example's number, in [0, 1], and its record for the reflection."""


def metric_for(yardstick: Yardstick) -> Metric:
    """Return the metric for a run's yardstick."""
    return NearnessToPeople(yardstick.targets) if isinstance(yardstick, CorrelationYardstick) else OwnScore()


def _verdicts(seen: Observation, example: str) -> list[Verdict]:
    return [each for each in seen.verdicts if each.example == example and each.replicate == 0]


def _reason(verdict: Verdict, reasons: Mapping[str, str]) -> str:
    return verdict.explanation or reasons.get(f"{verdict.example}/{verdict.question}", "")


def _name(seen: Observation, verdict: Verdict) -> str:
    """Return the name of a check, or the text of a question."""
    question = seen.question(verdict.example, verdict.question)
    return verdict.question if isinstance(question, ComputedCheck) else question.criterion


def _answer(verdict: Verdict, reason: str) -> str:
    if verdict.answer is None:
        return f"no answer ({verdict.error or verdict.status})"
    said = "yes" if verdict.answer else "no"
    said = said if verdict.p_yes is None else f"{said}, P(yes) = {verdict.p_yes:.2f}"
    return f"{said}. {reason}" if reason else said


def _texts(example: Example, *names: str) -> dict[str, str]:
    return {name.capitalize(): text for name in names if (text := getattr(example, name))}


REFUSED = (400, 413, 422)
"""Statuses of a request that is itself wrong, e.g. longer than the context: the next request may succeed."""


@dataclass
class Search:
    """State that the adapter and the reflection model of one search share."""

    loop: BackgroundLoop
    reflections: int = 0
    """Number of reflections asked for."""
    error: BaseException | None = None
    """Error after which the search must end; None so far. GEPA itself would log the exception and go on."""


@dataclass(frozen=True)
class ReflectionSettings:
    """Settings of the reflection model. GEPA itself sends none and leaves both to the endpoint."""

    temperature: float = 1.0
    """Temperature; an OpenAI endpoint takes 1.0 if none is sent."""
    max_tokens: int = 2048


@dataclass
class ReflectionModel:
    """The reflection model, asked through the gateway; each call has its own seed, so that replies differ."""

    gateway: Gateway
    model: Model
    settings: ReflectionSettings
    seed: int
    search: Search

    def __call__(self, prompt: str | Sequence[Mapping[str, str]]) -> str:
        """Return one reply. Raises AskanceError for a failed call; GEPA then tries once more, and leaves the proposal
        out after a second failure. The search ends if every further call would fail too."""
        messages = [("user", prompt)] if isinstance(prompt, str) else [(m["role"], m["content"]) for m in prompt]
        seed = self.seed + self.search.reflections
        self.search.reflections += 1
        parameters = Parameters(self.settings.max_tokens, self.settings.temperature, seed)
        request = make_request(self.model.identity, messages, parameters)
        try:
            answer = self.search.loop.run(self.gateway.ask("reflection", self.model, request))
        except ModelError as error:
            if error.fatal and error.status not in REFUSED:
                self.search.error = error
            raise
        except BaseException as error:
            self.search.error = error
            raise
        return answer.text.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be sent on

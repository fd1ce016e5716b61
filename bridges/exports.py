"""Export of a judge as one file for another tool. The file asks as askance does, and needs no askance.

Each file is ``exported_judge.py`` with the judge in it, and a few lines that let the tool call it. It reads, calibrates
and weighs answers as askance does. OpenAI's graders run no code of ours, so their file is a JSON object.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from pprint import pformat
from typing import Any, Literal, get_args

from ..agents.judging import MOST_TOGETHER
from ..agents.replies import ENGLISH
from ..agents.requests import BatchedAsking, EachAsking, batched_schema, opening, quote_format
from ..agents.traces.call_checks import CALL_KINDS
from ..evaluation.judge_file import check_calibration, load_judge
from ..evaluation.kept_judge import KeptJudge, judge_settings
from ..models import refusals
from ..models.direct import default_base_url
from ..models.embedded.registry import EMBEDDED
from ..models.replies import json_object, own_scores, thoughts, yes_no
from ..models.replies.own_formats import parse_reads
from ..models.request_form import direct_forms
from ..models.thinking_room import ROOM
from ..models.trained.scorer_file import is_scorer
from ..prompts import messages, text
from ..prompts.checklist import Checklist, ComputedMeasure, Question, Sees, refuse_computed
from ..prompts.conversations import chat
from ..prompts.errors import InputError, did_you_mean
from ..prompts.prompt import PLACEHOLDERS, Prompt, quoting
from . import exported_checks, exported_judge
from .check_exports import (
    code_of_checks,
    inlined,
    judge_tests,
    migration_root,
    migration_tests,
    needs_of,
    promptfoo_file,
    pytest_file,
    with_literal,
)
from .export_adapters import ADAPTERS, CHECK_ADAPTERS, CHECK_USES, HELPERS, THRESHOLDS, USES, WITH_JUDGE

Tool = Literal["python", "promptfoo", "inspect", "deepeval", "mlflow", "openai-grader", "pytest"]
TOOLS: tuple[Tool, ...] = get_args(Tool)
OF_REPLIES = frozenset({"promptfoo", "deepeval", "openai-grader"})
"""Tools that give the judge only the text of the last reply."""


@dataclass(frozen=True)
class ExportedJudge:
    """A file for another tool."""

    text: str
    name: str
    """The file's usual name."""
    use: str
    """Instructions for its use, in words."""
    notices: tuple[str, ...] = ()
    """Differences from the judge in askance, in sentences."""
    beside: Mapping[str, str] = field(default_factory=dict)
    """Texts of further files for the same folder, by name."""


def export_judge(judge: str | Path | KeptJudge, to: str, *, questions_only: bool = False) -> ExportedJudge:
    """Export the judge of a run, or of a ``judge.yaml``, as a file for another tool.

    A migration of a writing prompt exports its requirements, as tests.

    Args:
        judge: A run's directory, a ``judge.yaml``, or a judge.
        to: One of :data:`TOOLS`.
        questions_only: Leave out the judge's measures. No exported file can compute them.

    Raises:
        InputError: There is no such judge or tool, the judge has measures, or the file cannot ask in the judge's way,
            e.g. because it cannot make a question's view.
    """
    if to not in TOOLS:
        raise InputError(f"--to {to}: there is no such tool (known: {', '.join(TOOLS)}).{did_you_mean(to, TOOLS)}")
    root = migration_root(judge)
    measures: tuple[ComputedMeasure, ...] = ()
    if root is None:
        whole = load_judge(judge)
        measures = whole.checklist.measures
        tests = judge_tests(whole.without_measures() if questions_only else whole)
    else:
        tests = migration_tests(Path(str(judge)), root)
    kept, notices = tests.judge, needs_of(tests.judge.checklist.checks)
    if measures and not questions_only:
        names = ", ".join(f"{measure.id}: {measure.measure}" for measure in measures)
        raise InputError(
            f"--to {to}: the file cannot compute this judge's measures ({names}). Give --questions-only to export the "
            "judge without them."
        )
    if measures:
        notices.append(_without_measures(kept, measures))
    asked = kept.checklist.asked_alone
    if to != "pytest" and (
        views := [f"{each.id} (sees: {each.sees})" for each in kept.checklist.asked if each.is_relation]
    ):
        raise InputError(
            f"--to {to}: the file cannot find the sentences that these questions are asked of: {', '.join(views)}. Use "
            "the judge in askance (--judge), or export it --to pytest, where askance asks."
        )
    calls = [
        question.id
        for question in kept.checklist.questions
        if question.sees == "call" or getattr(question, "kind", None) in CALL_KINDS
    ]
    if to in OF_REPLIES and calls:
        raise InputError(
            f"This judge has criteria of calls of tools ({', '.join(calls)}), and --to {to} hands over the reply "
            "alone, without them. Export it --to python, inspect or mlflow."
        )
    if to == "openai-grader":
        refuse_computed(kept.checklist, "OpenAI's graders take no code of ours")
    if asked is not None:
        _check(kept, asked, to)
        if not (kept.asked.startswith("openai/") or to == "pytest"):
            notices.append(_served(kept))
    if to == "openai-grader":
        return _grader(kept, notices)
    if to == "pytest":
        name = "test_requirements.py"
        return ExportedJudge(pytest_file(tests), name, USES[to].format(name=name), tuple(notices))
    if kept.threshold is None and to in THRESHOLDS:
        notices.append(f"This judge has no threshold from which an output passes; give it one: {THRESHOLDS[to]}.")
    if not tests.in_migration or not kept.checklist.checks or to not in CHECK_ADAPTERS:
        name = "judge.py" if to == "python" else f"{to}_judge.py"
        return ExportedJudge(_file(kept, asked, to), name, USES[to].format(name=name), tuple(notices))
    name, code = f"{to}_requirements.py", _file(kept, asked, to, apart=True)
    if to != "promptfoo":
        return ExportedJudge(code, name, CHECK_USES[to].format(name=name), tuple(notices))
    assertions, is_called = promptfoo_file(tests, name)
    return ExportedJudge(
        assertions, "requirements.yaml", CHECK_USES[to], tuple(notices), {name: code} if is_called else {}
    )


def _without_measures(kept: KeptJudge, measures: Sequence[ComputedMeasure]) -> str:
    """Return a sentence on the exported judge without its measures, with its figure on test."""
    test = None if kept.figures is None else kept.figures.test
    figure = "" if test is None or test.value is None else f" On test it has {test.value:.2f} without them."
    names = ", ".join(measure.id for measure in measures)
    return f"The measures are left out ({names}).{figure or ' The judge without them was not measured.'}"


def _file(kept: KeptJudge, asked: Checklist | None, to: str, *, apart: bool = False) -> str:
    """Return a Python file for a tool. With ``apart`` each check is a test of its own, and no part of the score."""
    adapters = [] if asked is None and apart else [ADAPTERS[to]]
    if apart:
        adapters += [CHECK_ADAPTERS[to], WITH_JUDGE.get(to, "") if asked else ""]
    adapters[:0] = [each for name, each in HELPERS.items() if name in "".join(adapters)]
    source = code_of_checks(kept.checklist.checks, alone=asked is None and apart)
    if asked is None and apart:
        return source + "".join(adapters)
    source = inlined(inspect.getsource(exported_judge), exported_checks, source)
    reads = kept.settings.get("reads") is not None
    fencing = "\n\n".join(inspect.getsource(each) for each in (text.tag_for, text.fence, text.fill))
    constants = f"BRACES = re.compile({text.BRACES.pattern!r})\nFENCE_WORDS = {pformat(text.FENCE_WORDS, width=110, compact=True)}"
    code = f"from __future__ import annotations\nfrom hashlib import sha256\n\n{constants}\n\n\n{fencing}"
    source = inlined(source, text, code)
    for module in (*([own_scores] if reads else []), yes_no, json_object, thoughts, refusals, chat, messages):
        source = inlined(source, module)
    source = re.sub(r"^from \.\..*\n", "", source, flags=re.MULTILINE)  # an exported file has no package of ours
    parts = _parts(kept, asked) | ({"checks_apart": True} if apart else {})
    before, main = with_literal(source, "JUDGE", parts).split("\n\nif __name__")
    return before + "".join(adapters) + "\n\nif __name__" + main


def _check(kept: KeptJudge, asked: Checklist, to: str) -> None:
    """Raise InputError if the file cannot ask as the judge does, or cannot read the answers. In pytest askance asks."""
    check_calibration(kept, "This judge")
    if to == "pytest":
        return
    if is_scorer(kept.asked):
        raise InputError(f"{kept.model} is a trained scorer, which no other tool can ask; use it in askance (--judge).")
    settings = judge_settings(kept.settings, "settings")
    cannot = {
        "reads": settings["reads"] is not None and to == "openai-grader",
        "mode": settings["mode"] == "batched" and not _states(kept, settings),
        "scores": settings["scores"] == "expected",
        "explain": settings["explain"] == "always",
        "examples": kept.examples is not None,
        "section_weights": bool(kept.checklist.section_weights),
    }
    columns = [] if kept.prompt.form is None else kept.prompt.form.columns
    if wrong := next((each for each in columns if to == "openai-grader" or not re.fullmatch(r"[\w .-]+", each)), None):
        raise InputError(f"--to {to} gives the judge no column '{wrong}', which its prompt shows.")
    for name in (name for name, is_so in cannot.items() if is_so):
        value = settings.get(name)
        raise InputError(
            f"This judge has {name}{f' {value}' if value else ''}, which this export cannot do: it asks one "
            "question a call, for a yes or no. Use the judge in askance, or align one "
            f"without{' (--mode each)' if name == 'mode' else ''}."
        )


def _states(kept: KeptJudge, settings: Mapping[str, Any]) -> bool:
    """Whether each answer of the judge states a probability. A quote states none."""
    source = kept.p_yes_from() if settings["p_yes"] == "auto" else settings["p_yes"]
    return source == "stated" and not _quotes(kept)


def _stated(kept: KeptJudge) -> list[dict[str, Any]]:
    """Return the calls of a judge whose answers state a probability. A call with several questions also has the form of
    each question alone."""
    settings, questions = judge_settings(kept.settings, "settings"), kept.checklist.questions
    if not _states(kept, settings):
        return []
    single_asking = EachAsking(kept.prompt, questions, False, False, 0.0, None, kept.checklist.answers, stated=True)
    by_id = {
        question.id: {
            "id": question.id,
            "sees": question.sees,
            "block": block,
            "schema": single_asking._parameters.schema,
            "most": single_asking._parameters.max_tokens,
            "form": single_asking.form,
            "alone": None,
        }
        for question, block in zip(questions, single_asking._blocks, strict=True)
    }
    if settings["mode"] != "batched":
        return list(by_id.values())
    batched_asking = BatchedAsking(
        kept.prompt, questions, False, False, 0.0, None, kept.checklist.answers, stated=True, most=MOST_TOGETHER
    )
    return [
        {
            "id": None,
            "sees": part[0].sees,
            "block": batched_asking.block(part),
            "schema": batched_schema(part, explained=False, answers=batched_asking.answers or ENGLISH, stated=True),
            "most": batched_asking.tokens(part),
            "form": batched_asking.form,
            "alone": {question.id: by_id[question.id] for question in part},
        }
        for part in batched_asking.parts
    ]


def _served(kept: KeptJudge) -> str:
    return (
        f"The judge's model is {kept.asked}: the file asks an OpenAI-compatible server for '{_model_name(kept)}'. Set "
        "OPENAI_BASE_URL to one that serves it, and JUDGE_MODEL where it has another name there."
    )


def _model_name(kept: KeptJudge) -> str:
    provider, _, name = kept.asked.partition("/")
    return Path(name).stem if provider in EMBEDDED and name.endswith(".gguf") else name


def _asked(kept: KeptJudge) -> Iterator[tuple[Question, str]]:
    """Return pairs of a question and its text for the model."""
    return zip(kept.checklist.questions, _asking(kept)._blocks, strict=True)


def _asking(kept: KeptJudge) -> EachAsking:
    return EachAsking(kept.prompt, kept.checklist.questions, False, False, 0.0, None, kept.checklist.answers)


def _by_side(words: Mapping[str, bool]) -> dict[str, str]:
    sides = {"yes": True, "no": False}
    return {name: " ".join(each for each, yes in words.items() if yes is side) for name, side in sides.items()}


def _prompts(kept: KeptJudge) -> dict[Sees, Prompt]:
    """Map each view that some question has (``sees``) to its prompt."""
    alone = kept.prompt.of_output_alone
    of: dict[Sees, Prompt] = {"all": kept.prompt, "output": alone, "last": alone, "call": alone}
    return {sees: of[sees] for sees in dict.fromkeys(each.sees for each in kept.checklist.questions) if sees in of}


def _as_exported(prompt: Prompt) -> dict[str, Any]:
    """Return a prompt's messages, and the fields whose tags are ``always`` shown. Raises InputError if the prompt needs
    more."""
    if prompt.foreign is not None:
        return {"messages": prompt.foreign.exported(prompt.text), "always": ["output"]}
    return {"messages": [("user" if prompt.placeholders else "system", prompt.text)], "always": [*PLACEHOLDERS]}


def _quotes(kept: KeptJudge) -> bool:
    return any(each.sees == "quote" for each in kept.checklist.questions)


def _parts(kept: KeptJudge, asked: Checklist | None) -> dict[str, Any]:
    """Return the judge's data for the file; without a model if it asks no questions."""
    settings = judge_settings(kept.settings, "settings")
    fits = None
    if kept.calibration is not None:
        fits = {
            name: fit.model_dump(include={"threshold", "slope", "shift", "lean"}, exclude_none=True)
            for name, fit in kept.calibration.questions.items()
        }
    held = {
        "soft": settings["scores"] == "soft",
        "calibration": fits,
        "threshold": kept.threshold,
        "threshold_of": list(kept.threshold_of),
    }
    if asked is None:
        return {"questions": [], **held}
    kept = replace(kept, checklist=asked)
    if settings["reads"] is not None:
        asking: dict[str, Any] = {"own": _own(kept.prompt, settings)}
    else:
        prompts = {sees: _as_exported(prompt) for sees, prompt in _prompts(kept).items()}
        asking = {"prompts": prompts, "stated": _stated(kept)}
    fields: dict[str, Any] = {}
    if kept.named is not None:
        forms = direct_forms(kept.named.thinking, kept.named.api_base or default_base_url())
        plain = {name: value for name, value in kept.named.extra_body.items() if "${" not in str(value)}
        fields = {**(forms[0] if forms else {}), **plain}
    return {
        "model": _model_name(kept),
        "fields": fields,
        "thinking_room": list((kept.named and kept.named.thinking_room) or ROOM),
        "columns": [] if kept.prompt.form is None else kept.prompt.form.columns,
        **asking,
        "form": _asking(kept).form,
        "words": [_by_side(words) for words in _asking(kept).words],
        "quoting": opening(quoting(""), "")[:-1] if _quotes(kept) else [],
        "questions": [
            {name: getattr(question, name) for name in ("id", "text", "good", "weight", "dimension", "sees")}
            | {"block": block}
            for question, block in _asked(kept)
        ],
        **{name: settings[name] for name in ("p_yes", "samples", "temperature", "repeat", "seed")},
        **held,
    }


def _own(prompt: Prompt, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the messages of a judge in people's own words, and the settings to read its reply. If the prompt shows no
    output, ``{example}`` stands for it."""
    made = _as_exported(prompt)["messages"]
    shows = bool(prompt.placeholders) if prompt.foreign is None else "output" in prompt.placeholders
    if not shows:
        before = made if made[-1][0] == "system" else [("system", made[0][1])]
        made = [*before, ("user", "{example}")]
    return {
        "messages": made,
        "images": [each for each in prompt.placeholders if each in PLACEHOLDERS[:4]] if shows else [*PLACEHOLDERS[:4]],
        "reads": list(parse_reads(settings["reads"])),
        "reply_tokens": settings["reply_tokens"],
    }


def _grader(kept: KeptJudge, notices: list[str]) -> ExportedJudge:
    """Return an OpenAI grader: a label for every question, and the weighted mean."""
    if kept.calibration is not None:
        raise InputError(
            "This judge has a calibration, which is about probabilities of yes, and OpenAI's graders know only labels. "
            "Export it --to python instead, or align one without a calibration (--update edits)."
        )
    prompts = _prompts(kept)
    if _quotes(kept):
        raise InputError(
            "This judge has questions that are answered with a quote, and OpenAI's graders know only labels. Export it "
            "--to python instead."
        )
    words = dict(zip(("yes", "no"), kept.checklist.answers or ENGLISH, strict=True))
    graders: dict[str, Any] = {}
    for number, (question, block) in enumerate(_asked(kept), 1):
        asked = _graded(prompts[question.sees], question.sees, block)
        graders[f"q{number}"] = {
            "type": "label_model",
            "name": question.id,
            "model": _model_name(kept),
            "input": [{"role": role, "content": content} for role, content in asked],
            "labels": list(words.values()),
            "passing_labels": [words[question.good]],
        }
    weights = {
        name: question.weight
        for name, question in zip(graders, kept.checklist.questions, strict=True)
        if question.weight > 0
    }
    total = " + ".join(f"{weight:g} * {name}" for name, weight in weights.items())
    made = {
        "type": "multi",
        "name": "askance judge",
        "graders": graders,
        "calculate_output": f"({total}) / {sum(weights.values()):g}",
    }
    held = "There is no threshold in it."
    if kept.threshold is not None:
        held = f"An output passes from {kept.threshold:g} on (pass_threshold)."
    notices.append(
        "A grader of OpenAI's answers each question with a label: its scores are shares of good answers, not mean "
        f"probabilities of yes, and the texts stand between fixed tags. {held}"
    )
    grader = json.dumps(made, ensure_ascii=False, indent=2) + "\n"
    return ExportedJudge(grader, "grader.json", USES["openai-grader"], tuple(notices))


def _graded(prompt: Prompt, sees: Sees, block: str) -> list[tuple[str, str]]:
    """Return the messages that ask a grader a question, with OpenAI's placeholders for the texts."""
    beside = {name: f"{{{{item.{name}}}}}" if sees == "all" else "" for name in ("input", "context", "reference")}
    texts = beside | {"output": "{{sample.output_text}}"}
    asked = _as_exported(prompt)
    tags = {name: f"<{name}>\n{each}\n</{name}>" for name, each in texts.items() if each or name in asked["always"]}
    put_in = dict.fromkeys(texts, "") | tags | {"question": block}
    made = [(role, text.fill(said, put_in)) for role, said in asked["messages"]]
    if "output" not in prompt.placeholders:
        shown = "\n".join(f"{name.capitalize()}:\n{tags[name]}\n" for name in ("input", "output") if texts[name])
        return [*made, ("user", f"{shown}\n{block}")]
    end = "" if "question" in prompt.placeholders else f"\n\n{block}"
    return [*made[:-1], (made[-1][0], made[-1][1] + end)]


assert quote_format() == exported_judge._QUOTE_FORM, "an exported judge asks again in the same words"

__all__ = ["TOOLS", "ExportedJudge", "export_judge"]

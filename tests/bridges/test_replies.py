"""Replies are read by askance and by an exported judge alike: what was said is the answer, and nothing else is."""

from __future__ import annotations

import asyncio
from math import log
from typing import Any, NamedTuple

import pytest

from askance.agents.evaluator import Evaluator
from askance.agents.judging import Judging
from askance.evaluation.kept_judge import KeptJudge
from askance.models.base import Answer, Request
from askance.models.direct import after_thinking, read_logprobs
from askance.models.gateway import Gateway, RetryPolicy
from askance.models.replies.yes_no import ROOM
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel
from tests.said import says

from .conftest import as_module

QUESTIONS = {
    "en": "Do all names in the output agree with the input?",
    "de": "Stimmen alle Namen im Text mit der Eingabe überein?",
    "es": "¿Coinciden todos los nombres del texto con la entrada?",
    "pl": "Czy wszystkie nazwy w odpowiedzi są zgodne z tekstem?",
    "pt": "Todos os nomes do texto são iguais aos da entrada?",
    "cs": "Jsou všechna jména v odpovědi správná a shodují se s textem?",
    "sr": "Da li su sva imena u tekstu i odgovoru tačna?",
    "el": "Είναι όλα τα ονόματα στο κείμενο σωστά και πλήρη;",
    "ru": "Все ли имена в ответе и в тексте совпадают?",
    "uk": "Чи всі імена у відповіді та в тексті збігаються?",
    "bg": "Съвпадат ли всички имена в отговора и са ли на място?",
    "ja": "出力の名前はすべて入力と一致していますか。",
    "zh": "输出中的所有名称是否与输入一致？",
    "ko": "출력의 모든 이름은 입력과 일치하는가?",
    "tr": "Metin ve yanıt içindeki tüm adlar doğru mu?",
}
Likely = dict[str, float]


class Case(NamedTuple):
    """A reply, token by token, and what it says."""

    tokens: tuple[tuple[str, Likely], ...]
    said: float | bool | None
    """P(yes) from log-probabilities; the answer in words; None where it says neither."""
    language: str = "en"
    answers: tuple[str, str] | None = None


def one(said: str, others: Likely, p_yes: float | None, **more: Any) -> Case:
    return Case(((said, others),), p_yes, **more)


def behind(
    *before: str, said: str = "Yes", likely: Likely | None = None, p_yes: float | None = 0.9, **more: Any
) -> Case:
    tail = {"Yes": 0.04, "No": 0.12}
    opening = tuple((each, {each: 0.8, **tail}) for each in before)
    return Case((*opening, (said, likely or {"Yes": 0.9, "No": 0.1})), p_yes, **more)


IN_TOKENS = {
    "yes": one("Yes", {"Yes": 0.9, "No": 0.1}, 0.9),
    "no": one(" no", {" no": 0.7, "No": 0.1, "yes": 0.2}, 0.2),
    "said, and less likely than another": one("Yes", {"No": 0.6, "Yes": 0.4}, 0.4),
    "another word, and no in its tail": one("Absolutely", {"Absolutely": 0.6, "No": 0.31, "Yes": 0.09}, None),
    "an article": one("The", {"The": 0.5, "Yes": 0.4, "No": 0.1}, None),
    "N": one("N", {"N": 0.8, "No": 0.2}, None),
    "the beginning of a yes": Case((("Y", {"Y": 0.8, "NO": 0.2}), ("ES", {})), 0.8),
    "a no beside the beginning of a yes": one("NO", {"NO": 0.6, "Y": 0.4}, None),
    "Sí": one("Sí", {"Sí": 0.86, "No": 0.12, "Si": 0.02}, 0.88),
    "Sí, in Spanish": one("Sí", {"Sí": 0.86, "No": 0.14}, 0.86, language="es"),
    "Oui": one("Oui", {"Oui": 0.8, "Non": 0.2}, 0.8),
    "是的": one("是的", {"是的": 0.8, "不是": 0.1, "否": 0.1}, 0.8, language="zh"),
    "はい": Case((("は", {"は": 0.9, "いい": 0.1}), ("い", {})), 0.9, language="ja"),
    "Nein, in German": one("Nein", {"Nein": 0.75, "Ja": 0.25}, 0.25, language="de"),
    "Nein": one("Nein", {"Nein": 0.7, "Ja": 0.2, "Yes": 0.1}, 0.3),
    "hayır, of two tokens": Case((("hay", {"hay": 0.8, "ev": 0.2}), ("ır", {})), 0.2, language="tr"),
    "ne is no in Serbian": one("Ne", {"Ne": 0.9, "Da": 0.1}, 0.1, language="sr"),
    "and nothing in Greek": one("Ne", {"Ne": 0.9, "No": 0.1}, None, language="el"),
    "ναι": one("Ναι", {"Ναι": 0.9, "Όχι": 0.1}, 0.9, language="el"),
    "так is yes in Ukrainian": one("Так", {"Так": 0.9, "Ні": 0.1}, 0.9, language="uk"),
    "and begins a sentence in Russian": one("Так", {"Так": 0.9, "Нет": 0.1}, None, language="ru"),
    "не in Bulgarian": one("Не", {"Не": 0.8, "Да": 0.2}, 0.2, language="bg"),
    "네": one("네", {"네": 0.9, "아니요": 0.1}, 0.9, language="ko"),
    "given words": one("Ja", {"Ja": 0.7, "Nein": 0.3}, 0.7, answers=("ja", "nein")),
    "given words that are no language's": one(
        "Fehler", {"Fehler": 0.7, "Passt": 0.3}, 0.3, answers=("Passt", "Fehler")
    ),
    "off and on": one("off", {"off": 0.9, "on": 0.1}, 0.9, answers=("off", "on")),
    "an English no where Polish is asked for": one("No", {"No": 0.9, "Tak": 0.1}, None, answers=("tak", "nie")),
    "bold": behind("**"),
    "a quote": behind('"'),
    "a line break": behind("\n"),
    "two of them": behind("\n\n", "\n"),
    "a bare blank of a tokenizer": behind("▁"),
    "the token of a beginning": behind("<s>"),
    "that of another template": behind("<|im_start|>", "assistant", "\n"),
    "a heading": behind("###", " "),
    "a list": behind("-", " "),
    "a fence": behind("```", "\n"),
    "a byte order mark": behind("\ufeff"),
    "a blank of no width": behind("\u200b"),
    "a fence on the same line": behind("```"),
    "a number": behind("1.", " "),
    "a picture": behind("✅", " "),
    "a label": behind("Answer", ":", " "),
    "a bold label": behind("**", "Final", " Answer", ":**", " "),
    "a tag": behind("<", "answer", ">"),
    "JSON": Case(
        (('{"', {}), ("answer", {}), ('":', {}), (' "', {}), ("yes", {"yes": 0.9, "no": 0.1}), ('"}', {})), 0.9
    ),
    "JSON that ends within its word": Case(
        (
            ('{"', {}),
            ("answer", {}),
            ('":', {}),
            (' "', {}),
            ("no", {"no": 0.9, "yes": 0.1}),
            ("t sure", {}),
            ('"}', {}),
        ),
        None,
    ),
    "a mark, and then no answer": behind("**", said="Maybe", likely={"Maybe": 0.6, "No": 0.4}, p_yes=None),
    "a mark, and then another language": behind("**", said="Sí", likely={"Sí": 0.9, "No": 0.1}),
    "not, of two tokens behind a mark": Case((("**", {}), ("No", {"No": 0.9, "Yes": 0.1}), ("t sure", {})), None),
    "nothing but marks": Case(tuple((each, {each: 0.8, "No": 0.2}) for each in "**-*#"), None),
}
IN_WORDS = {
    **dict.fromkeys(
        ["Yes", "yes.", "**Yes**", '"yes"', "“yes”", "### Yes", "- Yes", "Yes, the output does so.", "True"], True
    ),
    **dict.fromkeys(["是", "是。", "是，输出一致。", "yes it is", "Yes — all of them.", "\n\nYes"], True),
    **dict.fromkeys(
        ["Answer: yes", "Answer: Yes.", "**Answer:** Yes", "### Answer\nYes", "The final answer is: yes"], True
    ),
    **dict.fromkeys(["Verdict: no", "VERDICT - NO", "Antwort: nein", "答案：否", "Réponse : non"], False),
    **dict.fromkeys(
        [
            "<answer>yes</answer>",
            "<verdict> Yes </verdict>",
            "<answer>\nyes\n</answer>",
            "\\boxed{yes}",
            "[answer] yes [/answer]",
            "```yes```",
            "```\nyes\n```",
            "1. Yes",
            "<yes/>",
        ],
        True,
    ),
    **dict.fromkeys(
        ['{"answer": "yes"}', '```json\n{"answer": "yes"}\n```', '{"verdict": true}', '{ "answer" : "Yes" }'], True
    ),
    **dict.fromkeys(['{"explanation": "It says no.", "answer": "yes"}', '"answer": "yes"'], True),
    **dict.fromkeys(['{"answer": "no"}', "{'answer': 'no'}", '{"answer": false}'], False),
    **dict.fromkeys(
        ["yes<|im_end|>", "yes</s>", "yes<|eot_id|>", "<s> yes", "yes<end_of_turn>\n", "yes<｜end▁of▁sentence｜>"], True
    ),
    **dict.fromkeys(
        ["✅ Yes", "Yes ✅", "\ufeffyes", "\u200byes\u200b", "yes\u00a0", "\u2060Yes.", "\u200eyes", "yes\u200d"], True
    ),
    **dict.fromkeys(
        [
            "Sí",
            "Oui.",
            "Ja, das stimmt.",
            "はい。",
            "Evet",
            "Sim.",
            "نعم",
            "हाँ",
            "Да.",
            "Igen!",
            "Kyllä",
            "Sí ✅",
            "✅ Oui",
        ],
        True,
    ),
    **dict.fromkeys(
        ["Nein.", "Não.", "いいえ", "아니요.", "Hayır", "لا", "नहीं।", "Нет", "Όχι", "不是。", "Non."], False
    ),
    **dict.fromkeys(
        ["no", "No.", "**No**, because", "No, yes would be wrong", "no it is not", "No: wrong year"], False
    ),
    **dict.fromkeys(["Yes and no.", "yes or no", "No / Yes", "yes/no", "Ja und nein", "sí y no", "yes|no"], None),
    **dict.fromkeys(
        ["The answer is yes", "not sure", "Nothing", "no_answer", "no-one", "none", "", "...", "Absolutely"], None
    ),
    **dict.fromkeys(["No errors were found.", "Verdict: PASS", "Da der Text stimmt", "Ja wohl kaum", "Ne znam"], None),
    **dict.fromkeys(
        ['{"answer": "ye', '{"answer": "no', '{"answer": "not sure"}', '{"score": "yes"}', "<think>yes"], None
    ),
    **dict.fromkeys(["Result: unknown", "Answer:", "Answer: not yes", "{}", "[]", "Yesterday"], None),
}


def judge_of(case: Case, p_yes: str) -> KeptJudge:
    questions = (Question(id="q", text=QUESTIONS[case.language]),)
    checklist = Checklist(questions=questions, answers=case.answers)
    return KeptJudge("openai/judge", Prompt("{output}\n\n{question}"), checklist, {"p_yes": p_yes})


def choice(case: Case, most: int, *, logprobs: bool, field: str = "length") -> dict[str, Any]:
    """What a server sends of the reply where so many tokens are asked for."""
    tokens = case.tokens[:most]
    found: dict[str, Any] = {"message": {"content": "".join(token for token, _ in tokens)}}
    found["finish_reason"] = "stop" if len(tokens) == len(case.tokens) else field
    if logprobs:
        content = [
            {
                "token": token,
                "top_logprobs": [{"token": each, "logprob": log(p)} for each, p in (likely or {token: 1.0}).items()],
            }
            for token, likely in tokens
        ]
        found["logprobs"] = {"content": content}
    return found


def ours(case: Case, p_yes: str, **how: Any) -> float | None:
    """P(yes) as askance reads it."""
    judge = judge_of(case, p_yes)

    def script(request: Request) -> Answer:
        found = choice(case, request.parameters.max_tokens, logprobs=p_yes == "logprob", **how)
        tokens = read_logprobs(found.get("logprobs"), request.parameters)
        text, tokens = after_thinking(found["message"]["content"], tokens, apart=False)
        return Answer(text, tokens, finish=found["finish_reason"])

    model, gateway = ScriptedModel(script), Gateway(retry=RetryPolicy(first=0.0))
    evaluator = Evaluator(gateway, model, judge.prompt, judge.checklist, Judging(p_yes=p_yes))  # type: ignore[arg-type]
    [verdict] = asyncio.run(evaluator.judge([Example(id="1", input="in", output="out")]))
    assert {each.parameters.max_tokens for each in model.requests} <= {1, 8, ROOM} or p_yes == "stated"
    assert verdict.p_yes is None or verdict.answer is (verdict.p_yes >= 0.5)
    return verdict.p_yes


def exported(case: Case, p_yes: str, **how: Any) -> float | None:
    """P(yes) as an exported judge reads it."""
    module = as_module(judge_of(case, p_yes))
    module._post = lambda body: {
        "choices": [choice(case, body.get("max_tokens", 1000), logprobs="logprobs" in body, **how)]
    }
    try:
        [verdict] = module.judge(output="out", input="in")["verdicts"]
    except module.JudgeError:
        return None
    assert verdict["answer"] is (verdict["p_yes"] >= 0.5)
    return verdict["p_yes"]


@pytest.mark.parametrize("read", [ours, exported])
@pytest.mark.parametrize("name", IN_TOKENS)
@pytest.mark.parametrize("finish", ["length", "stop"])
def test_an_answer_in_tokens_is_the_word_that_was_said(name: str, read: Any, finish: str) -> None:
    """Also where the server never says that it cut a reply off."""
    case = IN_TOKENS[name]
    found = read(case, "logprob", field=finish)
    assert found == (None if case.said is None else pytest.approx(case.said, abs=1e-3))


@pytest.mark.parametrize("read", [ours, exported])
@pytest.mark.parametrize("text", IN_WORDS)
def test_an_answer_in_words_is_what_the_reply_says(text: str, read: Any) -> None:
    said = IN_WORDS[text]
    assert read(Case(((text, {}),), said), "hard") == (None if said is None else float(said))


@pytest.mark.parametrize("read", [ours, exported])
@pytest.mark.parametrize(
    ("text", "language", "said"),
    [
        ("Ne.", "sr", False),
        ("Ne.", "cs", False),
        ("Ne.", "el", None),
        ("Tak", "pl", True),
        ("Nie", "pl", False),
        ("No tak, zgadza się", "pl", None),
        ("No", "pl", False),
        ("No texto, tudo certo", "pt", None),
        ("Não", "pt", False),
        ("Так", "ru", None),
        ("Так", "uk", True),
        ("Не", "bg", False),
        ("Да", "bg", True),
        ("Ano.", "cs", True),
        ("예", "ko", True),
    ],
)
def test_a_word_is_read_as_the_language_of_the_question_has_it(text: str, language: str, said: Any, read: Any) -> None:
    found = read(Case(((text, {}),), said, language), "hard")
    assert found == (None if said is None else float(said))


@pytest.mark.parametrize("read", [ours, exported])
def test_what_is_asked_for_in_given_words_is_read_in_these_alone(read: Any) -> None:
    case = Case((("Ja.", {}),), None, answers=("ja", "nein"))
    assert read(case, "hard") == 1
    assert read(replace_text(case, "Nein"), "hard") == 0
    assert read(replace_text(case, "Yes"), "hard") is None
    assert read(replace_text(case, "Ja wohl kaum"), "hard") is None


def replace_text(case: Case, text: str) -> Case:
    return case._replace(tokens=((text, {}),))


def test_an_exported_judge_asks_again_in_the_given_words() -> None:
    judge = judge_of(Case((), None, answers=("ja", "nein")), "hard")
    module, sent = as_module(judge), []
    module._post = lambda body: sent.append(body) or {"choices": [{"message": {"content": "Hm."}}]}
    with pytest.raises(module.JudgeError):
        module.judge(output="out")
    assert says(sent[-1]["messages"][-1]["content"], "ja", "nein")


@pytest.mark.parametrize("read", [ours, exported])
@pytest.mark.parametrize(
    ("text", "p_yes"),
    [
        ('{"answer": "yes", "probability": 80}', 0.8),
        ('Here it is:\n```json\n{"answer": "no", "probability": 20,}\n```\nThat is all.', 0.2),
        ('[{"answer": "yes", "probability": 80}]', 0.8),
        ('{"response": {"answer": "no", "probability": 20}}', 0.2),
        ('{"answer": "yes", "probability": 80, "because": "It is lon', 0.8),
        ('{"probability": 80, "answer": "no', None),
        ('{"answer": "yes", "probability": 8', None),
    ],
)
def test_a_stated_probability_is_read_from_the_same_json(text: str, p_yes: float | None, read: Any) -> None:
    assert read(Case(((text, {}),), p_yes), "stated") == (None if p_yes is None else pytest.approx(p_yes))

"""A judge that askance measured, in one file: it needs Python 3.11 and an OpenAI-compatible server, nothing else.

From Python: ``judge(input="…", output="…")`` gives ``score`` (0 to 1), ``passed``, ``dimensions``, ``verdicts`` and a
``reason``. From a shell: ``python THIS_FILE data.jsonl`` writes one such object a line, for lines with ``input``,
``output`` and perhaps ``context``, ``reference`` and ``id``. Texts may be messages, lists or objects.

The server's address is OPENAI_BASE_URL (default: OpenAI's), its key OPENAI_API_KEY, and JUDGE_MODEL takes the place of
the model's name there. A verdict that cannot be had is a JudgeError, never a score.
"""

from __future__ import annotations

import http.client
import json
import math
import os
import re
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..bridges.exported_checks import CHECKS, JudgeError, check
from ..models.refusals import Facts, quota_used_up, wait_asked_for
from ..models.replies.json_object import object_in
from ..models.replies.own_scores import Reads
from ..models.replies.thoughts import after_thinking, thinks_apart
from ..models.replies.yes_no import (
    ROOM,
    AnswerWords,
    first_of_quote,
    p_quoted,
    read_tokens,
    read_yes_no,
    says_nothing_to_quote,
    stands_in,
    stated_p_yes,
    wants_room,
)
from ..prompts.conversations.chat import images_of, reply_text, seen_of, with_images
from ..prompts.messages import StructuredText, told
from ..prompts.text import BRACES, fence, fill

JUDGE: dict[str, Any] = {}
_Frame = tuple[list[tuple[str, str]], str, str, tuple[Any, ...]]

_ABSTAINS = {"n/a", "na", "unknown", "unclear", "undetermined", "neither", "cannot", "unsure"}
_QUOTE_FORM = "Copy from the text the few words that make the answer yes. If there are none, write: none."
_facts = [Facts()]  # of the server
_FEW = {"logprob": 1, "sampled": 8, "hard": 8}
_room: list[int] = []  # tokens that are asked for, where answers begin with something else
_LONGEST = 600.0  # seconds that a server is waited for where it asks for a time
_source: list[str] = []
_thinks: list[int] = [0]  # tokens for thinking that a call gets, the last one now
_no_thinker: list[bool] = []  # whether the model is known not to think


def judge(
    *, output: Any, input: Any = "", context: Any = "", reference: Any = "", metadata: Any = None
) -> dict[str, Any]:
    """Judge one output. Texts may be messages, lists or objects; ``metadata`` holds columns that the prompt shows.

    Raises JudgeError where the server failed, the model gave no usable answer, code cannot decide a check or a column
    is missing. Raises ValueError where a message has no content.
    """
    given = {"input": input, "context": context, "output": output, "reference": reference}
    texts = {name: told(value, passages=name == "context") or "" for name, value in given.items()}
    computed = {
        criterion["id"]: check(criterion["id"], **texts, reply=reply_text(texts["output"]))
        for criterion in _criteria()[len(JUDGE["questions"]) :]
    }
    columns = {f"column_{n}": _column(metadata, path) for n, path in enumerate(JUDGE.get("columns", ()))}
    said = (_in_own_words if JUDGE.get("own") else _asked)(texts, columns) if JUDGE["questions"] else {}
    said |= {name: [(verdict["answer"], verdict["p_yes"])] for name, verdict in computed.items()}
    verdicts, worth = [], {}
    for criterion in _criteria():
        answer, p_yes, values = _read(criterion, said)
        worth[criterion["id"]] = sum(values) / len(values)
        verdicts.append({"question": criterion["id"], "text": criterion["text"], "answer": answer, "p_yes": p_yes})
        verdicts[-1]["for_the_output"] = answer == (criterion["good"] == "yes")
        if criterion["id"] in computed:
            verdicts[-1]["found"] = computed[criterion["id"]]["found"]
    return _result(worth, verdicts)


def _criteria() -> list[dict[str, Any]]:
    """The criteria that the score counts: the questions, and the checks unless each is a test of its own."""
    return [*JUDGE["questions"], *([] if JUDGE.get("checks_apart") else CHECKS)]


def _column(metadata: Any, path: str) -> str:
    """Text of a column. A dot leads into an object: ``customer.name``."""
    value, rest = metadata, path
    while isinstance(value, dict) and rest:
        name, _, after = (rest, "", "") if rest in value else rest.partition(".")
        value, rest = value.get(name), after
    if value is None or rest:
        raise JudgeError(f"The metadata has no '{path}', which the judge's prompt shows.")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _asked(texts: dict[str, str], columns: dict[str, str]) -> dict[str, list[tuple[bool, float]]]:
    """The model's answers to each question with P(yes), one for each replicate."""
    columns = {name: fence(text) if "\n" in text else text for name, text in columns.items()}
    frames = {sees: _frame(prompt, _seen(texts, sees), columns) for sees, prompt in JUDGE["prompts"].items()}
    frames["quote"] = JUDGE["quoting"], f"Text:\n{fence(texts['output'])}\n\n", "", ()
    stated = JUDGE["stated"]
    source, draws = ("stated", 1) if stated else _settle(frames[JUDGE["questions"][0]["sees"]])
    repeats = range(JUDGE["repeat"] * draws)
    asked = [(question, replicate) for question in JUDGE["questions"] for replicate in repeats]

    def ask(pair: tuple[dict[str, Any], int]) -> tuple[bool, float]:
        question, replicate = pair
        quoted = texts["output"] if question["sees"] == "quote" else None  # whose words are a yes
        return _verdict(_messages(frames[question["sees"]], question["block"]), source, replicate, quoted)

    with ThreadPoolExecutor(max_workers=8) as pool:
        answers = [] if stated else list(pool.map(ask, asked))
        parts = [(part, replicate) for replicate in repeats for part in stated]
        stated_answers = list(pool.map(lambda pair: _numbers(pair[0], frames, pair[1]), parts))
    said: dict[str, list[tuple[bool, float]]] = {}
    for name, read in (item for answers_of_part in stated_answers for item in answers_of_part.items()):
        said.setdefault(name, []).append(read)
    for place, question in enumerate(JUDGE["questions"]):
        if stated:
            break
        drawn = answers[place * len(repeats) : (place + 1) * len(repeats)]
        said[question["id"]] = [_merged(drawn[start : start + draws]) for start in range(0, len(drawn), draws)]
    return said


def _in_own_words(texts: dict[str, str], columns: dict[str, str]) -> dict[str, list[tuple[bool, float]]]:
    """The place on its own scale of the score that a judge states, whose prompt is asked as it stands."""
    own, said = JUDGE["own"], []
    shown = [f"{name.capitalize()}:\n{fence(texts[name])}\n" for name in _ORDER if texts[name] or name == "output"]
    values = {**texts, **columns, "example": "\n".join(shown).strip("\n")}
    *before, (_, content) = [(role, fill(text, values)) for role, text in own["messages"]]
    messages = _messages((before, content, "", _images_in(texts, own["images"])), "")
    for replicate in range(JUDGE["repeat"]):
        text, _, ended = _ask(messages, "own", replicate, own["reply_tokens"])
        try:
            _, share, _ = Reads(*own["reads"]).read(text, ended=ended)
        except ValueError as error:
            raise JudgeError(f"The model's reply cannot be used: {error}. It is {_shown(text)}.") from None
        said.append((share >= 0.5, share))
    return {JUDGE["questions"][0]["id"]: said}


def _result(worth: dict[str, float], verdicts: list[dict[str, Any]]) -> dict[str, Any]:
    names = list(dict.fromkeys(criterion["dimension"] for criterion in _criteria() if criterion["weight"] > 0))
    dimensions = {name: _mean(worth, name) for name in names}
    score = _mean(worth, None)
    passed = None
    if JUDGE["threshold"] is not None:
        held = [dimensions.get(name, score) for name in JUDGE["threshold_of"]]
        passed = _reaches(sum(held) / len(held), JUDGE["threshold"])
    against = [verdict["text"] for verdict in verdicts if not verdict["for_the_output"]]
    reason = "Against it: " + "; ".join(against) if against else "Every answer speaks for it."
    return {"score": score, "passed": passed, "dimensions": dimensions, "verdicts": verdicts, "reason": reason}


def _reaches(score: float, threshold: float) -> bool:
    """Whether an output passes; a score that is below the threshold by rounding alone does."""
    return score >= threshold - 1e-9


def _mean(worth: dict[str, float], dimension: str | None) -> float:
    weighed = [criterion for criterion in _criteria() if criterion["weight"] > 0]
    weighed = [criterion for criterion in weighed if dimension is None or criterion["dimension"] == dimension]
    total: float = sum(worth[criterion["id"]] * criterion["weight"] for criterion in weighed)
    return total / float(sum(criterion["weight"] for criterion in weighed))


def _read(question: dict[str, Any], said: dict[str, list[tuple[bool, float]]]) -> tuple[bool, float, list[float]]:
    """Answer and P(yes), calibrated, and what each replicate is worth."""
    good, replicates = question["good"] == "yes", said[question["id"]]
    fit = (JUDGE["calibration"] or {}).get(question["id"])
    if fit is not None:
        if "threshold" in fit:
            p_yes = _mean_p(replicates)
            p_good = float((p_yes if good else 1 - p_yes) > fit["threshold"])
            answer = bool(p_good) == good
        else:
            odds = _log_odds(replicates) - _lean(question["id"], said)
            scaled = fit["slope"] * (odds if good else -odds) + fit["shift"]
            p_good = 1 / (1 + math.exp(-scaled)) if scaled > -700 else 0.0
            answer = (p_good >= 0.5) == good
        replicates = [(answer, p_good if good else 1 - p_good)] * len(replicates)
    values = [p if JUDGE["soft"] else float(answer) for answer, p in replicates]
    worth = values if good else [1 - each for each in values]
    yes = sum(answer for answer, _ in replicates)
    answer = replicates[0][0] if 2 * yes == len(replicates) else 2 * yes > len(replicates)
    return answer, _mean_p(replicates), worth


def _lean(question: str, said: dict[str, list[tuple[bool, float]]]) -> float:
    """A question's share of the mean log-odds of yes to all other calibrated questions."""
    fits = JUDGE["calibration"]
    share = fits[question].get("lean", 0.0)
    if not share:
        return 0.0
    others = [_log_odds(said[each]) for each in fits if each != question]
    return float(share * (sum(others) / len(others)))


def _mean_p(replicates: list[tuple[bool, float]]) -> float:
    return sum(p for _, p in replicates) / len(replicates)


def _log_odds(replicates: list[tuple[bool, float]]) -> float:
    """Log-odds of yes, of the mean P(yes) within [1e-6, 1 - 1e-6]."""
    clipped = min(max(_mean_p(replicates), 1e-6), 1 - 1e-6)
    return math.log(clipped) - math.log1p(-clipped)


def _merged(draws: list[tuple[bool, float]]) -> tuple[bool, float]:
    """One verdict from several draws of the same question: P(yes) is the share of yes."""
    if len(draws) == 1:
        return draws[0]
    p_yes = sum(answer for answer, _ in draws) / len(draws)
    return (draws[0][0] if p_yes == 0.5 else p_yes > 0.5), p_yes


def _seen(texts: dict[str, str], sees: str) -> dict[str, str]:
    """The texts that a question sees: all of them, the output alone, or the output's last reply or calls."""
    if sees == "all":
        return texts
    return dict.fromkeys(texts, "") | {"output": seen_of(texts["output"], texts["input"], sees)}  # type: ignore[arg-type]


_ORDER = ("context", "input", "reference", "output")


def _frame(prompt: dict[str, Any], texts: dict[str, str], columns: dict[str, str]) -> _Frame:
    """The opening messages, the texts before and after the question, and the images that are sent before them."""
    mark = "\ue000question\ue000"
    names = {match[2] for _, text in prompt["messages"] for match in BRACES.finditer(text)}
    fenced = {name: fence(text) if text or name in prompt["always"] else "" for name, text in texts.items()}
    made = [(role, fill(text, fenced | columns | {"question": mark})) for role, text in prompt["messages"]]
    shows = "output" in names
    if not shows and "question" not in names:
        shown = [f"{name.capitalize()}:\n{fenced[name]}\n" for name in _ORDER if texts[name] or name == "output"]
        made.append(("user", "\n".join(shown) + "\n"))
    elif made[-1][0] == "system":
        made.append(("user", ""))
    system = "\n\n".join(content for role, content in made if role == "system")
    before, _, after = made[-1][1].partition(mark)
    opening = [("system", system)] * bool(system) + [message for message in made[:-1] if message[0] != "system"]
    images = _images_in(texts, [name for name in _ORDER if name in names or not shows])
    return opening, before + "\n\n" * bool(before and shows and "question" not in names), after, images


def _images_in(texts: dict[str, str], shown: Iterable[str]) -> tuple[Any, ...]:
    return tuple(image for name in shown for image in images_of(texts[name]))


def _settle(frame: _Frame) -> tuple[str, int]:
    """Source of P(yes), settled by the first answer, and the number of times that each question is asked for it."""
    if not _source:
        source = JUDGE["p_yes"]
        if source == "auto":
            _, logprobs, _ = _ask(_messages(frame, JUDGE["questions"][0]["block"]), "logprob", 0, 1)
            source = "logprob" if logprobs else "sampled" if JUDGE["samples"] > 1 else "hard"
        _source.append(source)
    return _source[0], JUDGE["samples"] if _source[0] == "sampled" else 1


def _messages(frame: _Frame, block: str) -> list[dict[str, Any]]:
    opening, before, after, images = frame
    asked = with_images(f"{before}{block}{after}", images)
    content = asked.original["content"] if isinstance(asked, StructuredText) else asked
    return [{"role": role, "content": said} for role, said in [*opening, ("user", content)]]


def _verdict(messages: list[dict[str, Any]], source: str, replicate: int, output: str | None) -> tuple[bool, float]:
    """Answer and P(yes), with one more try after a reply of no use; ``output`` where words of it are a yes."""
    form, wanted = (JUDGE["form"], "yes nor no") if output is None else (_QUOTE_FORM, "none nor words of the output")
    words = _words()
    for again in (True, False):
        text, logprobs, ended = _ask_with_room(messages, source, replicate, words, quotes=output is not None)
        problem = f"{_shown(text)} is neither {wanted}"
        if source == "logprob":
            if not logprobs:
                raise JudgeError(
                    "An answer came without log-probabilities, from which the probability of yes is taken."
                )
            if output is None:
                _, p_yes = read_tokens(logprobs, words, ended=ended) or (None, None)
            else:
                p_yes = p_quoted(*first_of_quote(logprobs), output)
            if p_yes is not None:
                return p_yes >= 0.5, p_yes
        else:
            said = read_yes_no(text, words, ended=ended)
            if output is not None:  # a quote may begin with "no"
                said = False if says_nothing_to_quote(text) else True if stands_in(text, output) else said
            if said is not None:
                return said, float(said)
            if output is None and text.strip().lower().rstrip(".!") in _ABSTAINS:
                raise JudgeError(f"The model abstained: {_shown(text)}.")
        if again:
            messages = _again(messages, text, problem, form)
    raise JudgeError(f"The model's answer {problem}.")


def _again(messages: list[dict[str, Any]], reply: str, problem: str, form: str) -> list[dict[str, Any]]:
    complaint = f"That is not an answer that can be used: {problem}. Answer again: {form}"
    said = {"role": "assistant", "content": reply or "(nothing)"}
    return [*messages, said, {"role": "user", "content": complaint}]


def _numbers(part: dict[str, Any], frames: dict[str, Any], replicate: int) -> dict[str, tuple[bool, float]]:
    """Answers with their stated probabilities, by question. Questions that a reply leaves out are asked alone."""
    messages = _messages(frames[part["sees"]], part["block"])
    answers: dict[str, tuple[bool, float]] = {}
    for again in (True, False):
        text, _, _ = _ask(messages, "stated", replicate, part["most"], schema=part["schema"])
        problem = f"{_shown(text)} is no JSON object with the answers"
        try:
            wanted = ["answer"] if part["alone"] is None else [*part["alone"]]
            fields = object_in(text, wanted, cut=True)
        except ValueError:
            fields = {}
        fields = fields if isinstance(fields, dict) else {}
        for name in part["alone"] or [part["id"]]:
            value = fields if part["alone"] is None else fields.get(name)
            try:
                if isinstance(value, dict) and value:
                    said = read_yes_no(str(value.get("answer")), _words())
                    if said is None:
                        raise ValueError('"answer" is neither yes nor no')
                    answers[name] = said, stated_p_yes(value, said)
            except ValueError as error:
                problem = str(error)
        if answers:
            missing = [part_alone for name, part_alone in (part["alone"] or {}).items() if name not in answers]
            for part_alone in missing:
                answers |= _numbers(part_alone, frames, replicate)
            return answers
        if again:
            messages = _again(messages, text, problem, part["form"])
    raise JudgeError(f"The model's answer cannot be used: {problem}.")


def _words() -> AnswerWords:
    """The words for yes and no."""
    return AnswerWords(
        *({word: side == "yes" for side in each for word in each[side].split()} for each in JUDGE["words"])
    )


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return f"'{text[:60]}…'" if len(text) > 60 else f"'{text}'"


def _ask_with_room(
    messages: list[dict[str, Any]], source: str, replicate: int, words: AnswerWords, *, quotes: bool
) -> tuple[str, list[Any] | None, bool]:
    """An answer as of :func:`_ask`, asked for with more tokens where a mark, a blank or a label took the first ones."""
    most = _room[0] if _room else _FEW[source]
    text, logprobs, ended = _ask(messages, source, replicate, most, None if quotes else words)
    if wants_room(text, logprobs or (), words, most=most, ended=ended, quotes=quotes):
        _room.append(ROOM)
        return _ask(messages, source, replicate, ROOM, None if quotes else words)
    return text, logprobs, ended


def _ask(
    messages: list[dict[str, Any]],
    source: str,
    replicate: int,
    most: int,
    words: AnswerWords | None = None,
    schema: dict[str, Any] | None = None,
) -> tuple[str, list[Any] | None, bool]:
    """The text of an answer, the alternatives to each token with log-probabilities, and whether it came to its end.

    A model that thinks first is asked with more tokens until it answers, with ``words`` or by a ``schema``.
    """
    body: dict[str, Any] = {"model": os.environ.get("JUDGE_MODEL") or JUDGE["model"], "messages": messages}
    if schema is not None:
        answer = {"name": "answer", "strict": True, "schema": schema}
        body["response_format"] = {"type": "json_schema", "json_schema": answer}
    body |= {"temperature": JUDGE["temperature"] or float(source == "sampled"), "seed": JUDGE["seed"] + replicate}
    if source == "logprob":
        body |= {"logprobs": True, "top_logprobs": 20}
    body |= JUDGE["fields"]
    for room in (_thinks[-1], *(step for step in JUDGE["thinking_room"] if step > _thinks[-1])):
        choice = _post(body | {"max_tokens": most + room})["choices"][0]
        text, logprobs, thought = _told(choice)
        ended = choice.get("finish_reason") != "length"
        if ended or _has_begun(text, logprobs, most, words):
            if thought:
                _thinks.append(max(room, JUDGE["thinking_room"][0]))
            break
        if room and text.strip() and not thought:  # with room it says as little: it does not think
            _no_thinker.append(True)
            break
    if not text.strip() and not logprobs and (ended or not text or most > 1):
        raise JudgeError("The model's reply is empty, or was cut off in what it thinks before it answers.")
    return text, logprobs, ended


def _told(choice: dict[str, Any]) -> tuple[str, list[Any] | None, bool]:
    """The text of a reply after what was thought, its log-probabilities, and whether the model thought."""
    content = (choice.get("logprobs") or {}).get("content") or []
    logprobs = None
    if any(each.get("top_logprobs") for each in content):
        logprobs = [(each["token"], _alternatives(each)) for each in content]
    whole, apart = choice["message"].get("content") or "", thinks_apart(choice["message"])
    if isinstance(whole, list):
        whole = "".join(part["text"] for part in whole if part.get("type", "text") == "text")
    text, logprobs = after_thinking(whole, logprobs, apart=apart)
    return text, logprobs, apart or text != whole


def _has_begun(text: str, logprobs: list[Any] | None, most: int, words: AnswerWords | None) -> bool:
    """Whether a reply that was cut off is an answer or the beginning of one, and no thought."""
    if not text.strip():
        return bool(logprobs) or (bool(text) and most == 1)
    if _no_thinker or words is None:
        return True
    said = read_tokens(logprobs, words, ended=False) if logprobs else read_yes_no(text, words, ended=False)
    return said is not None or wants_room(text, logprobs or (), words, most=most, ended=False)


def _alternatives(token: dict[str, Any]) -> list[tuple[str, float]]:
    top = token.get("top_logprobs") or [token]
    return [(item["token"], round(item["logprob"], 4)) for item in top if item["logprob"] is not None]


def _post(body: dict[str, Any]) -> dict[str, Any]:
    """The server's reply. A refused field is left out from then on, once the request is taken without it."""
    base = os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
    headers = {"Content-Type": "application/json"}
    if os.environ.get("OPENAI_API_KEY"):
        headers["Authorization"] = f"Bearer {os.environ['OPENAI_API_KEY']}"
    attempt, problem, facts = 0, "", _facts[0]
    while attempt < 6:
        sent = facts.fit(body)
        asked = urllib.request.Request(f"{base.rstrip('/')}/chat/completions", json.dumps(sent).encode(), headers)
        wait = min(60.0, 0.5 * 2.0**attempt)
        try:
            with _opener(base).open(asked, timeout=120) as reply:
                data: dict[str, Any] = json.loads(reply.read())
                if data.get("choices"):
                    _facts[0] = _facts[0].and_also(facts)
                    return data
                problem = "a reply without an answer"
        except urllib.error.HTTPError as error:
            said = error.read().decode("utf-8", "replace")
            if error.code == 400 and ("model output limit" in said or "thinking.budget_tokens" in said):
                # it has thought all along
                return {"choices": [{"message": {"content": ""}, "finish_reason": "length"}]}
            learned = facts.learn(error.code, said, sent)
            if learned is not None:
                facts = learned
                continue
            if error.code in (400, 422) and "chat_template" in said and body.pop("chat_template_kwargs", None):
                continue
            if error.code not in (408, 409, 425, 429, 500, 502, 503, 504, *range(520, 526), 529):
                raise JudgeError(f"The server refused (HTTP {error.code}): {said[:300]}") from None
            if quota_used_up(error.code, said):
                raise JudgeError(f"HTTP {error.code}: the quota or the money of this account is used up.") from None
            problem, asked_for = f"HTTP {error.code}", wait_asked_for(dict(error.headers), said)
            wait = wait if asked_for is None else min(_LONGEST, asked_for)
        except (OSError, http.client.HTTPException, ValueError, AttributeError, RecursionError) as error:
            problem = str(error)
            if "CERTIFICATE_VERIFY_FAILED" in problem:
                raise JudgeError(f"The server's certificate cannot be verified; set SSL_CERT_FILE. {problem}") from None
        attempt += 1
        if attempt < 6:
            time.sleep(wait)
    raise JudgeError(f"No answer from {base.rpartition('@')[2]} after 6 attempts; the last one: {problem}")


def _opener(base: str) -> urllib.request.OpenerDirector:
    """An opener with the environment's proxy, except for this machine, and with its file of certificates."""
    proxies = urllib.request.getproxies()
    every = {kind: proxies.get(kind) or proxies.get("all") for kind in ("http", "https")}
    here = re.match(r"https?://(?:localhost|127\.|\[::1\])", base)
    through = {} if here else {kind: proxy for kind, proxy in every.items() if proxy}
    bundle = next(filter(None, map(os.environ.get, ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"))), None)
    context = ssl.create_default_context(cafile=bundle)
    return urllib.request.build_opener(
        urllib.request.ProxyHandler(through), urllib.request.HTTPSHandler(context=context)
    )


def main(arguments: list[str]) -> int:
    """Judge the lines of a JSONL file. Lines without a verdict are named, and make the exit code 1."""
    if len(arguments) != 1:
        sys.stderr.write(f"usage: python {sys.argv[0]} data.jsonl\n")
        return 2
    try:
        with open(arguments[0], "rb") as file:
            lines = file.readlines()
    except OSError as error:
        sys.stderr.write(f"{arguments[0]}: {error.strerror}\n")
        return 2
    failed = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            texts = {name: row.get(name) or "" for name in ("input", "context", "reference")}
            if row["output"] is None:
                raise ValueError("there is no output")
            result = judge(output=row["output"], metadata=row.get("metadata"), **texts)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            sys.stderr.write(f"{arguments[0]}, line {number}: {type(error).__name__}: {error}\n")
            return 2
        except JudgeError as error:
            sys.stderr.write(f"{arguments[0]}, line {number}: {error}\n")
            failed = 1
        else:
            sys.stdout.write(json.dumps({"id": row.get("id", str(number)), **result}, ensure_ascii=False) + "\n")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

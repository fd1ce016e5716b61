"""Clauses of a prompt that code can check: "at most 90 words", "no web addresses", "begin with …" as checks.

English clauses are read, and some German ones. A clause of another form, or one that holds under a condition only, is
left to the questions. A clause that speaks of one key of a JSON object limits that key alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from ...prompts.checklist import ComputedCheck
from .found_rules import TRAITS
from .wording import (
    CONDITION,
    NOT,
    NUMBER,
    QUOTED,
    QUOTED_TEXT,
    UNQUOTED,
    about_key,
    any_case,
    clauses_of,
    has_gap,
    is_undone,
    length_of,
    lengths_of,
    listed_values,
    number_of,
    quoted_words,
)


class StatedRule(NamedTuple):
    """A check that a clause of the prompt asks for."""

    check: ComputedCheck
    """The check, with the clause in the prompt's own words."""
    is_all: bool
    """Whether the clause asks for nothing else."""


_OF_A_PART = any_case(
    r"\b(?:each|every|per|title|subject|heading|headline|bullets?|points?|items?|first|last|opening|closing|second|"
    r"third|final|paragraph (?:of|with)|sentences? (?:of|with)|lines? (?:of|with)|its|their|list of|followed by|then|"
    r"jede\w*|pro|titel|betreff|überschrift|stichpunkt\w*|erste\w*|letzte\w*|zweite\w*)\b"
)
"""Words of a clause whose length is about a part of the output."""
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1, "final": -1} | {
    "erste": 1, "zweite": 2, "dritte": 3, "letzte": -1
}  # fmt: skip
_LINE = any_case(rf"\b({'|'.join(_ORDINALS)})\w? (?:line|zeile)\b")
_LINE_IS = any_case(
    rf"(?:(?:is|(?:must|should) be|reads?|says?|lautet|ist)\b:?|:|)\s*(?:the (?:words?|text)\s+)?{QUOTED_TEXT}"
)
_BEGINS = any_case(
    rf"(?:\b(?:begin|start|open|beginn|beginne|starte)(?:s|ing)?\b{UNQUOTED}*?\b(?:with|mit)|\bbeginning\b{UNQUOTED}*?\b(?:is|be))"
    rf":?\s+(?:(?:the|an?) (?:words?|phrase|line|text|sentence)\s+)?{QUOTED_TEXT}"
)
_ENDS = any_case(
    rf"(?:\b(?:end|close|finish|conclude|sign off|ende|schließe)(?:s|ing)?\b{UNQUOTED}*?\b(?:with|mit)|\bending\b{UNQUOTED}*?\b"
    rf"(?:is|be)):?\s+(?:(?:the|an?) (?:words?|phrase|line|text|sentence)\s+)?{QUOTED_TEXT}"
)
_OF_LINES = any_case(r"\b(?:each|every|all)\b|\bbullets?\b|\bpoints?\b|\blines\b|\bjede")
_FORBIDDEN = any_case(
    rf"\b{NOT}\b{UNQUOTED}{{0,40}}?\b(?:words?|phrases?|terms?|expressions?|say|write|use|using|saying|wort|wörter)"
    rf"(?: like| such as)?:?\s+(?={QUOTED_TEXT})"
)
_WANTED = any_case(
    rf"\b(?:include|contain|use|mention)s?\b{UNQUOTED}{{0,20}}?\b(?:words?|phrase|sentence|line)\s+{QUOTED_TEXT}"
)
_ADDRESS = any_case(
    rf"\b(?:speak to|address|talk to|refer to)\b{UNQUOTED}{{0,30}}?\b(?:reader|user|customer|person|citizen|them)\w* "
    rf"(?:as|with) {QUOTED_TEXT}"
)
_ITS_SOURCE = any_case(
    rf"\b{NOT}\b (?:mention|refer to|cite|talk about|name)(?:ing)? (?:the |this |these |your )?"
    r"(passages?|prompts?|instructions?|contexts?|excerpts?|source texts?|system (?:prompt|message))\b"
)
"""Clauses that forbid to mention the source or the prompt. Other things can be mentioned in too many words to check."""
_TRAIT_WORDS = {
    "code_fence": r"(?:markdown )?code[- ]?(?:fences?|blocks?)|(?:triple )?backticks|markdown fences?",
    "headings": r"headings?|headers?|überschriften",
    "bullets": r"bullet(?: point)?s?|bulleted lists?|bullet lists?|stichpunkte|aufzählung(?:en)?",
    "numbered_list": r"numbered lists?",
    "table": r"tables?|tabellen?",
    "bold": r"bold(?: text| type)?|fettdruck",
    "web_address": r"(?:web ?)?(?:addresses|links|urls|hyperlinks)|url|link|web address|internetadressen",
    "emoji": r"emojis?|emoticons?",
    "preamble": r"preambles?|introductory (?:text|remarks?|sentences?)",
}
_SIGNS = {
    "exclamation marks?|exclamation points?|ausrufezeichen": "!",
    "question marks?": r"\?",
    "commas?": ",",
    "semicolons?": ";",
    "em[- ]?dashes|em[- ]?dash": "—",
    "digits": r"\d",
}
_CASES = {
    r"(?:all|only|entirely|in) lower ?case|in all lower ?case|lower ?case letters only": r"[^\W\d_a-zà-öø-ÿ]",
    r"(?:all|only|entirely|in) (?:upper ?case|capital letters|capitals|caps)|in all (?:caps|upper ?case)": r"[a-zß-öø-ÿ]",
}
_PART_IN_CASE = any_case(r"\b(?:each|every|title|heading|headline|subject|keys?|names?|tags?|first word)\b")
_BULLETS = any_case(
    rf"(?:(exactly|at most|no more than|up to|at least)\s+)?{NUMBER}(?:\s*(?:to|-|–|or)\s*{NUMBER})?\s+"
    r"(?:\w+ )?(?:bullet(?: point)?s?|bulleted (?:points|items))\b"
)
_OF_EACH = any_case(r"\b(?:each|every|per|jede\w*)\b")
_BULLET_MARK = any_case(rf"\b(?:begin|start)\w*(?: \w+)? with {QUOTED_TEXT}|\bmarked (?:with|by) {QUOTED_TEXT}")
_MARKDOWN = any_case(rf"\b{NOT}\b (?:any |use |using |contain\w* ){{0,2}}markdown\b(?! (?:code|fence))")
_OF_MARKDOWN = r"(?m)```|^#{1,6} |\*\*[^*\n]+\*\*|^\s*\|.*\|\s*$"
_ASKS_AT_END = any_case(r"\bend(?:s|ing)?\b[^.]{0,20}\bwith an? (?:\w+ )?question(?! mark)")
_LABEL_OF = any_case(
    r"\b(?:answer|reply|respond|return|output|say|classify)\b[^.:]{0,40}\bone (?:of|word|label|category|class)\b"
    r"(?: the)?(?: following)?(?: (?:words|labels|categories|classes|values|options))?:?\s*"
)
_SECTIONS = any_case(rf"\b(?:headings|sections|headers)\b{UNQUOTED}{{0,30}}?:?\s+(?={QUOTED_TEXT})")
_JSON = any_case(
    r"\b(?:only|just|nothing but|solely|one|single|a|valid|strict)\s+(?:a )?(?:single |one )?(?:valid |strict )?JSON\b|"
    r"\b(?:return|reply|respond|answer|output)\s+(?:only )?(?:in|with|as)?\s*(?:a )?(?:valid )?JSON\b"
)
_ALONE = any_case(
    r"\b(?:(?:and )?nothing else|only|no (?:other )?text(?: before or after(?: it)?)?|no explanations?|just|solely)\b"
)
_LANGUAGES = {
    "english": "en", "german": "de", "french": "fr", "spanish": "es", "italian": "it", "portuguese": "pt",
    "dutch": "nl", "polish": "pl", "japanese": "ja", "chinese": "zh", "korean": "ko", "russian": "ru",
    "turkish": "tr", "arabic": "ar", "swedish": "sv", "danish": "da",
}  # fmt: skip
_LANGUAGE = any_case(
    rf"\b(?:write|reply|answer|respond|output|speak|always)\b[^.\n]{{0,30}}?\bin ({'|'.join(_LANGUAGES)})\b|"
    r"\b(?:schreib|antworte|verfass)\w*\b[^.\n]{0,30}?\bauf (deutsch|englisch|französisch)\b"
)
_AUF = {"deutsch": "de", "englisch": "en", "französisch": "fr"}
_FILLED = (
    "the a an in all it its is be of or and to with for at by on as that this must should always never not no do don t use "
    "write reply return output answer respond give put keep make stay whole text texts total please them then than more "
    "only else overall long object array anywhere any your you short plain entire response message report email mail tweet "
    "before after words word line lines so beginning ends begins each once sign off begin start end "
    "die der das ein eine ist lautet und keine nicht verwende nutze schreibe antworte mit auf"
)
_FILLERS = frozenset(_FILLED.split())
"""Words that ask for nothing by themselves."""
_MOST_LEFT = 0
"""Most words of content outside of the checked parts with which a clause asks for nothing else."""


class _Read(NamedTuple):
    """A check and the part of its clause that asks for it."""

    id: str
    kind: str
    value: str | None
    said: str
    good: str = "yes"
    text: str = ""


def stated_rules(prompt: str, keys: Collection[str] = ()) -> list[StatedRule]:
    """Return the checks that the clauses of a prompt ask for, in their order.

    ``keys`` are keys of JSON outputs: a clause about one of them is left to :func:`key_clauses`.
    """
    found = []
    fixed_lines = "|".join(re.escape(each) for clause in clauses_of(prompt) for each in _fixed_line(clause))
    for clause in clauses_of(prompt):
        if about_key(clause, keys) is not None or CONDITION.search(clause):
            continue
        read = list(_rules_in(clause, fixed_lines))
        is_all = _words_left(clause, [each.said for each in read]) <= _MOST_LEFT
        for each in read:
            fields = {"id": each.id, "kind": each.kind, "value": each.value, "good": each.good, "text": each.text}
            check = ComputedCheck.model_validate(fields | {"clause": clause, "from": "clause"})
            found.append(StatedRule(check, is_all))
    return found


def is_about_form(question: str) -> bool:
    """Return whether a question asks for something that checks decide: a length, a mark of form, or valid JSON."""
    traits = rf"\b(?:{'|'.join(_TRAIT_WORDS.values())}|JSON|keys?)(?!\w)"
    return bool(lengths_of(question)) or re.search(traits, question, re.IGNORECASE) is not None


def _rules_in(clause: str, fixed: str) -> Iterator[_Read]:
    """Yield the rules of a clause; ``fixed`` is a pattern of the lines that the prompt gives word for word."""
    yield from _line_rules(clause)
    if not _OF_A_PART.search(clause) and (length := length_of(clause)) is not None:
        yield _Read(f"length_{length.unit}s", "length", length.band, length.said)
    if not _OF_LINES.search(clause):
        for kind, form in (("begins", _BEGINS), ("ends", _ENDS)):
            if (found := form.search(clause)) and not has_gap(end := quoted_words(found)):
                is_unwanted = is_undone(clause, found) or re.search(rf"\b{NOT}\b", found[0].partition(end)[0])
                name, good = (f"not_{kind}", "no") if is_unwanted else (kind, "yes")
                yield _Read(name, kind, end.replace("\\n", "\n"), found[0], good)
    if found := _FORBIDDEN.search(clause):
        words = [quoted_words(each) for each in QUOTED.finditer(clause, found.end())]
        pattern = "|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in words)
        said = f"Does the output say {' or '.join(words)}?"
        if words:
            yield _Read(f"not_{_name(words[0])}", "matches", f"(?i){pattern}", clause[found.start() :], "no", said)
    elif found := _WANTED.search(clause):
        word = quoted_words(found)
        yield _Read(f"has_{_name(word)}", "matches", re.escape(word), found[0], text=f"Does the output say {word}?")
    if found := _ADDRESS.search(clause):
        word = quoted_words(found)
        forms = rf"\b{re.escape(word)}{'(?:r|rs|rself)?' if word.lower() == 'you' else ''}\b"
        # a fixed line, e.g. "Your help desk", says nothing of how the output speaks to its reader
        pattern = rf"(?im)^(?!\s*(?:{fixed})\s*$).*{forms}" if fixed else f"(?i){forms}"
        yield _Read(f"says_{_name(word)}", "matches", pattern, found[0], text=f"Does the output say {word}?")
    if found := _ITS_SOURCE.search(clause):
        word = found[1].lower().removesuffix("s")
        pattern = rf"(?i)\b{re.escape(word)}s?\b"
        yield _Read(f"not_{_name(word)}", "matches", pattern, found[0], "no", f"Does the output mention the {word}?")
    yield from _form_rules(clause)


def _form_rules(clause: str) -> Iterator[_Read]:
    for trait in TRAITS:
        words = rf"\b({NOT})\b[^.;:]{{0,30}}?\b({_TRAIT_WORDS[trait.id]})(?!\w)"
        if found := re.search(words, clause, re.IGNORECASE):
            check = trait.check(wanted=False)
            yield _Read(check.id, "matches", check.value, f"{found[1]} {found[2]}", "no", check.text)
    if found := _MARKDOWN.search(clause):
        text = "Does the output have marks of Markdown?"
        yield _Read("no_markdown", "matches", _OF_MARKDOWN, found[0], "no", text)
    if found := _ASKS_AT_END.search(clause):
        yield _Read("ends_with_question", "ends", "?", found[0])
    if (begins := _LABEL_OF.search(clause)) and len(values := listed_values(clause[begins.end() :])) > 1:
        pattern = rf"\A\s*(?:{'|'.join(map(re.escape, values))})\s*\Z"
        yield _Read(
            "one_of", "matches", pattern, clause[begins.start() :], text=f"Is the output one of {', '.join(values)}?"
        )
    for words, sign in _SIGNS.items():
        if found := re.search(
            rf"\b{NOT}\b (?:any |use |using |contain\w* ){{0,2}}(?:{words})\b", clause, re.IGNORECASE
        ):
            name = found[0].split()[-1].lower()
            yield _Read(f"no_{_name(name)}", "matches", sign, found[0], "no", f"Does the output have {name}?")
    for words, letters in _CASES.items():
        if (found := re.search(rf"\b(?:{words})\b", clause, re.IGNORECASE)) and not _PART_IN_CASE.search(clause):
            yield _Read("letter_case", "matches", letters, found[0], "no", f"Does the output break: {found[0]}?")
    found = _BULLETS.search(clause)
    if found and not is_undone(clause, found) and not _OF_EACH.search(clause[: found.start()]):
        mark = _BULLET_MARK.search(clause)
        said = found[0] if mark is None else clause[found.start() : mark.end()]
        pattern = _bullet_pattern(found, quoted_words(mark) if mark else None)
        yield _Read("bullet_count", "matches", pattern, said, text=f"Does the output have {found[0]}?")
    if (found := _SECTIONS.search(clause)) and not re.search(rf"\b{NOT}\b", clause[: found.start()], re.IGNORECASE):
        names = [quoted_words(each).lstrip("# ") for each in QUOTED.finditer(clause, found.end())]
        lines = [rf"^\W*{re.escape(each)}\W*$" for each in names]
        headings_pattern = (
            r"[\s\S]*?".join(lines) if "order" in clause else "".join(rf"(?=[\s\S]*{each})" for each in lines)
        )
        if len(names) > 1:
            text = f"Does the output have the headings {', '.join(names)}?"
            yield _Read(
                "sections",
                "matches",
                rf"(?m)\A[\s\S]*?{headings_pattern}" if "order" in clause else rf"(?m)\A{headings_pattern}",
                clause[found.start() :],
                text=text,
            )
    if (found := _JSON.search(clause)) and (alone := _ALONE.findall(clause)):
        yield _Read("json_alone", "json", None, " ".join([found[0], *alone]))
    if found := _LANGUAGE.search(clause):
        code = _LANGUAGES[found[1].lower()] if found[1] else _AUF[found[2].lower()]
        yield _Read("language", "language", code, found[0])


def _line_rules(clause: str) -> Iterator[_Read]:
    """Yield the rules about one line: its words, its beginning, or that it is in bold."""
    if (line := _LINE.search(clause)) is None:
        return
    word, remainder = line[1].lower(), clause[line.end() :]
    place = _ORDINALS[word]
    name = "last_line" if place < 0 else f"line_{place}"
    if (words := _fixed_line(clause)) and not has_gap(words[0]):
        text, said = f'Is the {word} line "{words[0]}"?', f"{line[0]} is {words[0]}"
        yield _Read(name, "matches", line_pattern(place, re.escape(words[0])), said, text=text)
    elif found := re.search(r"\b(?:in|all|is) bold\b(?: \([^)]*\))?", remainder, re.IGNORECASE):
        pattern = line_pattern(place, BOLD_LINE)
        yield _Read(f"{name}_bold", "matches", pattern, line[0] + found[0], text=f"Is the {word} line in bold?")
    elif re.match(r"\W*(?:is|must be|should be)\W+(?:empty|blank)\b", remainder, re.IGNORECASE) is None:
        found = _BEGINS.search(remainder)
        if found and place > 0:
            pattern = line_pattern(place, re.escape(quoted_words(found)) + REST_OF_LINE)
            yield _Read(f"{name}_begins", "matches", pattern, line[0] + found[0], text=f"Is the {word} line so begun?")


def _fixed_line(clause: str) -> list[str]:
    """Return the words of the line that a clause gives word for word, as a list; empty if it gives none."""
    line = _LINE.search(clause)
    found = _LINE_IS.match(clause[line.end() :].lstrip()) if line else None
    return [quoted_words(found).strip()] if found else []


BOLD_LINE = r"\*\*[^*\n]+\*\*[.!?]?"
"""Pattern of a line in bold."""
REST_OF_LINE = r"[^\n]*"


def line_pattern(place: int, inner: str) -> str:
    """Return a pattern of texts whose line at a place (from 1, or -1 for the last) is ``inner``; empty lines do not
    count."""
    if place < 0:
        return rf"(?:\A|\n)[ \t]*{inner}\s*\Z"
    return rf"\A(?:\s*\S[^\n]*\n){{{place - 1}}}\s*{inner}[ \t]*(?:\n|\Z)"


def _bullet_pattern(found: re.Match[str], mark: str | None) -> str:
    """Return a pattern of texts with the number of bullet points that a clause asks for."""
    low, high = number_of(found[2]), number_of(found[3] or found[2])
    bound = (found[1] or "").lower()
    times = f"{{0,{high}}}" if bound in ("at most", "no more than", "up to") else f"{{{low},{high}}}"
    times = f"{{{low},}}" if bound == "at least" else times
    begins = r"^\s*[-*•] " if mark is None else rf"^\s*{re.escape(mark)}"
    other = rf"(?:(?!{begins}).)*"
    return rf"(?ms)\A{other}(?:{begins}{other}){times}\Z"


def _words_left(clause: str, said: list[str]) -> int:
    """Count the words of content in a clause outside of the parts that checks were read from."""
    there, read = (Counter(re.findall(r"\w+", text.lower())) for text in (clause, " ".join(said)))
    return sum(times for word, times in (there - read).items() if word not in _FILLERS)


def _name(words: str) -> str:
    return re.sub(r"\W+", "_", words.lower()).strip("_")[:40]

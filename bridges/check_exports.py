"""Checks in files for other tools: askance's own code, put into the file, or an assertion of promptfoo's own.

An assertion of promptfoo's takes the place of a check where both decide the same.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Sequence
from pprint import pformat
from types import ModuleType
from typing import Any

from ..agents import decided
from ..agents.decided import DECIDED
from ..models.replies import json_object
from ..prompts import formatting, text
from ..prompts.checklist import Checklist, ComputedCheck
from ..prompts.criteria import kinds, patterns
from ..prompts.criteria.kinds import OF_SCHEMAS
from ..prompts.criteria.patterns import LengthBand
from . import exported_checks


def inlined(source: str, module: ModuleType, code: str | None = None) -> str:
    """A file with a module in place of its import, so that what askance does is done there by the same lines.

    ``code`` takes the place of the module's own text.
    """
    name = module.__name__.partition(".")[2]
    code = inspect.getsource(module) if code is None else code
    code = code.partition("from __future__ import annotations\n")[2].strip()
    code = re.sub(r"^from \.[\w.]* import (?:\([^)]*\)|.*)\n", "", code, flags=re.MULTILINE)
    imported = rf"^from \.\.{re.escape(name)} import (?:\([^)]*\)|.*)\n"
    return re.sub(imported, lambda _: f"{code}\n\n", source, flags=re.MULTILINE)


def code_of_checks(checks: Sequence[ComputedCheck], *, alone: bool = True) -> str:
    """The file that decides checks, with askance's functions for it. It is ``alone`` unless a judge in it already reads
    JSON."""
    helpers = (text.sentences, text.shorten, formatting.count, kinds.schema_errors, kinds._validator)
    needed = "\n\n".join(inspect.getsource(helper) for helper in helpers)
    constants = f"_SENTENCE = re.compile({text._SENTENCE.pattern!r})\nMOST_ERRORS = {kinds.MOST_ERRORS}\n"
    deciding = inlined(inspect.getsource(decided), patterns)
    if alone and any(check.kind == "fields" for check in checks):
        deciding = inlined(deciding, json_object)
    deciding += f"\n\nfrom functools import lru_cache\n\n{constants}\n\n{needed}"
    source = inlined(inspect.getsource(exported_checks), decided, deciding)
    source = re.sub(r"^from \.\..*\n", "", source, flags=re.MULTILINE)  # inlined above
    names = ("id", "text", "good", "weight", "dimension", "kind", "value")
    return with_literal(source, "CHECKS", [{name: getattr(check, name) for name in names} for check in checks])


def with_literal(source: str, name: str, value: Any) -> str:
    """A file with a value in place of the empty one that a name has at the beginning of a line."""
    plain = isinstance(value, str) and "\\" not in value and '"""' not in value and value.endswith("\n")
    said = f'"""\\\n{value}"""' if plain else pformat(value, width=110, sort_dicts=False)
    if isinstance(value, dict) and all(isinstance(each, float) for each in value.values()):  # for people to change
        said = "{\n" + "".join(f"    {json.dumps(key)}: {each},\n" for key, each in value.items()) + "}"
    made, times = re.subn(rf"^({name}: [^=\n]*= ).*$", lambda match: match[1] + said, source, flags=re.MULTILINE)
    assert times == 1, f"{name} stands once in the file"
    return made


def asked_of(checklist: Checklist) -> Checklist | None:
    """The questions alone; None where none of them counts."""
    asked = checklist.asked_alone
    return asked if asked is not None and any(each.weight > 0 for each in asked.questions) else None


def needs_of(checks: Sequence[ComputedCheck]) -> list[str]:
    """Sentences that name the packages which a file with checks needs."""
    schemas = [check.id for check in checks if check.kind in OF_SCHEMAS]
    sentences = [f"The file needs the package jsonschema, for {', '.join(schemas)}."] if schemas else []
    if elsewhere := [f"{check.id} ({check.kind})" for check in checks if check.kind not in DECIDED]:
        sentences.append(
            f"askance itself decides {', '.join(elsewhere)}, and must be installed where the file is used; the rest of "
            "the file needs no askance."
        )
    if files := sorted({str(check.value).rpartition(":")[0] for check in checks if check.kind == "checker"}):
        sentences.append(f"Functions are looked for beside the file: {', '.join(files)}.")
    return sentences


# --- promptfoo -------------------------------------------------------------------------------------------------------


_BLANK = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""The characters that Python takes for blank."""
_SAID = '(typeof output === "string" ? output : JSON.stringify(output))'
_STRIPPED = f"{_SAID}.replace(/^[{_BLANK}]+|[{_BLANK}]+$/g, '')"
_COUNTED = {
    "character": f"[...{_STRIPPED}].length",
    "line": f"{_SAID}.split(/\\r\\n|[\\n-\\r\\x1c-\\x1e\\x85\\u2028\\u2029]/).filter(x => /[^{_BLANK}]/.test(x)).length",
    "paragraph": f"{_STRIPPED}.split(/\\n[{_BLANK}]*\\n/).filter(x => /[^{_BLANK}]/.test(x)).length",
}
"""Numbers of units of length, in JavaScript. What a word or a sentence is differs between Python and JavaScript."""
_LITERAL = r"[A-Za-z0-9 _\-,:;!\"'<>=@%&~/`#]|\\[!-/:-@\[-`{-~]"
_PLAIN = re.compile(rf"(?:{_LITERAL}|[^\x00-\x7f])+")
"""A pattern that is a text and nothing more."""
_COMMON = re.compile(
    rf"(?!.*(?:\(\?[^:]|[*+?}}]\+))(?:{_LITERAL}|\[[\w .,:;]+(?:-[\w .,:;]+)*\]|\(\?:|[()|*+?]|\{{\d+(?:,\d*)?\}})+",
    re.A,
)
"""A pattern that Python and JavaScript read alike."""
_KEYWORDS = {
    *("type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems"),
    *("minLength", "maxLength", "enum", "const", "minimum", "maximum", "anyOf", "title", "description"),
}
"""Keywords of a schema that promptfoo's validator reads as ours does."""
_INHERITED = {"constructor", "toString", "valueOf", "hasOwnProperty", "isPrototypeOf", "__proto__", "toLocaleString"}
"""Names of properties that every object has in JavaScript."""


def own_assertion(check: ComputedCheck) -> dict[str, Any] | None:
    """An assertion of promptfoo's own that decides as a check does; None where none does on every output."""
    value, no = check.value or "", "not-" if check.is_fault else ""
    made: dict[str, Any] | None = None
    if check.kind == "json":
        made = {"type": f"{no}is-json"}
    elif check.kind == "schema" and _is_alike(schema := json.loads(value)):
        made = {"type": f"{no}is-json", "value": schema}
    elif check.kind == "matches" and _PLAIN.fullmatch(value):
        made = {"type": f"{no}contains", "value": re.sub(r"\\(.)", r"\1", value)}
    elif check.kind == "matches" and _COMMON.fullmatch(value):
        made = {"type": f"{no}regex", "value": value}
    elif check.kind in ("begins", "ends"):
        said = f"{_STRIPPED}.{'startsWith' if check.kind == 'begins' else 'endsWith'}({json.dumps(value.strip())})"
        made = _script(said, good=not no)
    elif check.kind == "length" and (band := LengthBand.of(value)).unit in _COUNTED:
        most = "" if band.most is None else f" && n <= {band.most}"
        made = _script(f"(n => n >= {band.least}{most})({_COUNTED[band.unit]})", good=not no)
    whole = json.dumps(made, ensure_ascii=False)
    is_template = any(mark in whole for mark in ("{{", "{%", "{#", "file://", "package:"))
    return None if is_template else made  # promptfoo would fill it in, or look for a file


def _script(said: str, *, good: bool) -> dict[str, Any]:
    return {"type": "javascript", "value": said if good else f"!({said})"}


def _is_alike(schema: Any) -> bool:
    """Whether promptfoo's validator reads a schema as ours does."""
    if not isinstance(schema, dict):
        return False
    properties = schema.get("properties", {})
    more = schema.get("additionalProperties", False)
    parts = [*properties.values(), *schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]
    names = {*properties, *schema.get("required", ())}
    return (
        schema.keys() <= _KEYWORDS
        and not names & _INHERITED
        and (isinstance(more, bool) or _is_alike(more))
        and all(map(_is_alike, parts))
    )

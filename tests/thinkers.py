"""Scripts of servers whose model thinks before it answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import log
from typing import Any


class Thinker:
    """A server's script: a model that thinks so many tokens before it says yes, as vLLM with a parser for it answers."""

    def __init__(
        self, tokens: int = 300, *, answer: str = "Yes", where: str = "beside", logprobs: bool = False
    ) -> None:
        self.tokens, self.said, self.where, self.logprobs = tokens, answer, where, logprobs

    def __call__(self, body: Mapping[str, Any]) -> tuple[int, Any]:
        most = body.get("max_completion_tokens") or body["max_tokens"]
        wants = body.get("response_format")
        said = json.dumps(_filled(wants["json_schema"]["schema"])) if wants else self.said
        answer = (
            re.findall(r"\w+|\W+", said) if wants else [said[start : start + 4] for start in range(0, len(said), 4)]
        )
        whole = ["So "] * (self.where == "template") + ["No "] * (self.tokens - (self.where == "template")) + answer
        cut, is_cut = whole[:most], len(whole) > most
        thought, text = "".join(cut[: self.tokens]), "".join(cut[self.tokens :])
        message = {
            "beside": {"content": text or None, "reasoning_content": thought},
            "tags": {"content": f"<think>{thought}" + (f"</think>\n\n{text}" if text else "")},
            "template": {"content": thought + (f"</think>\n\n{text}" if text else "")},
        }[self.where]
        usage: dict[str, Any] = {"prompt_tokens": 40, "completion_tokens": len(cut)}
        if self.where == "beside":
            usage["completion_tokens_details"] = {"reasoning_tokens": min(len(cut), self.tokens)}
        choice: dict[str, Any] = {"message": message, "finish_reason": "length" if is_cut else "stop"}
        if self.logprobs and body.get("logprobs"):
            texts = [
                *cut[: self.tokens],
                *(["</think>\n\n"] if text and self.where != "beside" else []),
                *cut[self.tokens :],
            ]
            choice["logprobs"] = {"content": [_token(each) for each in texts]}
        return 200, {"choices": [choice], "usage": usage}


def _token(text: str) -> dict[str, Any]:
    share = {text: 0.9, "No": 0.1} if text.lower() == "yes" else {text: 0.9, "other": 0.1}
    top = [{"token": each, "logprob": log(p)} for each, p in share.items()]
    return {"token": text, "logprob": log(0.9), "top_logprobs": top}


def _filled(schema: Mapping[str, Any]) -> Any:
    """A value that follows a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return {name: _filled(each) for name, each in schema["properties"].items()}
    if schema.get("type") == "array":
        return []
    if "maximum" in schema:  # how probable the first answer is
        return schema["maximum"]
    return {"boolean": True, "integer": 1, "number": 1.0}.get(str(schema.get("type")), "words")

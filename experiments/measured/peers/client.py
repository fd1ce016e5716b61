"""Calls of one tool's own client. Stands alone: an environment with that tool runs it, without askance.

``python client.py TOOL ADDRESS CALLS AT_ONCE`` asks an OpenAI-compatible server that often and prints one JSON object: seconds and
processor seconds of the calls, processor seconds of the import, peak memory, answers, and the size of everything installed.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import distributions, version
from typing import Any

TEXT = "Report 7: " + "the council voted on a plan to keep the old bridge open after engineers warned " * 12
Ask = Callable[[str], Awaitable[Any]]
os.environ |= {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "DEEPEVAL_PER_ATTEMPT_TIMEOUT_SECONDS_OVERRIDE": "600",
    "OPENAI_API_KEY": "none",
}


def aiohttp(url: str) -> Ask:
    """The plain client, one connection a call under way."""
    import aiohttp as package

    session: Any = None

    async def ask(text: str) -> str:
        nonlocal session
        if session is None:
            session = package.ClientSession(connector=package.TCPConnector(limit=0))
        body = {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 5}
        async with session.post(f"{url}/chat/completions", json=body) as reply:
            return str((await reply.json())["choices"][0]["message"]["content"])

    return ask


def openai(url: str) -> Ask:
    """OpenAI's own client."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="none")

    async def ask(text: str) -> Any:
        reply = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": text}], max_tokens=5
        )
        return reply.choices[0].message.content

    return ask


def litellm(url: str) -> Ask:
    """``acompletion``."""
    import litellm as package

    async def ask(text: str) -> Any:
        messages = [{"role": "user", "content": text}]
        reply = await package.acompletion("openai/m", messages, api_base=url, api_key="none", max_tokens=5)
        return reply.choices[0].message.content

    return ask


def dspy(url: str) -> Ask:
    """Its ``LM``, without its cache and without a program around it."""
    import dspy as package

    model = package.LM("openai/m", api_base=url, api_key="none", cache=False, max_tokens=5)

    async def ask(text: str) -> Any:
        return (await model.acall(messages=[{"role": "user", "content": text}]))[0]

    return ask


def deepeval(url: str) -> Ask:
    """The model that its metrics ask, without a metric around it."""
    from deepeval.models import LocalModel

    model = LocalModel(model="m", base_url=url, api_key="none", temperature=0)

    async def ask(text: str) -> Any:
        return (await model.a_generate(text))[0]

    return ask


def autorubric(url: str) -> Ask:
    """The client that its graders ask."""
    from autorubric import LLMConfig
    from autorubric.llm import LLMClient

    client = LLMClient(LLMConfig(model="openai/m", api_base=url, api_key="none", max_tokens=5))

    async def ask(text: str) -> Any:
        return await client.generate("You are a judge.", text)

    return ask


def autochecklist(url: str) -> Ask:
    """The client that its scorers ask."""
    from autochecklist import LLMHTTPClient

    client = LLMHTTPClient(provider="vllm", base_url=url)

    async def ask(text: str) -> Any:
        reply = await client.chat_completion_async("m", [{"role": "user", "content": text}], max_tokens=5)
        return reply["choices"][0]["message"]["content"]

    return ask


TOOLS = {each.__name__: each for each in (aiohttp, openai, litellm, dspy, deepeval, autorubric, autochecklist)}


async def answered(ask: Ask, calls: int, at_once: int) -> int:
    """How many of so many calls came to a yes or no."""
    waiting = iter(range(calls))

    async def work() -> int:
        good = 0
        for number in waiting:
            said = str(await ask(f"{TEXT} Is it so? ({number})"))
            good += said.strip().lower() in ("yes", "no")
        return good

    return sum(await asyncio.gather(*[work() for _ in range(at_once)]))


def installed_mb() -> float:
    """Size of the files of all packages of this environment, without what Python compiles and without pip, in MB of 10**6 bytes."""
    total = 0
    for package in distributions():
        if package.metadata["Name"] not in ("pip", "setuptools", "wheel"):
            for file in package.files or ():
                place = package.locate_file(file)
                if file.suffix != ".pyc" and os.path.isfile(str(place)):
                    total += os.path.getsize(str(place))
    return round(total / 1e6, 1)


async def main(tool: str, url: str, calls: int, at_once: int) -> dict[str, Any]:
    """The figures of one tool."""
    before = time.process_time()
    ask = TOOLS[tool](url)
    import_cpu_s = time.process_time() - before
    await answered(ask, at_once, at_once)  # connections are there, and what is imported at the first call
    wall, cpu = time.perf_counter(), time.process_time()
    good = await answered(ask, calls, at_once)
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "version": version(tool),
        "answered": good,
        "cpu_ms_a_call": round((time.process_time() - cpu) / calls * 1000, 3),
        "wall_s": round(time.perf_counter() - wall, 2),
        "import_cpu_s": round(import_cpu_s, 3),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6, 1),
        "installed_mb": installed_mb(),
    }


if __name__ == "__main__":
    tool, url, calls, at_once = sys.argv[1:]
    figures = asyncio.run(main(tool, url, int(calls), int(at_once)))
    sys.stdout.write(f"\n{json.dumps(figures)}\n")
    sys.stdout.flush()
    os._exit(0)  # sessions that a tool leaves open are not its price

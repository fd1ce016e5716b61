from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import log
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from askance.commands.judge_data import evaluate_command as evaluate
from askance.commands.weigh import command
from askance.prompts.checklist import load_checklist
from askance.prompts.errors import InputError
from askance.testing import StandInServer, completion

from ..said import naming, says

pytestmark = pytest.mark.usefixtures("sandbox")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [*map(str, arguments), "--quiet"], catch_exceptions=False)


def write(name: str, rows: list[dict[str, Any]]) -> Path:
    path = Path(name)
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def prefs(pairs: int = 30) -> Path:
    rows = [
        {"id": str(n), "input": f"Ask {n}.", "output_a": f"text <{n % 10}>", "output_b": f"text <{(n * 7 + 3) % 10}>"}
        for n in range(pairs)
    ]
    signs = [(n % 10) - ((n * 7 + 3) % 10) for n in range(pairs)]
    preferred = ["a" if sign > 0 else "b" if sign < 0 else "tie" for sign in signs]
    return write("prefs.jsonl", [row | {"preferred": each} for row, each in zip(rows, preferred, strict=True)])


def rated(outputs: int = 24) -> Path:
    rows = [
        {"id": str(n), "input": f"Ask {n}.", "output": f"text <{n % 10}>", "human": {"overall": n % 10}}
        for n in range(outputs)
    ]
    return write("rated.jsonl", rows)


def serve(body: Mapping[str, Any]) -> Any:
    """A judge that sees the number in an output; of two outputs it prefers the larger, and the first a little."""
    text = body["messages"][-1]["content"]
    shown = [int(each) for each in re.findall(r"text <(\d)>", text)]
    if len(shown) == 1 and "from 1 to 5" not in text:
        return (shown[0] + 0.5) / 10
    p = min(max(0.55 + (shown[0] - shown[-1]) / 20, 0.05), 0.95) if len(shown) == 2 else (shown[0] + 0.5) / 10
    tokens = {"1": p, "2": 1 - p} if len(shown) == 2 else {"5": p, "1": 1 - p}
    said = max(tokens, key=lambda token: tokens[token])
    top = [{"token": token, "logprob": log(mass)} for token, mass in tokens.items()]
    reply = completion(body, said)
    reply["choices"][0]["logprobs"] = {"content": [{"token": said, "logprob": log(tokens[said]), "top_logprobs": top}]}
    return 200, reply


def judged(url: str) -> list[str]:
    return ["--checklist", "global", "--model", "openai/m", "--api-base", url]


def test_pairs_are_judged_with_a_ready_checklist_and_weights_are_written() -> None:
    with StandInServer(serve) as server:
        found = run(prefs(), *judged(server.url), "-o", "w.json")
        assert len(server.bodies) == 2 * 30 * 8
    report = json.loads(Path("w.json").read_text(encoding="utf-8"))
    assert list(report["weights"]) == [question.id for question in load_checklist("global").questions]
    assert report["scores"] == "soft"
    assert "held-out pairs" in found.output


def test_both_orders_are_judged_and_the_bias_is_said() -> None:
    with StandInServer(serve) as server:
        found = run(prefs(12), *judged(server.url), "--pairwise", "--swap", "--json")
        assert len(server.bodies) == 2 * 12 * 8
    bias = json.loads(found.output)["position_bias"]
    assert bias["mean_p_first"] == pytest.approx(0.55, abs=0.02)
    assert bias["both_orders"] == 96


def test_weights_of_comparisons_are_refused_where_outputs_are_judged_alone() -> None:
    with StandInServer(serve) as server:
        found = run(prefs(12), *judged(server.url), "--pairwise", "-o", "w.json")
        assert says(" ".join(found.output.split()), "--weights", "judged alone", "refuses them")
        bought = len(server.bodies)
        with pytest.raises(InputError, match=naming("w.json", "comparisons")):
            CliRunner().invoke(
                evaluate, [str(rated()), *judged(server.url), "--weights", "w.json"], catch_exceptions=False
            )
        assert len(server.bodies) == bought


def test_expected_scores_are_bought() -> None:
    with StandInServer(serve) as server:
        found = run(prefs(12), *judged(server.url), "--scores", "expected", "--score-scale", 1, 5, "--json")
        assert "from 1 to 5" in server.bodies[0]["messages"][-1]["content"]
    assert json.loads(found.output)["held_out"]["accuracy"] > 0.8
    assert json.loads(found.output)["scores"] == "expected"


def test_settings_of_other_commands_in_a_projects_file_do_no_harm_and_resamples_are_taken() -> None:
    Path("askance.yaml").write_text("weights: none.json\nscale: [1, 5]\nresamples: 7\n", encoding="utf-8")
    with StandInServer(serve) as server:
        found = json.loads(
            run(prefs(12), *judged(server.url), "--method", "robust", "--config", "askance.yaml", "--json").output
        )
    assert found["resamples"] == 7


def test_ratings_alone_and_beside_pairs_are_learned_from() -> None:
    with StandInServer(serve) as server:
        alone = json.loads(run("--ratings", rated(), *judged(server.url), "--json").output)
        both = json.loads(run(prefs(), "--ratings", rated(), *judged(server.url), "--json").output)
    assert (alone["outputs"], alone["pairs"], alone["pair_share"]) == (24, 0, 0.0)
    assert (both["outputs"], both["pairs"], both["pair_share"]) == (24, 30, 0.5)


def test_a_configuration_file_may_hold_everything() -> None:
    prefs()
    Path("c").mkdir()
    Path("prefs.jsonl").rename("c/prefs.jsonl")
    with StandInServer(serve) as server:
        text = f"data: prefs.jsonl\nchecklist: global\nmodel: openai/m\napi_base: {server.url}\n"
        Path("c/askance.yaml").write_text(text + "pairwise: true\nswap: true\nmethod: best-single\n", encoding="utf-8")
        found = json.loads(run("--config", "c/askance.yaml", "--json").output)
    assert found["method"] == "best-single"
    assert found["position_bias"]["swapped"] is True


def test_a_checklist_beside_the_configuration_comes_before_a_ready_one() -> None:
    prefs()
    Path("c").mkdir()
    Path("c/global").write_text("questions:\n- id: mine\n  text: Is it?\n", encoding="utf-8")
    with StandInServer(serve) as server:
        text = f"checklist: global\nmodel: openai/m\napi_base: {server.url}\n"
        Path("c/askance.yaml").write_text(text, encoding="utf-8")
        found = json.loads(run("prefs.jsonl", "--config", "c/askance.yaml", "--json").output)
    assert list(found["weights"]) == ["mine"]


def test_a_missing_input_is_said() -> None:
    with pytest.raises(InputError, match=naming("PREFS", "--ratings")):
        run()


def test_learners_stand_side_by_side_and_sections_have_their_column() -> None:
    rows = [
        {"id": str(n), "preferred": "ab"[n % 2], "section": "code" if n % 3 else "chat"}
        | {"scores_a": {"q": 1 - n % 2, "r": 0.5}, "scores_b": {"q": n % 2, "r": 0.4}}
        for n in range(40)
    ]
    found = CliRunner().invoke(
        command, [str(write("given.jsonl", rows)), "--level", "section", "-o", "w.json"], catch_exceptions=False
    )
    lines = [line.split() for line in found.stdout.splitlines()]
    assert ["test", "weight", "chat", "code"] in lines
    learners = json.loads(Path("w.json").read_text(encoding="utf-8"))["learners"]
    assert {each["name"] for each in learners} <= {line[0] for line in lines if line}
    assert "calls" not in found.stdout, "nothing was bought"
    assert says(found.stderr, "other commands", "--weights w.json")


def test_what_was_bought_is_said() -> None:
    with StandInServer(serve) as server:
        found = run(prefs(12), *judged(server.url))
    assert f"{2 * 12 * 8} calls, " in found.output


@pytest.mark.parametrize("more", [(), ("--pairwise", "--swap"), ("--scores", "expected"), ("--ratings", "rated.jsonl")])
def test_a_dry_run_says_what_is_bought_then_and_buys_nothing(more: tuple[str, ...]) -> None:
    rated()
    with StandInServer(serve) as server:
        told = json.loads(run(prefs(12), *judged(server.url), *more, "--dry-run", "--json").output)
        assert server.bodies == []
        run(prefs(12), *judged(server.url), *more)
        shared = told["calls"] - len(server.bodies)
        assert shared > 0 if "--ratings" in more else shared == 0, "outputs that are both in a pair and rated"
        again = json.loads(run(prefs(12), *judged(server.url), *more, "--dry-run", "--json").output)
        assert (again["calls"], again["stored"]) == (0, told["calls"] + told["stored"])
    assert "0 API calls" in run(scored(), "--dry-run").output


def scored() -> Path:
    return write("scored.jsonl", [{"id": "1", "preferred": "a", "scores_a": {"q": 1}, "scores_b": {"q": 0}}])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--prompt", "nowhere.md"), "--prompt is for a judge"),
        (("--temperature", "1"), "temperature: the scores are there"),
        (("--mode", "batched"), "mode: the scores are there"),
    ],
)
def test_what_is_for_a_judge_is_refused_where_none_is_asked(more: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        run(scored(), *more)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--method", "least-squares"), "'least-squares' for pairs, as it learns from rated outputs"),
        (
            ("--method", "bayes", "--ratings", "scored.jsonl"),
            "'bayes' for ratings, as it learns from pairs",
        ),
    ],
)
def test_a_method_for_the_other_kind_of_data_is_told_so(arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        run(scored(), *arguments)

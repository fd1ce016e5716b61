"""``tune`` end to end: a generator's prompt is improved until nothing fails, as far as held-out outputs confirm it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import askance
from askance.memory.journal import read_events
from askance.memory.provenance import build_graph
from askance.models.base import Request
from askance.optimizer.events import DisagreementsFound
from askance.optimizer.modes.tune import prepare
from askance.prompts.errors import InputError
from askance.prompts.formats.binding import Binding
from askance.prompts.prompt import parse_prompt
from askance.run_estimate import estimate_run
from askance.testing import StandInServer
from tests.said import naming, says
from tests.worlds import example_ids

WELCOME, NAME = "Open with words of welcome.", "Close with the name of its writer."


def how(letters: Any, kind: str) -> dict[str, Any]:
    """Who says how good a letter is."""
    if kind == "checker":
        return {}
    judged = {"judge": letters.model("letters/judge")}
    return judged | ({"checklist": letters.checklist} if kind == "checklist" else {"own_questions": True})


KINDS = pytest.mark.parametrize("kind", ["checker", "checklist", "own"])


@KINDS
def test_the_prompt_improves_until_nothing_fails(letters: Any, tmp_path: Path, kind: str) -> None:
    done = letters.tune(tmp_path / "run", **how(letters, kind))
    assert done.finish_reason == "nothing_fails"
    assert WELCOME in done.prompt
    assert NAME in done.prompt
    for split in ("validation", "test"):
        before, after = (done.result[side][split]["mean"] for side in ("baseline", "best"))
        assert after > before + 0.2
        assert done.result["gain"][split]["value"] == pytest.approx(after - before)
    assert done.result["coverage"] == 1.0


@KINDS
def test_the_result_holds_what_is_promised(letters: Any, tmp_path: Path, kind: str) -> None:
    done = letters.tune(tmp_path / "run", **how(letters, kind))
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert done.result == result
    assert set(result) >= {"mode", "finish_reason", "iterations", "baseline", "best", "accepted_edits"}
    assert set(result) >= {"rejected_edits", "lessons", "calls", "cached_calls", "tokens", "cost_usd", "coverage"}
    for side in ("baseline", "best"):
        for split in ("validation", "test"):
            measured = result[side][split]
            assert (measured["spearman"], measured["kendall"], measured["pearson"]) == (None, None, None)
            assert says(measured["reason"], "mean score", "nothing to correlate")
            assert measured["n"] > 0
            assert measured["dimensions"]
    assert (result["mode"], result["yardstick"]) == ("tune", "mean score")
    assert (tmp_path / "run" / "prompt.md").read_text() == done.prompt


CHATS = {
    ".yaml": """\
# ours
messages:
  - role: system
    content: |
      Write what is asked for.

  - {role: user, content: "{{question}}"}   # the request
""",
    ".json": """\
[{"role": "system", "content": "Write what is asked for.\\n\\u2013"},\r
 {"content": "{{question}}", "role": "user"}]\r
""",
}


@pytest.mark.parametrize("suffix", CHATS)
def test_a_prompt_in_messages_is_improved_in_its_own_file(letters: Any, tmp_path: Path, suffix: str) -> None:
    letters.prompt = tmp_path / f"chat{suffix}"
    letters.prompt.write_bytes(CHATS[suffix].encode())
    done, run = letters.tune(tmp_path / "run"), tmp_path / "run"
    assert done.finish_reason == "nothing_fails"
    written = (run / f"prompt{suffix}").read_bytes().decode()
    first, *others = yaml.safe_load(written.replace("\r", ""))["messages" if suffix == ".yaml" else slice(None)]
    assert WELCOME in first["content"]
    assert NAME in first["content"]
    assert others == [{"role": "user", "content": "{{question}}"}]
    kept, begun = written.splitlines(keepends=True), CHATS[suffix].splitlines(keepends=True)
    assert [line for line in kept if line in begun] == (begun if suffix == ".yaml" else begun[1:])
    number, name = (done.result["best"][each] for each in ("prompt", "hash"))
    assert [each.read_bytes().decode() for each in (run / "prompts").glob(f"*{name}{suffix}")] == [written]
    assert number == done.prompt == parse_prompt(written, suffix, "p", Binding(asks=False)).text
    (run / "result.json").unlink()
    again = letters.tune(tmp_path / "run")
    assert again.result == done.result
    assert f"+- {WELCOME}\n" in (run / "changes.diff").read_text(), "as a person reads it, whatever the file's escapes"
    graph = build_graph(run)
    best = next(each for _, each in graph.nodes(data=True) if each.get("prompt_hash") == name)
    assert best["prompt"] == done.prompt


def test_judge_and_checker_can_look_together(letters: Any, tmp_path: Path) -> None:
    questions = [each.model_copy(update={"id": f"{each.id}-asked"}) for each in letters.checklist.questions]
    both = how(letters, "checklist") | {"checker": letters.checker(tmp_path)}
    both["checklist"] = letters.checklist.model_copy(update={"questions": tuple(questions)})
    done = letters.tune(tmp_path / "run", **both)
    assert set(done.result["best"]["test"]["dimensions"]) == {"letter", "checks"}
    assert done.finish_reason == "nothing_fails"


def both_look(letters: Any, folder: Path) -> dict[str, Any]:
    """A judge that only asks for a greeting, beside the checker, which wants a signature too."""
    asked = letters.checklist.questions[0].model_copy(update={"id": "greeting-asked"})
    checklist = letters.checklist.model_copy(update={"questions": (asked,)})
    return how(letters, "checklist") | {"checklist": checklist, "checker": letters.checker(folder)}


def test_the_judge_can_teach_and_the_checker_decide(letters: Any, tmp_path: Path) -> None:
    given = both_look(letters, tmp_path)
    done = letters.tune(tmp_path / "run", **given, lessons_from="judge", decide_by="checker")
    assert WELCOME in done.prompt and NAME not in done.prompt
    evidence = [key for lesson in done.result["lessons"] for key in lesson["evidence"]]
    assert evidence and all(key.endswith("/greeting-asked") for key in evidence)
    assert done.finish_reason == "nothing_fails"
    assert done.result["yardstick"] == "mean score by the checker"
    assert set(done.result["best"]["test"]["dimensions"]) == {"checks"}
    asked = [each.messages for each in given["judge"].requests if "Does the letter greet?" in each.messages[-1][1]]
    assert len(set().union(*map(example_ids, asked))) == 12, "of 40 examples those of development"


def test_the_checker_can_teach_and_the_judge_decide(letters: Any, tmp_path: Path) -> None:
    given = both_look(letters, tmp_path)
    done = letters.tune(tmp_path / "run", **given, lessons_from="checker", decide_by="judge")
    evidence = [key for lesson in done.result["lessons"] for key in lesson["evidence"]]
    assert evidence and not any(key.endswith("/greeting-asked") for key in evidence)
    assert WELCOME in done.prompt
    assert set(done.result["best"]["test"]["dimensions"]) == {"letter"}


@pytest.mark.parametrize("name", ["lessons_from", "decide_by"])
def test_one_side_cannot_be_chosen_where_there_is_no_other(letters: Any, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=naming(name, "--checker")):
        letters.tune(tmp_path / "run", **how(letters, "checklist"), **{name: "checker"})
    with pytest.raises(InputError, match=naming(name, "--judge")):
        letters.tune(tmp_path / "run", **{name: "checker"})


def test_a_judge_that_only_teaches_is_estimated_on_development_alone(letters: Any, tmp_path: Path) -> None:
    def calls(**options: Any) -> tuple[int, int]:
        given = both_look(letters, tmp_path) | letters.options | options
        judge, checklist, checker = given.pop("judge"), given.pop("checklist"), given.pop("checker")
        job = prepare(letters.rows, checklist, letters.model("w"), judge, letters.prompt, None, checker, given)
        found = estimate_run(job)
        return found.fixed.calls, found.iteration_calls

    (less, iteration), (all_judged, dearest) = calls(decide_by="checker"), calls()
    assert (less, all_judged) == (40 + 12, 40 + 40)
    assert iteration == dearest, "a development example costs what it did"


def test_a_check_with_the_name_of_a_question_is_refused(letters: Any, tmp_path: Path) -> None:
    both = how(letters, "checklist") | {"checker": letters.checker(tmp_path)}
    with pytest.raises(InputError, match=naming("check", "greeting", "question")):
        letters.tune(tmp_path / "run", **both)


def test_a_checker_can_be_a_function_of_the_caller(letters: Any, tmp_path: Path) -> None:
    asked: list[str] = []

    def greets(example: askance.Example) -> bool:
        asked.append(example.id)
        return "Hello" in (example.output or "")

    done = letters.tune(tmp_path / "run", checker=greets)
    assert set(asked) == set(letters.ids)
    assert 0 < done.result["baseline"]["test"]["mean"] < 1


def test_a_run_is_resumed_from_its_directory_alone(letters: Any, tmp_path: Path, sandbox: Path) -> None:
    checker = letters.checker(tmp_path)
    with StandInServer(letters.serve) as server:
        done = askance.tune(
            letters.rows,
            generator="openai/writer",
            prompt=letters.prompt,
            checker=checker,
            api_base=server.url,
            run=tmp_path / "run",
            **letters.options,
        )
        asked = len(server.bodies)
        (tmp_path / "run" / "result.json").unlink()
        assert askance.resume(tmp_path / "run").result == done.result
        assert len(server.bodies) == asked
    assert done.finish_reason == "nothing_fails"


@pytest.mark.parametrize("name", ["letter_checks.py:check", "letter_checks:check"])
def test_a_checker_is_found_where_the_run_began_from_wherever_it_is_resumed(
    letters: Any, tmp_path: Path, sandbox: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "letter_checks.py").write_text(letters.CHECKER, encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    with StandInServer(letters.serve) as server:
        given = letters.options | {"generator": "openai/writer", "prompt": letters.prompt, "api_base": server.url}
        done = askance.tune(letters.rows, checker=name, run=tmp_path / "run", **given)
        monkeypatch.chdir(tmp_path / "elsewhere")
        monkeypatch.setattr(sys, "path", [each for each in sys.path if each != str(tmp_path)])
        sys.modules.pop("letter_checks", None)
        assert askance.resume(tmp_path / "run").result == done.result


def test_an_instruction_that_spoils_the_letters_fails_its_trial(make_letters: Any, tmp_path: Path) -> None:
    letters = make_letters(harm=0.5)
    done = letters.tune(tmp_path / "run")
    harmful = [lesson for lesson in done.result["lessons"] if lesson["text"] == letters.CURES["brief"]]
    assert harmful
    assert harmful[0]["status"] == "rejected"
    assert harmful[0]["reason"].startswith("failed its trial: ")
    assert letters.CURES["brief"] not in done.prompt
    assert done.finish_reason == "nothing_fails"


def test_an_instruction_that_spoils_the_letters_is_rejected_by_the_gate_too(make_letters: Any, tmp_path: Path) -> None:
    letters = make_letters(harm=0.5)
    done = letters.tune(tmp_path / "run", trial=False)
    assert letters.CURES["brief"] not in done.prompt
    assert WELCOME in done.prompt
    assert done.result["rejected_edits"]


def test_what_no_prompt_can_bring_about_is_kept_out_of_it_and_reported(make_letters: Any, tmp_path: Path) -> None:
    letters = make_letters(count=True)
    done = letters.tune(tmp_path / "run")
    [counting] = [lesson for lesson in done.result["lessons"] if lesson["kind"] == "computational"]
    assert counting["text"] == letters.CURES["length"]
    assert counting["text"] not in done.prompt
    assert counting["kind_reason"]
    assert len(counting["evidence"]) > 1
    assert done.finish_reason == "no_disagreements"
    assert WELCOME in done.prompt


def test_a_letter_is_worth_nothing_unless_it_passes_everything(letters: Any, tmp_path: Path) -> None:
    strict, mild = (letters.tune(tmp_path / name, score_as=name) for name in ("all", "mean"))
    before = [done.result["baseline"]["validation"]["mean"] for done in (strict, mild)]
    assert before[0] < before[1]
    assert strict.result["best"]["validation"]["mean"] == 1.0


def test_no_output_is_written_twice_with_the_same_prompt(letters: Any, tmp_path: Path) -> None:
    seen: list[Request] = []
    letters.tune(tmp_path / "run", seen.append, **how(letters, "checklist"))
    assert len(seen) == len({request.key for request in seen})


def test_nothing_fails_from_the_start_changes_nothing(letters: Any, tmp_path: Path) -> None:
    letters.prompt = askance.Prompt(f"{letters.prompt.text}\n{WELCOME}\n{NAME}")
    done = letters.tune(tmp_path / "run")
    assert (done.finish_reason, done.result["iterations"]) == ("nothing_fails", 1)
    assert done.prompt == letters.prompt.text
    assert set(done.result["roles"]) == {"generator"}


def test_a_budget_ends_the_run_and_more_of_it_gives_what_a_run_without_a_limit_does(
    letters: Any, tmp_path: Path
) -> None:
    checker = letters.checker(tmp_path)
    whole = letters.tune(tmp_path / "whole", checker=checker)
    seen: list[Request] = []
    for cap in (60, 90):
        stopped = letters.tune(tmp_path / "run", seen.append, checker=checker, call_budget=cap)
        assert stopped.finish_reason == "max_calls"
        assert stopped.result["calls"] == len(seen) == cap
    done = letters.tune(tmp_path / "run", seen.append, checker=checker, call_budget=10_000)
    assert done.result == whole.result
    assert len(seen) == len({request.key for request in seen}) == whole.result["calls"]


@pytest.mark.parametrize("plain", [(), ("greeting",), ("greeting", "signature")])
def test_a_crash_changes_nothing(make_letters: Any, tmp_path: Path, plain: tuple[str, ...]) -> None:
    class Crash(BaseException):
        pass

    letters = make_letters(plain=plain)
    checker = letters.checker(tmp_path)
    whole = letters.tune(tmp_path / "whole", checker=checker)
    events = [row | {"time": ""} for row in read_events(tmp_path / "whole" / "journal.jsonl")]
    for crash_at in range(3, whole.result["calls"], 17):
        asked: list[bytes] = []

        def before(request: Request, asked: list[bytes] = asked, crash_at: int = crash_at) -> None:
            if len(asked) == crash_at:
                raise Crash
            asked.append(request.key)

        run = tmp_path / f"crash{crash_at}"
        with pytest.raises(Crash):
            letters.tune(run, before, checker=checker)
        done = letters.tune(run, lambda request, asked=asked: asked.append(request.key), checker=checker)
        assert done.result == whole.result
        assert len(asked) == len(set(asked)) == whole.result["calls"]
        assert [row | {"time": ""} for row in read_events(run / "journal.jsonl")] == events


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"checker": None}, "Nothing says how good an output is"),
        ({"judge": "openai/j"}, "The judge has nothing to ask"),
        ({"own_questions": True, "checker": "checks.py:check"}, "There are questions but no --judge"),
        ({"judge": "openai/j", "own_questions": True, "checklist": "both"}, "leave out --checklist"),
    ],
)
def test_a_run_that_nobody_could_judge_is_refused(
    letters: Any, tmp_path: Path, options: dict[str, Any], sentence: str
) -> None:
    if options.get("checklist"):
        options = options | {"checklist": letters.checklist}
    with pytest.raises(InputError, match=sentence):
        letters.tune(tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


@KINDS
@pytest.mark.parametrize("trial", [True, False])
def test_a_whole_run_buys_no_more_than_was_estimated(make_letters: Any, tmp_path: Path, kind: str, trial: bool) -> None:
    letters = make_letters(harm=0.3)
    given = how(letters, kind)
    checker = letters.checker(tmp_path) if kind == "checker" else None
    settings = letters.options | {"own_questions": kind == "own", "trial": trial}
    made = prepare(
        letters.rows,
        given.get("checklist"),
        letters.model("letters/writer"),
        given.get("judge"),
        letters.prompt,
        None,
        checker,
        settings,
    )
    estimate = estimate_run(made)
    done = letters.tune(tmp_path / "run", **given, trial=trial)
    most = estimate.fixed.calls + done.result["iterations"] * estimate.iteration_calls + estimate.last_calls
    assert done.result["calls"] <= most
    assert estimate.fixed.calls <= 2 * done.result["calls"], "an estimate that is always too high says nothing"


def test_what_failed_in_an_earlier_iteration_too_is_read_first(letters: Any, tmp_path: Path) -> None:
    marks = {"greeting": "Hello", "signature": "Yours"}

    def check(example: askance.Example) -> list[askance.Check]:
        text, first = example.output or "", letters.letter(letters.prompt.text, example.input)
        fails = example.id < "e010" and "Hello" in text and "Hello" not in first  # only once letters greet
        checks = [askance.Check(name, mark in text) for name, mark in marks.items() if name in example.input]
        return [askance.Check("fresh", not fails), *checks]

    found: list[DisagreementsFound] = []
    how = {"plain_first": False, "trial": False, "max_notes": 1, "max_iterations": 2}
    done = letters.tune(
        tmp_path / "run",
        checker=check,
        callbacks=[lambda event: found.append(event) if isinstance(event, DisagreementsFound) else None],
        **how,
    )
    assert WELCOME in done.prompt
    assert [[each.question for each in event.read] for event in found] == [["greeting"], ["signature"]]

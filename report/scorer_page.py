"""The report of ``train``: how good a scorer is beside its teacher and its base, and how it was trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..memory.decision import Choice
from ..prompts.formatting import Figure, count, money, number, percent
from ..training.scorer_folder import TrainResult, rationales_said
from .charts import Point, Scale, line_chart
from .page import FirstScreen, Section, Tile, render_result_page, settings_section, view_sections

MOST_STEPS = 60
"""Most places of the curve of training steps; each is the mean of one or more steps."""
TRUST = "Whether P(yes) can be taken at its word"


def render_scorer(data: Mapping[str, Any], name: str) -> str:
    """Render the page of a ``train.json``. ``data`` is the file's content, ``name`` the file's name."""
    result = TrainResult(data)
    sections = view_sections(
        result.view(),
        *("test", "mixture"),
        test={
            "note": "Examples that nothing was learned or chosen from. The base is what it was trained from, before."
        },
        mixture={"title": "What it learned from", "note": _of_the_mixture(data)},
    )
    return render_result_page(
        _screen(result, name),
        [
            *sections[:1],
            _calibration(data["calibration"]),
            _curve(data["curve"]),
            *_rationales(data),
            *sections[1:],
            Section("price", "What it takes", _price(data)),
            settings_section({"base": data["base"], **data["options"]}),
            Section("use", "How to use it", note="askance evaluate DATA --checklist CHECKLIST --model FOLDER"),
        ],
    )


def _screen(result: TrainResult, name: str) -> FirstScreen:
    data = result.data
    test, speed = data["test"], data["speed"]
    people, yardstick = test.get("people"), "people" if "people" in test else "its teacher"
    rows = people or {"scorer": test.get("teacher"), "base": test.get("base")}
    scorer, base = (Figure.of(rows[each], key="spearman") if rows.get(each) else None for each in ("scorer", "base"))
    choice, headline = _headline(result, scorer, yardstick)
    tiles = []
    if scorer is not None:
        before = "untrained, then trained" if base is not None and base.value is not None else ""
        tiles.append(Tile(f"Spearman with {yardstick}", scorer, scorer.reason or before, base if before else None))
    if people and "teacher" in people:
        gain = Figure.of(test["beyond"]["teacher"], "+.3f") if "beyond" in test else None
        teacher = Figure.of(people["teacher"], key="spearman")
        sub = f"scorer less teacher: {gain.number()}, {' to '.join(gain.span() or ())}" if gain and gain.span() else ""
        tiles.append(Tile("Its teacher's, with people", teacher, teacher.reason or sub))
    fit = data["calibration"]
    if fit["n"]:
        sub = f"{fit['before']['calibration_error']:.3f} before calibration; mean over the tenths below"
        tiles.append(Tile("P(yes) is off by", number(fit["after"]["calibration_error"], 3), sub))
    alone = f"{speed['cpu_ms_alone']:.1f} ms asked alone; {speed['mean_tokens']:.0f} tokens on average"
    tiles.append(Tile("A verdict takes", f"{speed['cpu_ms']:.1f} ms", alone))
    lines = list(result.view().lines)
    notes = [each for each in lines if each.startswith("Note: ")]
    lead = " ".join([each for each in lines if each not in notes][:2])
    cautions = [each.removeprefix("Note: ")[:1].upper() + each.removeprefix("Note: ")[1:] for each in notes]
    return FirstScreen("train", name, choice, headline, lead, tiles, cautions)


def _headline(result: TrainResult, ours: Figure | None, against: str) -> tuple[Choice, str]:
    """Return the tone and the headline. Agreement is claimed only if the whole interval is above zero."""
    if not result.data["curve"]["best_epoch"]:
        return "keep", "Training gained nothing on validation"
    if ours is None:
        return "undecided", "Trained; test has neither people's scores nor a teacher's"
    if ours.side != 1:
        return "undecided", f"The scorer is not shown to agree with {against}"
    if result.kept_share is not None:
        return "adopt", f"The scorer keeps {percent(result.kept_share)} of its teacher's agreement with people"
    return "adopt", f"The scorer agrees with {against}"


def _calibration(fit: Mapping[str, Any]) -> Section:
    """Compare the scorer's P(yes) with the wanted P(yes), as a picture and as a table."""
    if not fit["n"] or "bins" not in fit["after"]:
        return Section("calibration", TRUST, note=fit.get("reason", ""))
    bins = {name: {each["bin"]: each for each in fit[name]["bins"]} for name in ("before", "after")}
    drawn = [
        Point(
            place,
            row["wanted"],
            f"{name} calibration: said {row['said']:.2f}, was {row['wanted']:.2f} ({row['n']})",
            kind=kind,
        )
        for name, kind in (("before", "rejected"), ("after", "after"))
        for place, row in bins[name].items()
    ]
    picture = line_chart(
        drawn,
        {place: f"{place / 10:.1f}\N{EN DASH}{(place + 1) / 10:.1f}" for place in range(10)},
        "Wanted P(yes) by what the scorer said, in tenths; the table below has the figures",
        Scale(0.0, 1.0, 0.25),
        lines={
            "step": [(0, 0.05), (9, 0.95)],
            **{
                kind: [(each.place, each.value) for each in drawn if each.kind == kind]
                for kind in ("rejected", "after")
            },
        },
    )
    rows = [
        {"calibration": name, "P(yes) from": place / 10, "to": (place + 1) / 10, "verdicts": row["n"]}
        | {"said": row["said"], "wanted": row["wanted"], "apart": row["said"] - row["wanted"]}
        for name in ("after", "before")
        for place, row in bins[name].items()
    ]
    note = (
        f"{fit['n']:,} verdicts of test by what the scorer said: a scorer that can be taken at its word lies on the "
        f"slanting line. On validation a slope of {number(fit['slope'])} and a shift of {number(fit['shift'])} of its "
        "log-odds were fitted."
    )
    legend = [("key after", "after calibration"), ("key", "before it")]
    return Section("calibration", TRUST, rows, fit.get("reason") or note, pictures=[("", picture)], legend=legend)


def _curve(curve: Mapping[str, Any]) -> Section:
    """Draw the weighted sum of the losses by training step, and on validation after each epoch. The table has the
    single losses."""
    ends = [0] + [
        sum(each["epoch"] <= epoch for each in curve["training"]) for epoch in range(1, len(curve["validation"]))
    ]
    steps_per_point = max(1, -(-ends[-1] // MOST_STEPS))
    points = [
        Point(end // steps_per_point, row["loss"], f"validation after epoch {row['epoch']}: {row['loss']:.3f}")
        for end, row in zip(ends, curve["validation"], strict=True)
    ]
    steps = [each["loss"] for each in curve["training"]]
    means = [
        (place, sum(some) / len(some))
        for place, begin in enumerate(range(0, len(steps), steps_per_point))
        for some in [steps[begin : begin + steps_per_point]]
    ]
    picture = line_chart(
        points,
        {each.place: str(epoch) for epoch, each in enumerate(points)},
        "Losses in training and on validation by epoch; the table below has the figures",
        Scale.over([each.value for each in points] + [value for _, value in means]),
        lines={"rejected": means, "after": [(each.place, each.value) for each in points]},
        marked=points[curve["best_epoch"]].place,
    )
    return Section(
        "losses",
        "How it learned",
        _losses(curve),
        "The weighted sum of the losses; epoch 0 is before training. Kept were the weights of epoch "
        f"{curve['best_epoch']}{'; it ended early' if curve['stopped_early'] else ''}.",
        pictures=[("", picture)],
        legend=[("key after", "validation, after each epoch"), ("key", "training, step by step")],
    )


def _losses(curve: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the single losses by epoch, on validation and in training (the mean over the epoch's steps)."""
    by_epoch: dict[int, list[Mapping[str, float]]] = {}
    for row in curve["training"]:
        by_epoch.setdefault(int(row["epoch"]), []).append(row)
    rows = []
    for found in curve["validation"]:
        steps = by_epoch.get(int(found["epoch"]), [])
        means_of = {
            name: sum(values) / len(values)
            for name in found
            if name != "epoch" and (values := [row[name] for row in steps if name in row])
        }
        for part, losses in (("training", means_of), ("validation", found)):
            shown = {name.replace("_", " "): losses[name] for name in found if name != "epoch" and name in losses}
            if shown:
                rows.append({"epoch": int(found["epoch"]), "on": part, **shown})
    return rows


def _rationales(data: Mapping[str, Any]) -> Iterator[Section]:
    """Yield the section on rationales, with the losses on validation during DPO."""
    if not (note := " ".join(rationales_said(data))):
        return
    dpo = data.get("rationales", {}).get("dpo") or {"validation": []}
    rows = [
        {"epoch": int(row["epoch"])} | {name.replace("_", " "): row[name] for name in row if name != "epoch"}
        for row in dpo["validation"]
    ]
    after = " Below: losses on validation; epoch 0 is before DPO." if rows else ""
    yield Section("rationales", "Rationales", rows, note + after)


def _of_the_mixture(data: Mapping[str, Any]) -> str:
    mixture, cut = data["mixture"], data["cut"]
    units = ", ".join(f"{mixture['units'][part]:,} {part}" for part in ("training", "validation", "test"))
    sentences = [f"Examples and pairs: {units}, of {count(mixture['documents'], 'document')}, none divided."]
    if mixture["duplicates"]:
        sentences.append(f"{count(mixture['duplicates'], 'item')} asked for the same as another one and went.")
    if mixture["without_answer"]:
        sentences.append(f"{count(mixture['without_answer'], 'verdict')} had no answer.")
    sentences += [each for each in TrainResult(data).view().lines if " pairs of outputs that " in each]
    if data.get("trust", {}).get("kept") == "people":
        sentences.append("The weights that were kept learned from none of the verdicts.")
    longest = data["options"]["longest"]
    sentences.append(
        f"{percent(cut['share'], 1)} of the texts are cut at {longest} tokens (the longest has {cut['longest']:,})."
    )
    return " ".join(sentences)


def _price(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    cost, speed = data["price"], data["speed"]
    rows: dict[str, Any] = {
        "Training, seconds of the processor": f"{cost['training_cpu_seconds']:,.0f}",
        "Training, on a machine at the price that was named": money(cost["training_usd"]),
        "A verdict in batches, milliseconds of the processor": number(speed["cpu_ms"], 1),
        "A verdict asked alone, milliseconds of the processor": number(speed["cpu_ms_alone"], 1),
    }
    for name, what in (("break_even_money", "money"), ("break_even_time", "processor time")):
        found = cost[name]
        rows[f"Verdicts from which it has saved the {what} of its training"] = (
            f"{found['verdicts']:,}" if found["verdicts"] is not None else f"not known: {found['reason']}"
        )
    return [{"what": what, "takes": takes} for what, takes in rows.items()]

"""All data together: gathered, deduplicated, divided by document, and checked; what there is of each is written down."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..evaluation.scoring import human_targets
from ..models.trained.network import after_rationale, scored_text
from ..optimizer.splits import own_split, split, unused_split
from ..prompts.errors import AskanceError, InputError
from ..prompts.examples import answered_questions, human_dimensions
from ..prompts.formatting import count
from .items import (
    SAME,
    commented_items,
    deduplicated,
    preference_items,
    rating_items,
    rating_pairs,
    reasoned,
    verdict_item,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..models.trained.network import Network
    from ..optimizer.earlier import Earlier
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.preferences import Preference
    from ..prompts.verdicts import VerdictColumns
    from .items import TextOf, TrainingItem
    from .options import TrainOptions

PARTS = ("training", "validation", "test")
FEWEST = 8
"""Items for training without which nothing is trained."""
FEW = 20
"""Ratings of a dimension, or verdicts on a question, below which it is said that they are few."""


@dataclass(frozen=True)
class Mixture:
    """What is learned from, in three parts; a document is in one of them."""

    training: tuple[TrainingItem, ...]
    validation: tuple[TrainingItem, ...]
    test: tuple[TrainingItem, ...]
    part_of: Mapping[str, str]
    """The part of each example and pair, by its id."""
    groups: int
    """Documents, or texts that stand alone."""
    kept_from_run: int
    """Examples that are in the part that they had in a run."""
    duplicates: int
    """Items that asked for the same as another one and went."""
    without_answer: int
    """Verdicts that failed or abstained: they teach nothing."""
    remarks: tuple[str, ...]
    """What is odd about the data."""

    def part(self, name: str) -> tuple[TrainingItem, ...]:
        """The items of ``training``, ``validation`` or ``test``."""
        return {"training": self.training, "validation": self.validation, "test": self.test}[name]

    def to_dict(self) -> dict[str, Any]:
        """As in ``train.json``: how many items of each source and about what, in each part."""
        counts = Counter((each.source, each.kind, each.about, part) for part in PARTS for each in self.part(part))
        rows = [
            {"source": source, "kind": kind, "about": about}
            | {part: counts[source, kind, about, part] for part in PARTS}
            for source, kind, about in dict.fromkeys(key[:3] for key in counts)
        ]
        return {
            "rows": rows,
            "units": {part: sum(each == part for each in self.part_of.values()) for part in PARTS},
            "documents": self.groups,
            "kept_from_run": self.kept_from_run,
            "duplicates": self.duplicates,
            "without_answer": self.without_answer,
            "remarks": list(self.remarks),
        }


def gather(
    examples: Sequence[Example],
    checklist: Checklist,
    *,
    verdicts: VerdictColumns | None,
    preferences: Sequence[Preference],
    earlier: Earlier | None,
    options: TrainOptions,
    text_of: TextOf = scored_text,
    further: Iterable[TrainingItem] = (),
) -> Mixture:
    """Make items of everything and divide them.

    Args:
        examples: With or without people's scores.
        checklist: The questions.
        verdicts: Of one judge on the examples, the teacher's.
        preferences: Pairs; about all questions together.
        earlier: A run whose parts are kept, so that what it tested on is never trained on.
        options: Shares, seed, scale.
        text_of: What the network reads of a question.
        further: Items made elsewhere, e.g. synthetic ones, whose ``unit`` is the id of an example or a pair: they are in
            its part.

    Raises:
        InputError: There is nothing to learn, too little, or it cannot be divided.
    """
    group_of, part_of, kept = divided(examples, preferences, earlier, options)
    wanted: Mapping[str, Mapping[str, float | None]] = {}
    if human_dimensions(examples, checklist):
        wanted = human_targets(examples, checklist, options.human_scale).wanted
    asked = {each.id: each for each in checklist.questions}
    by_id = {each.id: each for each in examples}
    ratings = rating_items(examples, checklist, wanted, text_of=text_of)
    items = [*ratings, *_answers(examples, checklist, text_of)]
    if options.learns_given:
        items += [*commented_items(items, examples, checklist)]
    lost = 0
    for each in verdicts or ():
        p_yes = each.score(soft=True)
        if p_yes is None:
            lost += 1
        else:
            made = verdict_item(asked[each.question], by_id[each.example], p_yes, text_of=text_of)
            items += [made, *([reasoned(made, each.explanation)] if options.learns_given and each.explanation else [])]
    if options.rating_pairs and options.loss_weights[2]:
        items += rating_pairs(ratings, group_of)
    items += [*preference_items(preferences, checklist, text_of=text_of), *further]
    items, duplicates = deduplicated(each for each in items if _has_loss(each, options))
    if not items:
        raise InputError(
            "There is nothing to learn from: no rating, no verdict and no preference that a loss with a weight above 0 is "
            "about. Give examples human scores, or --verdicts, or --preferences, or change --loss-weights."
        )
    if options.given_rationales and not any(each.kind == "rationale" for each in items):
        raise InputError(
            "--given-rationales: no verdict has an explanation, and no comment is about a score of a single question. Have the judge "
            "explain (askance evaluate --explain always -o V), comment on the examples, or leave it out."
        )
    parts = {part: tuple(each for each in items if part_of[each.unit] == part) for part in PARTS}
    _check_apart(parts)
    return Mixture(
        parts["training"],
        parts["validation"],
        parts["test"],
        part_of,
        len(set(group_of.values())),
        kept,
        duplicates,
        lost,
        tuple(_remarks(examples, parts["training"])),
    )


def divided(
    examples: Sequence[Example], preferences: Sequence[Preference], earlier: Earlier | None, options: TrainOptions
) -> tuple[dict[str, str], dict[str, str], int]:
    """The document and the part of each example and pair, by its id, and how many examples keep the part that they had in a run.

    Raises:
        InputError: They cannot be divided.
    """
    group_of = groups_of(examples, preferences)
    return group_of, *_parts(examples, group_of, earlier, options)


def groups_of(examples: Sequence[Example], preferences: Sequence[Preference]) -> dict[str, str]:
    """What is never divided, by the id of each example and pair: those of one document, group or input belong together.

    Raises:
        InputError: An example and a pair have one id.
    """
    leader: dict[tuple[str, ...], tuple[str, ...]] = {}

    def find(key: tuple[str, ...]) -> tuple[str, ...]:
        leader.setdefault(key, key)
        while leader[key] != key:
            leader[key] = leader[leader[key]]
            key = leader[key]
        return key

    def keys(unit: str, named: Iterable[object], texts: tuple[str, ...]) -> None:
        own = [
            ("text", *(" ".join(each.split()) for each in texts)),
            *(("name", str(each)) for each in named if each is not None and each != ""),
        ]
        for key in own:
            leader[find(key)] = find(("unit", unit))

    for each in examples:
        names = [each.metadata.get(name) for name in ("document", "group")]
        keys(each.id, names, (each.input, each.context or ""))
    for pair in preferences:
        if ("unit", pair.id) in leader:
            raise InputError(f"'{pair.id}' is the id of an example and of a pair; give the pairs ids of their own.")
        names = [pair.group, pair.document]
        keys(pair.id, names, (pair.input, ""))
    units = [*(each.id for each in examples), *(each.id for each in preferences)]
    return {unit: "/".join(find(("unit", unit))) for unit in units}


def check_lengths(mixture: Mixture, network: Network, rationale_tokens: int | None = None) -> tuple[float, int]:
    """The share of the texts that are longer than the network reads, and the tokens of the longest.

    With ``rationale_tokens`` they are as long as after a rationale of so many tokens, else some of them as after those that were given.
    """
    all_items = [each for part in PARTS for each in mixture.part(part)]
    items = [each for each in all_items if rationale_tokens is None or each.kind != "rationale"]
    texts = list(dict.fromkeys(text for each in items for text in each.texts))
    lengths = network.tokens(texts)
    if rationale_tokens is not None:
        without, asked = network.tokens([texts[0], after_rationale(texts[0], "")])
        lengths = [each + asked - without + rationale_tokens for each in lengths]
    return sum(each > network.longest for each in lengths) / len(lengths), max(lengths)


def _has_loss(item: TrainingItem, options: TrainOptions) -> bool:
    direct = options.loss_weights[0] + options.loss_weights[1]
    return bool(options.loss_weights[2] if item.kind == "preference" else direct)


def _answers(examples: Sequence[Example], checklist: Checklist, text_of: TextOf) -> list[TrainingItem]:
    """People's answers to single questions."""
    questions = [checklist.question(name) for name in answered_questions(examples, checklist)]
    found = []
    for example in examples:
        for question in questions:
            answer = example.human_answer(question.id)
            if answer is not None:
                if not 0 <= answer <= 1:
                    raise InputError(
                        f"Example '{example.id}': people's answer to the question '{question.id}' is {answer:g}; an answer "
                        "is yes or no, or a number from 0 to 1."
                    )
                found.append(verdict_item(question, example, answer, "ratings", text_of=text_of))
    return found


def _parts(
    examples: Sequence[Example], group_of: Mapping[str, str], earlier: Earlier | None, options: TrainOptions
) -> tuple[dict[str, str], int]:
    """The part of each unit, and how many keep that of a run."""
    names = dict(zip(("development", "validation", "test"), PARTS, strict=True))
    own = own_split(examples)
    brought = {} if own is None else {each: part for part in names for each in getattr(own, part)}
    known = {} if earlier is None else dict(earlier.parts(examples))
    for each, part in brought.items():
        if known.get(each) == "test" and part != "test":
            raise InputError(
                f"The example '{each}' is a {part} example by its metadata.split and was tested on in the run of --judge; "
                "what was tested on must not be learned from. Correct it, or leave metadata.split out."
            )
    of_group: dict[str, str] = {}
    for part in ("test", "validation", "development"):  # a group of which anything was tested on is tested on
        for each, before in {**known, **brought}.items():
            if before == part:
                of_group.setdefault(group_of[each], part)
    kept = {unit: of_group[group] for unit, group in group_of.items() if group in of_group}
    if set(kept) == set(group_of):
        return {unit: names[part] for unit, part in kept.items()}, len(known)
    units = list(group_of)
    if len(set(group_of.values())) < 3:
        raise InputError(
            f"The data are {count(len(set(group_of.values())), 'document')}, which cannot be divided into training, validation "
            "and test. "
            "Examples with the same input and context are one; add others."
        )
    found = split(units, shares=options.split, seed=options.seed, groups=[group_of[each] for each in units], kept=kept)
    return {each: names[part] for part in names for each in getattr(found, part)}, len(known)


def _check_apart(parts: Mapping[str, Sequence[TrainingItem]]) -> None:
    """See that no output that is tested on, for the same input, is trained on, under whatever id.

    Raises:
        InputError: There are too few items. AskanceError: An output is in two parts.
    """
    for part in PARTS:
        least = FEWEST if part == "training" else 1
        there = sum(each.kind != "rationale" for each in parts[part])
        if there < least:
            raise InputError(
                f"The {part} part has {there} items (verdicts, ratings, preferences); at least {least} are "
                "needed. Add data, or change --split."
            )
    seen = {part: {text.read for each in parts[part] for text in each.texts} for part in PARTS}
    for one, other in (("test", "training"), ("test", "validation"), ("validation", "training")):
        if both := seen[one] & seen[other]:
            output = min(both)[0]
            raise AskanceError(f"{len(both)} outputs are in {one} and in {other}, the first one is {output[:60]!r}.")


def _remarks(examples: Sequence[Example], training: Sequence[TrainingItem]) -> Iterable[str]:
    """What is odd about the examples and about what is to be learned of them.

    Raises:
        InputError: All of it is the same.
    """
    if (unused := unused_split(examples)) is not None:
        yield unused
    targets: dict[tuple[str, str], list[float]] = {}
    for each in training:
        if each.kind not in ("preference", "rationale"):
            targets.setdefault((each.kind, each.about), []).append(each.target)
    has_pairs = any(each.kind == "preference" and each.target != 0.5 for each in training)
    if not has_pairs and all(max(each) - min(each) <= SAME for each in targets.values()):
        raise InputError(
            "Every label for training is the same within its dimension or question, so there is nothing to tell apart. Add "
            "examples with other labels."
        )
    for (kind, about), values in targets.items():
        what = f"verdicts on '{about}'" if kind == "verdict" else f"ratings of '{about}'"
        if max(values) - min(values) <= SAME:
            yield f"all {len(values)} {what} for training are {values[0]:.2f}: from them it can only learn to say that"
        elif len(values) < FEW:
            yield f"there are only {len(values)} {what} for training"

"""Training items of every source (LMUnit §3.1): gathered, deduplicated and divided by document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from ..agents.measures.nearest import in_view
from ..agents.requests import EachAsking
from ..evaluation.scoring import human_targets
from ..models.trained.scored_text import after_rationale, scored_text
from ..optimizer.splits import own_split, split, unused_split
from ..prompts.errors import AskanceError, InputError
from ..prompts.examples import Example, answered_questions, human_dimensions
from ..prompts.formatting import count
from ..prompts.human_feedback import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..models.trained.network import Network
    from ..models.trained.scored_text import ScoredText
    from ..optimizer.earlier import Earlier
    from ..prompts.checklist import Checklist, Question
    from ..prompts.preferences import Preference
    from ..prompts.prompt import Prompt
    from ..prompts.verdicts import VerdictColumns
    from .options import TrainOptions

ItemKind = Literal["verdict", "rating", "preference", "rationale"]
Source = Literal["verdicts", "ratings", "preferences", "synthetic"]
SAME = 1e-9  # scores in [0, 1] count as equal up to this difference: means of equal ratings differ in the last digits
PARTS = ("training", "validation", "test")
FEWEST = 8  # items that training needs at least
FEW = 20  # with fewer ratings of a dimension, or verdicts on a question, a remark says so


TextOf = Callable[["Question", Example], "ScoredText"]
"""Function that returns the text a network reads for a question about an example's output."""


def asked_with(prompt: Prompt | None) -> TextOf:
    """Return a function for texts: a judge's request for yes or no with this prompt; without a prompt, plain texts."""
    if prompt is None:
        return lambda question, example: scored_text(question, in_view(example, question.sees))

    def text_of(question: Question, example: Example) -> ScoredText:
        asking = EachAsking(prompt, (question,), explained=False, logprobs=True, temperature=0.0, seed=None)
        ask = next(asking.asks("", example, 0, 0))
        return scored_text(question, ask.seen or example, tuple(ask.messages))

    return text_of


@dataclass(frozen=True, slots=True)
class Probe:
    """A question about an output, with its weight and polarity."""

    text: ScoredText
    weight: float = 1.0
    is_fault: bool = False  # whether yes speaks against the output; then 1 - ŷ counts


@dataclass(frozen=True, slots=True)
class TrainingItem:
    """One item to learn. The score of a side is the weighted mean of its probes' ŷ, in [0, 1]."""

    kind: ItemKind
    source: Source
    unit: str  # id of its example or pair, which decides its part
    about: str  # the question's id for a verdict, else the dimension
    left: tuple[Probe, ...]
    target: float  # wanted score in [0, 1]; for a preference 1 if left is preferred, 0 if right is, 0.5 for a tie
    right: tuple[Probe, ...] = ()  # the other output of a preference
    weight: float = 1.0  # how much it counts in its losses
    rationale: str | None = None  # reason in words, only for the kind ``rationale``; the answer follows it

    @property
    def texts(self) -> list[ScoredText]:
        """All texts that a network has to read for this item."""
        return [each.text for each in (*self.left, *self.right)]


def verdict_item(
    question: Question, example: Example, p_yes: float, source: Source = "verdicts", *, text_of: TextOf = scored_text
) -> TrainingItem:
    """Return an item that teaches this P(yes), in [0, 1], as the answer to a question about an output."""
    return TrainingItem("verdict", source, example.id, question.id, (Probe(text_of(question, example)),), p_yes)


def reasoned(item: TrainingItem, why: str) -> TrainingItem:
    """Add a rationale to an item about one question. The rationale is learned too, and the score follows it."""
    (probe,) = item.left
    left = (replace(probe, text=after_rationale(probe.text, why)),)
    return replace(item, kind="rationale", left=left, rationale=why)


def commented_items(
    items: Iterable[TrainingItem], examples: Sequence[Example], checklist: Checklist
) -> Iterator[TrainingItem]:
    """Yield a rationale item for each comment that explains a person's rating of one question. A comment belongs to the
    score that it names. A comment on the whole output belongs to the overall score, or to the only question."""
    by_id = {each.id: each for each in examples}
    one = len(checklist.questions) == 1
    for item in items:
        if item.source == "ratings" and item.kind != "preference" and len(item.left) == 1:
            names = {item.about, *((None, WHOLE) if one or item.about == WHOLE else ())}
            yield from (reasoned(item, each.text) for each in by_id[item.unit].comment if each.about in names)


def probes(
    checklist: Checklist, example: Example, dimension: str | None = None, *, text_of: TextOf = scored_text
) -> tuple[Probe, ...]:
    """Return the questions of a dimension, with the example's weights; all questions for an unknown dimension."""
    weights = checklist.weights(checklist.section_of(example.metadata))
    whole = dimension not in checklist.dimensions
    return tuple(
        Probe(text_of(each, example), weights[each.id], each.is_fault)
        for each in checklist.questions
        if weights[each.id] > 0 and (whole or each.dimension == dimension)
    )


def rating_items(
    examples: Sequence[Example],
    checklist: Checklist,
    wanted: Mapping[str, Mapping[str, float | None]],
    *,
    text_of: TextOf = scored_text,
) -> list[TrainingItem]:
    """Return items from people's scores of dimensions; ``wanted`` has the scores in [0, 1] by example and dimension."""
    return [
        TrainingItem("rating", "ratings", example.id, dimension, asked, score)
        for example in examples
        for dimension, score in wanted.get(example.id, {}).items()
        if score is not None and (asked := probes(checklist, example, dimension, text_of=text_of))
    ]


def rating_pairs(items: Iterable[TrainingItem], group_of: Mapping[str, str]) -> list[TrainingItem]:
    """Return preferences between neighbouring outputs of a document if their ratings differ. Each output is in two at
    most."""
    found, last = [], dict[tuple[str, str], TrainingItem]()
    for item in items:
        place = (group_of[item.unit], item.about)
        before = last.get(place)
        if before is not None and abs(before.target - item.target) > SAME:
            target = float(before.target > item.target)
            found.append(TrainingItem("preference", "ratings", item.unit, item.about, before.left, target, item.left))
        last[place] = item
    return found


def preference_items(
    pairs: Sequence[Preference], checklist: Checklist, *, text_of: TextOf = scored_text
) -> list[TrainingItem]:
    """Return an item for each preference, about the score on all questions."""
    found = []
    for pair in pairs:
        given = {name: value for name in ("section", "dataset") if (value := getattr(pair, name)) is not None}
        sides = [
            probes(checklist, Example(id=pair.id, input=pair.input, output=output, metadata=given), text_of=text_of)
            for output in (pair.output_a, pair.output_b)
        ]
        target = {"a": 1.0, "b": 0.0, "tie": 0.5}[pair.preferred]
        found.append(TrainingItem("preference", "preferences", pair.id, "overall", sides[0], target, sides[1]))
    return found


def deduplicated(items: Iterable[TrainingItem]) -> tuple[list[TrainingItem], int]:
    """Merge items with the same kind, source and texts; the target is the mean. Also return the number merged away."""
    kept: dict[tuple[object, ...], list[TrainingItem]] = {}
    for item in items:
        kept.setdefault((item.kind, item.source, item.left, item.right), []).append(item)
    found = [
        same[0] if len(same) == 1 else replace(same[0], target=sum(each.target for each in same) / len(same))
        for same in kept.values()
    ]
    return found, sum(len(same) - 1 for same in kept.values())


@dataclass(frozen=True)
class Mixture:
    """All items in three parts; each document is in one part only."""

    training: tuple[TrainingItem, ...]
    validation: tuple[TrainingItem, ...]
    test: tuple[TrainingItem, ...]
    part_of: Mapping[str, str]  # the part of each example and pair, by its id
    groups: int  # documents, or texts that stand alone
    kept_from_run: int  # examples that stay in the part they had in an earlier run
    duplicates: int  # items that were merged with another one
    without_answer: int  # verdicts that failed or abstained, which teach nothing
    remarks: tuple[str, ...]  # sentences on what is odd about the data

    def part(self, name: str) -> tuple[TrainingItem, ...]:
        """The items of ``training``, ``validation`` or ``test``."""
        found: tuple[TrainingItem, ...] = getattr(self, name)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the counts for ``train.json``: items by source, kind and topic in each part."""
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
    """Make items of all data and divide them into parts by document.

    Examples keep the part they had in an ``earlier`` run, so that its test examples are never trained on. ``text_of``
    returns the network's text for a question. ``further`` items were made elsewhere; each goes to the part of the
    example or pair that its ``unit`` names. Raises InputError for too few data, or data that cannot be divided."""
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
            "There is nothing to learn from: no rating, no verdict and no preference that a loss with a weight above 0 "
            "is about. Give examples human scores, or --verdicts, or --preferences, or change --loss-weights."
        )
    if options.given_rationales and not any(each.kind == "rationale" for each in items):
        raise InputError(
            "--given-rationales: no verdict has an explanation, and no comment is about a score of a single question. "
            "Have the judge explain (askance evaluate --explain always -o V), comment on the examples, or leave it out."
        )
    parts = {part: tuple(each for each in items if part_of[each.unit] == part) for part in PARTS}
    _check_apart(parts)
    documents, remarks = len(set(group_of.values())), tuple(_remarks(examples, parts["training"]))
    training, validation, test = (parts[part] for part in PARTS)
    return Mixture(training, validation, test, part_of, documents, kept, duplicates, lost, remarks)


def divided(
    examples: Sequence[Example], preferences: Sequence[Preference], earlier: Earlier | None, options: TrainOptions
) -> tuple[dict[str, str], dict[str, str], int]:
    """Return the document and the part of each example and pair, and how many examples keep an earlier run's part.
    Raises InputError for data that cannot be divided."""
    group_of = groups_of(examples, preferences)
    return group_of, *_parts(examples, group_of, earlier, options)


def groups_of(examples: Sequence[Example], preferences: Sequence[Preference]) -> dict[str, str]:
    """Map each example and pair to its document. Units with the same document, group, or input and context form one.
    Raises InputError if an example and a pair have the same id."""
    leader: dict[tuple[str, ...], tuple[str, ...]] = {}

    def find(key: tuple[str, ...]) -> tuple[str, ...]:  # union-find: keys of one document have the same leader
        leader.setdefault(key, key)
        while leader[key] != key:
            leader[key] = leader[leader[key]]
            key = leader[key]
        return key

    def keys(unit: str, named: Iterable[object], texts: tuple[str, ...]) -> None:
        unit_keys = [
            ("text", *(" ".join(each.split()) for each in texts)),
            *(("name", str(each)) for each in named if each is not None and each != ""),
        ]
        for key in unit_keys:
            leader[find(key)] = find(("unit", unit))

    for each in examples:
        names = [each.metadata.get(name) for name in ("document", "group")]
        keys(each.id, names, (each.input, each.context or ""))
    for pair in preferences:
        if ("unit", pair.id) in leader:
            raise InputError(f"'{pair.id}' is the id of an example and of a pair; give the pairs ids of their own.")
        keys(pair.id, [pair.group, pair.document], (pair.input, ""))
    units = [*(each.id for each in examples), *(each.id for each in preferences)]
    return {unit: "/".join(find(("unit", unit))) for unit in units}


def check_lengths(mixture: Mixture, network: Network, rationale_tokens: int | None = None) -> tuple[float, int]:
    """Return the share of texts longer than the network reads, and the length of the longest in tokens. Each text is
    counted with a rationale of ``rationale_tokens`` tokens; without this number, with its own rationale, if any."""
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
    """Return items from people's answers to single questions. Raises InputError for an answer outside [0, 1]."""
    questions = [checklist.question(name) for name in answered_questions(examples, checklist)]
    found = []
    for example in examples:
        for question in questions:
            answer = example.human_answer(question.id)
            if answer is not None:
                if not 0 <= answer <= 1:
                    raise InputError(
                        f"Example '{example.id}': people's answer to the question '{question.id}' is {answer:g}; an "
                        "answer is yes or no, or a number from 0 to 1."
                    )
                found.append(verdict_item(question, example, answer, "ratings", text_of=text_of))
    return found


def _parts(
    examples: Sequence[Example], group_of: Mapping[str, str], earlier: Earlier | None, options: TrainOptions
) -> tuple[dict[str, str], int]:
    """Return the part of each unit, and how many examples keep an earlier run's part."""
    names = dict(zip(("development", "validation", "test"), PARTS, strict=True))
    own = own_split(examples)
    brought = {} if own is None else {unit_id: part for part in names for unit_id in getattr(own, part)}
    known = {} if earlier is None else dict(earlier.parts(examples))
    for unit_id, part in brought.items():
        if known.get(unit_id) == "test" and part != "test":
            raise InputError(
                f"The example '{unit_id}' is a {part} example by its metadata.split and was tested on in the run of "
                "--judge; what was tested on must not be learned from. Correct it, or leave metadata.split out."
            )
    group_parts: dict[str, str] = {}
    for part in ("test", "validation", "development"):  # in this order: one test example puts its whole group into test
        for unit_id, before in {**known, **brought}.items():
            if before == part:
                group_parts.setdefault(group_of[unit_id], part)
    kept = {unit: group_parts[group] for unit, group in group_of.items() if group in group_parts}
    if set(kept) == set(group_of):
        return {unit: names[part] for unit, part in kept.items()}, len(known)
    units = list(group_of)
    if len(set(group_of.values())) < 3:
        raise InputError(
            f"The data are {count(len(set(group_of.values())), 'document')}, which cannot be divided into training, "
            "validation and test. Examples with the same input and context are one; add others."
        )
    found = split(
        units, shares=options.split, seed=options.seed, groups=[group_of[unit_id] for unit_id in units], kept=kept
    )
    return {unit_id: names[part] for part in names for unit_id in getattr(found, part)}, len(known)


def _check_apart(parts: Mapping[str, Sequence[TrainingItem]]) -> None:
    """Check that no output of one input is in two parts. Raises AskanceError, and InputError for too few items."""
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
    """Yield a sentence on each oddity of examples and labels. Raises InputError if all labels are the same."""
    if (unused := unused_split(examples)) is not None:
        yield unused
    targets: dict[tuple[str, str], list[float]] = {}
    for each in training:
        if each.kind not in ("preference", "rationale"):
            targets.setdefault((each.kind, each.about), []).append(each.target)
    has_pairs = any(each.kind == "preference" and each.target != 0.5 for each in training)
    if not has_pairs and all(max(each) - min(each) <= SAME for each in targets.values()):
        raise InputError(
            "Every label for training is the same within its dimension or question, so there is nothing to tell apart. "
            "Add examples with other labels."
        )
    for (kind, about), values in targets.items():
        labels = f"verdicts on '{about}'" if kind == "verdict" else f"ratings of '{about}'"
        if max(values) - min(values) <= SAME:
            yield (
                f"all {len(values)} {labels} for training are {values[0]:.2f}: from them it can only learn to say that"
            )
        elif len(values) < FEW:
            yield f"there are only {len(values)} {labels} for training"

"""Measures of content, computed by code: what the new outputs say beside the old ones. They decide nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...agents.measures.similarity import can_embed
from ...agents.measures.values import Value, values_of
from ...evaluation.measures.fitting import measure_named, usual_measures
from ...memory.certificate_file import ContentRecord, TargetRecord
from ...prompts.checklist import ComputedMeasure
from ...prompts.criteria.measures import MEASURES, parse_measure
from ...prompts.examples import Example, documents
from ...prompts.formatting import Figure
from ...stats.resampling import Resampling, mean_with_interval
from .certificate import share_record

CONTENT = ("similarity", "mean_supported", "covered", "names_new", "numbers_new")
"""Nearness to a text, support of the sentences by it, share of it that is said, and what it lacks."""


def content_records(old: Sequence[Example], new: Sequence[Example]) -> tuple[ContentRecord, ...]:
    """Measures of old and new outputs against the texts that all examples have, with the paired difference.

    Without the extra ``memory`` there are no similarities. Examples without one of the two outputs are left out.
    """
    written = {each.id: each for each in new if each.output}
    before = [each for each in old if each.output and each.id in written]
    after = [written[each.id] for each in before]
    if not before:
        return ()
    names = usual_measures(before, "relations", embeds=can_embed())
    measures = [measure_named(name) for name in names if parse_measure(name)[0] in CONTENT]
    olds, news = values_of(measures, before), values_of(measures, after)
    sampling, ids = Resampling(documents(before)), [each.id for each in before]
    return tuple(
        _record(each, [olds[each.id][name] for name in ids], [news[each.id][name] for name in ids], sampling)
        for each in measures
    )


def _record(
    measure: ComputedMeasure, before: Sequence[Value], after: Sequence[Value], sampling: Resampling
) -> ContentRecord:
    old, new = ([None if isinstance(value, str) else value for value in side] for side in (before, after))
    changes = [None if a is None or b is None else b - a for a, b in zip(old, new, strict=True)]
    found = [mean_with_interval(each, sampling, "no output has it") for each in (old, new, changes)]
    told, against = MEASURES[measure.name].told, measure.against
    return ContentRecord(
        measure=measure.measure,
        text=told.format(against).removesuffix(":"),
        higher_is_better=measure.good == "yes",
        old=share_record(found[0]),
        after=share_record(found[1]),
        difference=share_record(found[2]),
    )


def content_lines(name: str, target: TargetRecord) -> Iterator[str]:
    """A sentence where measures of the new outputs' content are worse beyond chance."""
    worse = [each for each in target.content if each.is_worse]
    if worse:
        said = "; ".join(
            f"{each.text} {Figure(each.old.value, form='.3g')} before, {Figure(each.after.value, form='.3g')} now"
            for each in worse
        )
        yield f"{name}, content as code measures it (decides nothing; read some outputs): {said}."

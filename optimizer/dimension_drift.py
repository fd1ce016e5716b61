"""Whether a free-form judge looks at the same things when asked again: EM_dim (EIG paper §4.4)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from .correlation import Statistic
from .resampling import complete
from .with_interval import bootstrapped, mean_kernel


def kept_share(first: Iterable[str], second: Iterable[str]) -> float | None:
    """EM_dim of one item: the share of the first judging's dimensions that the second names too, k / |G|.

    Names are compared without regard to case and surrounding blanks; a model that tells which names mean the same
    gives them the same name before. None where the first judging names none.
    """
    before = {_plain(name) for name in first}
    again = {_plain(name) for name in second}
    return len(before & again) / len(before) if before else None


def dimension_match(
    pairs: Iterable[tuple[Iterable[str], Iterable[str]]],
    *,
    groups: Sequence[Hashable] | None = None,
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 42,
) -> Statistic:
    """EM_dim over many items: the mean share of dimensions that are kept; 1 for a fixed questionnaire.

    Args:
        pairs: For each item the dimensions named by the first and by the second judging.
        groups: Document of each item; whole documents are then resampled.
        resamples: Number of bootstrap resamples.
        level: Coverage of the interval, between 0 and 1.
        seed: Same seed, same interval.

    Raises:
        InputError: A setting is out of range.
    """
    (shares,), keep = complete([kept_share(first, second) for first, second in pairs])
    if len(shares) == 0:
        return Statistic(None, 0, None, None, "no first judging names a dimension")
    return bootstrapped(float(shares.mean()), mean_kernel(shares), keep, groups, resamples, level, seed)


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()

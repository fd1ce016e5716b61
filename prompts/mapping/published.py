"""Forms in which tools and data sets publish rows: how each is recognised, and which path is which of our fields."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class PublishedForm:
    """One published form."""

    name: str
    """For ``--from``."""
    title: str
    marks: tuple[str, ...]
    """Paths, or beginnings of paths, that all must be there; ``a|b`` is either."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Our field to a path; of ``a|b`` the first that is there; ``vars.?`` is the likeliest below ``vars``."""
    within: str = ""
    """The place of the rows inside the rows of the file, where they stand deeper."""
    people: tuple[str, ...] = ()
    """Beginnings of the paths under which people's scores and comments stand."""
    programs: tuple[str, ...] = ()
    """Beginnings of the paths under which a program's scores stand."""
    notes: tuple[str, ...] = ()

    def fits(self, columns: Collection[str]) -> bool:
        """Whether rows with these columns have this form."""
        return all(any(_is_there(each, columns) for each in mark.split("|")) for mark in self.marks)


def _is_there(mark: str, columns: Collection[str]) -> bool:
    return any(path == mark or path.startswith(f"{mark}.") for path in columns)


FORMS: tuple[PublishedForm, ...] = ()

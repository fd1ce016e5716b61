"""Candidates that are asked together, where the judge answers several questions in one call (``--mode batched``).

An answer may depend on what else is asked in its call. So a candidate belongs to one group for the whole run, and a group is
asked as a whole: all folds then know the same answers, and none of them is bought twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .candidates import Candidate

GROUP = 8
"""Candidates of one call. A small model is worse at it than at one question a call (``docs/results.md``: a mean area under the curve of .70
and .75)."""


@dataclass
class Groups:
    """Who is asked with whom, from the first time that somebody is asked."""

    _members: list[dict[str, Candidate]] = field(default_factory=list, init=False)
    _place: dict[str, int] = field(default_factory=dict, init=False)

    def holding(self, named: Mapping[str, Candidate], waiting: Mapping[str, Candidate]) -> list[dict[str, Candidate]]:
        """The groups that the candidates are in, each as a whole; those that are in none yet make new ones.

        They are mixed by a hash of their words: those that were made of one comment ask nearly the same, and would
        answer each other.

        Args:
            named: Candidates by their ids, all shown the same of an example: so is everybody then who is asked with them.
            waiting: Others that may be asked later: they fill the last group and make groups of their own.
        """
        for some in (named, waiting):
            new = some.keys() - self._place.keys()
            for name in sorted(new, key=lambda name: sha256(some[name].text.encode()).digest()):
                if not self._members or len(self._members[-1]) == GROUP:
                    self._members.append({})
                self._members[-1][name] = some[name]
                self._place[name] = len(self._members) - 1
        sees = next(iter(named.values())).sees
        places = sorted({self._place[name] for name in named})
        return [{name: replace(each, sees=sees) for name, each in self._members[place].items()} for place in places]

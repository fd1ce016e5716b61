"""What became of each question's wordings: the records, in ``result.json`` and in the journal alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pydantic_core import to_jsonable_python

from ...prompts.checklist import GoodAnswer, Question, Sees, marked


class Wording(NamedTuple):
    """How a question is asked: in which words, and with what in view."""

    text: str
    sees: Sees = "all"


@dataclass(frozen=True)
class WordingTried:
    """One wording of a question, as far as it was judged on the development examples."""

    text: str
    good: GoodAnswer
    """Which answer would speak for the output; of a written wording the data say it."""
    correlation: float | None = None
    """Spearman's, of its P(good) with the source's, on ``n`` examples; None where undefined."""
    n: int = 0
    dropped: str | None = None
    """Why it was judged on no more examples; None where it came to the end."""
    sees: Sees = "all"

    @classmethod
    def of(cls, question: Question) -> WordingTried:
        """A question as it stands, not yet tried."""
        return cls(question.text, question.good, sees=question.sees)

    @property
    def wording(self) -> Wording:
        """How it is asked."""
        return Wording(self.text, self.sees)


@dataclass(frozen=True)
class QuestionWordings:
    """A question with the wordings that were tried, and which one the judge is asked."""

    question: str
    """Its id, which stays."""
    before: WordingTried
    """The source's own wording, put to the target."""
    reason: str
    """Why it is replaced, or why it stays."""
    after: WordingTried | None = None
    """What replaces it in the checklist that the acceptance test decides on; None where nothing does."""
    gain: float | None = None
    """Of the best wording's correlation over that of the source's own, both on all development examples."""
    bias: float | None = None
    """What the best of so many wordings may seem to gain by chance, were none better."""
    tried: tuple[WordingTried, ...] = ()
    accepted: bool = False
    """Whether the acceptance test took it."""

    @property
    def turned(self) -> bool:
        """Whether the good answer is another one than before."""
        return self.after is not None and self.after.good != self.before.good

    def of(self, question: Question) -> Question:
        """The question as the target is asked it: another text, and perhaps another good answer."""
        if self.after is None:
            return question
        return question.model_copy(update={**self.after.wording._asdict(), "good": self.after.good})

    def decided(self, *, accepted: bool) -> QuestionWordings:
        """With what the acceptance test said."""
        return replace(self, accepted=accepted and self.after is not None)

    @property
    def sentence(self) -> str:
        """What became of the question on development, for people."""
        if self.after is None:
            return f"question {self.question} stays as it is: {self.reason}"
        asked = marked(f"'{self.after.text}'", self.after.good, self.after.sees)
        return f"question {self.question} is to be asked as {asked}: {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """As in ``result.json``."""
        row: dict[str, Any] = to_jsonable_python(self)
        return row

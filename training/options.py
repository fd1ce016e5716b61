"""Settings of ``train``, and whether they go with a base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeVar

from pydantic import Field, model_validator

from ..evaluation.options import GatewayOptions
from ..models.event_loops import run_sync
from ..models.session import session
from ..prompts.errors import InputError, import_optional
from ..prompts.formats.binding import Variables
from ..prompts.human_feedback import LabelScale, LabelWords
from ..settings import Heading, Idle, where

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..memory.verdict_store import SharedStore
    from ..models.gateway import Gateway
    from ..models.progress import Watcher
    from ..models.resolve import Models
    from ..models.trained.bases import Base

Result = TypeVar("Result")
_BUYING = tuple(each for each in GatewayOptions.model_fields if each != "seed")
_OF_RATIONALES = ("rationale_tokens", "rationales_from", "answer_with", "nll_weight")
NOT_IN_FINGERPRINT = frozenset(
    {
        *("teacher_price", "teacher_seconds", "machine_price", "contrasts", "contrast_grades", "gguf", "onnx"),
        *("given_rationales", *_BUYING),
    }
)
"""Settings that do not change the weights, except through the data that they produce."""
RATIONALE_SETTINGS = frozenset({"rationales", *_OF_RATIONALES})  # these change the weights only if rationales are drawn
FEWEST_SAMPLES = 2  # rationales of an item that DPO needs: one right, one wrong


class TrainOptions(GatewayOptions):
    """Settings of ``train``: data, training and prices."""

    epochs: int = Field(5, ge=1, description="How often all training data are gone through at most.")
    batch_size: Annotated[int, Heading.TRAINED] = Field(
        32, ge=1, description="Texts (a question with an output) in a step, or a few more."
    )
    learning_rate: Annotated[float | None, Heading.TRAINED] = Field(
        None,
        gt=0,
        description="Highest learning rate, which a tenth of the steps leads up to; default: 5e-5, with LoRA 2e-4.",
    )
    lora_rank: Annotated[int, Heading.TRAINED.at(2)] = Field(
        16, ge=1, description="Rank of the LoRA matrices that a causal base is trained by."
    )
    loss_weights: tuple[float, float, float] = Field(
        (1.0, 1.0, 1.0), description="Weights of cross-entropy, squared error and preference loss; 0 leaves one out."
    )
    levels: Annotated[int, Heading.TRAINED] = Field(
        2, ge=2, le=11, description="Score levels that are told apart; 2: no and yes; 7: from 0 to 6, as LMUnit's."
    )
    longest: int = Field(
        512,
        ge=16,
        description="Tokens that the scorer reads of a text at most, of an output with its input where questions are "
        "read beside them; the rest is cut off.",
    )
    patience: Annotated[int, Heading.ENDS.at(-1)] = Field(
        2, ge=1, description="Epochs without a lower loss on validation after which it ends."
    )
    rating_pairs: Annotated[bool, Heading.TRAINED] = Field(
        True, description="Make preference pairs of ratings too: two outputs for one document, one rated higher."
    )
    trust_verdicts: Annotated[bool, Heading.TRAINED.at(1)] = Field(
        False,
        description="Learn from --verdicts in any case; else they are left out where people's scores of validation "
        "say that people alone teach more.",
    )
    contrasts: Annotated[int, Heading.TRAINED] = Field(
        0, ge=0, description="Questions with an input each for which --writer writes outputs that pass and that fail."
    )
    contrast_grades: Annotated[int, Heading.TRAINED] = Field(
        3, ge=2, le=5, description="Outputs for each, from a plain no to a plain yes."
    )
    rationales: Annotated[int, Heading.RATIONALES] = Field(
        0,
        ge=0,
        description="Rationales drawn for each question on an output, right ones preferred to wrong ones; 0: none.",
    )
    given_rationales: Annotated[bool, Heading.RATIONALES.at(-1)] = Field(
        False,
        description="Learn the explanations of --verdicts and people's comments too, as rationales (a causal base); "
        "in any case where rationales are drawn.",
    )
    rationale_tokens: Annotated[int, Heading.RATIONALES] = Field(80, ge=4, description="Tokens of a rationale at most.")
    rationales_from: Annotated[Literal["scorer", "writer", "refined", "harmonized"], Heading.RATIONALES] = Field(
        "scorer",
        description="Who writes the rationales that are drawn: the scorer once it is trained, or --writer; or the scorer, "
        "and --writer revises them: by the right answer (refined), or two by which output is better (harmonized).",
    )
    answer_with: Annotated[Literal["rationale", "word"], Heading.RATIONALES] = Field(
        "rationale", description="Whether a scorer with rationales writes one before each answer, or answers at once."
    )
    nll_weight: Annotated[float, Heading.RATIONALES] = Field(
        1.0,
        ge=0,
        description="Weight beside DPO of -log P of the preferred rationale, a token; 0: DPO alone, as in LMUnit's paper.",
    )
    precision: Annotated[Literal["float32", "bfloat16"], Heading.TRAINED.at(1)] = Field(
        "float32",
        description="Of training and of reading; bfloat16 is faster on GPUs and on processors with such instructions.",
    )
    gguf: Annotated[bool, Heading.TRAINED.at(2)] = Field(
        False, description="Write model.gguf too: a causal base that is a GGUF file, with what it learned."
    )
    onnx: Annotated[bool, Heading.TRAINED.at(2)] = Field(
        False, description="Write model.onnx too, which is read without torch: an encoder of BERT's kind, as minilm is."
    )
    split: Annotated[tuple[float, float, float], Heading.DATA.at(8)] = Field(
        (0.7, 0.15, 0.15), description="Shares of training, validation and test; a document is never divided."
    )
    human_scale: Annotated[tuple[float, float] | None, Heading.DATA.at(3)] = Field(
        None,
        description="Worst and best human score, 5 1 where lower is better; default: the lowest and highest observed.",
    )
    teacher_price: Annotated[float | None, Heading.SAVED] = Field(
        None, ge=0, description="US dollars that a verdict of the teacher costs."
    )
    teacher_seconds: Annotated[float | None, Heading.SAVED] = Field(
        None, gt=0, description="Seconds that a verdict of the teacher takes."
    )
    machine_price: Annotated[float, Heading.SAVED] = Field(
        0.0, ge=0, description="US dollars that an hour of this machine costs."
    )
    resamples: Annotated[int, Heading.SCORES.at(9)] = Field(
        2000, ge=100, description="Bootstrap resamples of the intervals."
    )
    field: Annotated[dict[str, str | tuple[str, ...]], Heading.DATA.at(1)] = Field(
        default_factory=dict, description="Rename a column: our_name=column; of human scores several, one a rater."
    )
    variable: Annotated[Variables, Heading.DATA.at(8)] = Field(
        default_factory=dict,
        description="What a variable of a prompt stands for: variable=FIELD, e.g. question=input, or variable=COLUMN; may "
        "be given several times.",
    )
    labels: Annotated[LabelWords, Heading.DATA.at(2)] = Field(
        default_factory=dict, description="Further words that people's labels are in, e.g. good=fine,bad=poor."
    )
    label_scale: Annotated[LabelScale, Heading.DATA.at(4)] = Field(
        None, description="Words that people's labels are in, from worst to best, which count as 1, 2 and so on."
    )
    limit: Annotated[int | None, Heading.DATA.at(7)] = Field(None, ge=1, description="Use only the first N examples.")
    seed: Annotated[int, Heading.MODELS] = Field(
        42, ge=0, description="Seed of the split, the head, the order and dropout."
    )

    @property
    def learns_given(self) -> bool:
        """Whether the scorer learns rationales given by judges and people."""
        return self.given_rationales or self.rationales > 0

    def buy(self, work: Callable[[Models, Gateway], Awaitable[Result]], watcher: Watcher) -> Result:
        """Run ``work``, in which models write or judge, and return its result; earlier answers come from the store.
        Raises InputError for a wrong name, BudgetExceededError at a cap, and AskanceError if the endpoint is down or
        did not answer all calls."""

        async def bought(store: SharedStore) -> Result:
            async with session(self, store, watcher.say) as (models, gateway):
                watcher.watch(gateway.budget)
                return await work(models, gateway)

        with self.open_store() as store:
            return run_sync(bought(store))

    idle: ClassVar[tuple[Idle, ...]] = (
        Idle(("contrast_grades",), where(contrasts=0), "nothing is written to tell apart (contrasts)"),
        Idle(
            _BUYING,
            where(contrasts=0, rationales_from="scorer"),
            "no model is asked where nothing is written (contrasts, rationales_from)",
        ),
        Idle(_OF_RATIONALES, where(rationales=0), "no rationale is drawn (rationales)"),
    )
    """Settings without use beside others."""

    @model_validator(mode="after")
    def _fit_together(self) -> TrainOptions:
        if min(self.loss_weights) < 0 or not any(self.loss_weights):
            raise ValueError("loss_weights: three numbers of 0 or more are needed, and one above 0")
        if self.contrasts and not self.loss_weights[2]:
            raise ValueError("contrasts: they are pairs, and the preference loss has no weight (loss_weights)")
        if self.given_rationales and not self.loss_weights[0]:
            raise ValueError(
                "given_rationales: their words count with cross-entropy, which has no weight (loss_weights)"
            )
        if 0 < self.rationales < FEWEST_SAMPLES:
            raise ValueError("rationales: of one alone none can be preferred; 2 or more are needed, or 0")
        if self.rationales and 2 * self.rationale_tokens > self.longest:
            raise ValueError(
                f"longest: a rationale of {self.rationale_tokens} tokens (rationale_tokens) may take half of it at most"
            )
        if self.onnx and self.precision != "float32":
            raise ValueError(f"onnx: the file is read in float32, and a scorer with precision {self.precision} in that")
        if self.human_scale and self.human_scale[0] == self.human_scale[1]:
            raise ValueError("human_scale: the worst and the best score must differ")
        return self


def check_goes_with(base: Base, prompt: object, settings: TrainOptions) -> None:
    """Check that the settings fit a base. Raises InputError, and MissingExtraError without the library for a file."""
    if not base.is_causal and prompt is not None:
        raise InputError(f"--prompt: the encoder {base.name} reads no prompt. Leave it out, or name a causal base.")
    if not base.is_causal and settings.learns_given:
        option = f"--rationales {settings.rationales}" if settings.rationales else "--given-rationales"
        raise InputError(
            f"{option}: the encoder {base.name} writes nothing. Name a causal base, e.g. smollm2-135m-instruct, or "
            "leave it out."
        )
    if settings.gguf and settings.levels != 2:
        raise InputError(
            f"--gguf: the file is asked for yes or no, as every judge is, and with --levels {settings.levels} the scorer "
            "says a number. Leave one of the two out."
        )
    if settings.gguf and base.file is None:
        raise InputError(
            f"--gguf: the base {base.name} is no GGUF file, which the new one is made from. Name an embedded model, "
            "e.g. smollm2-135m-instruct, or the path of such a file."
        )
    if settings.onnx:
        if not base.is_bert:
            raise InputError(
                f"--onnx: the base {base.name} is no encoder of BERT's kind, which alone can be written so. Name one, "
                "e.g. minilm, or leave --onnx out."
            )
        import_optional("onnx", "train", "onnx")

"""A causal language model as a scorer: it is asked like a judge, and trained by LoRA (Hu et al. 2021)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...prompts.errors import InputError, import_optional
from ..replies.answer_words import digit
from ..replies.yes_no import spelling
from .bases import by_length, device, find_base, load, quiet, torch_library
from .scored_text import Rationale, after_rationale, asked_for_level, asked_why
from .scorer_file import WEIGHTS_FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from ..base import Message
    from .bases import Base
    from .scored_text import ScoredText
    from .scorer_file import Precision, ScorerFile

AT_ONCE = 4  # texts that go through the network together; a training step's memory grows with their number
WRITTEN_AT_ONCE = 16  # rationales that are written together
HEAD = 4  # of the tokens kept of a text that is too long, one in four is from its beginning, the others from its end
SCALING = 2.0  # LoRA's alpha over its rank


class CausalNetwork:
    """A language model with LoRA matrices beside all its projections. Two levels are no and yes; more levels are the
    numbers from 0 (LMUnit §3.3, eq. 1). All tokens that spell a level count for it, as for a judge
    (:mod:`askance.models.replies.yes_no`). Other tokens count for no level, so the levels sum to less than 1."""

    kind: Final = "causal"

    def __init__(self, model: Any, tokenizer: Any, base: Base, longest: int, levels: int, precision: Precision) -> None:
        """Take peft's ``model`` and transformers' ``tokenizer``, both for the ``base``; ``longest`` is in tokens.
        Raises InputError if the tokenizer has no single token for a level."""
        self._torch = torch_library()
        self._model, self._tokenizer, self.longest = model, tokenizer, longest
        self.device, self.precision = model.device.type, precision
        self.base_weights = base.weights()
        self._ends = _turn_ends(tokenizer)
        self._levels = levels
        spelt = _level_tokens(tokenizer, levels, base.name)
        self._level_tokens = [self._torch.tensor(tokens, device=self.device) for tokens in spelt]
        self.training(False)

    @classmethod
    def start(
        cls, base: Base, *, levels: int, longest: int, seed: int, rank: int, precision: Precision
    ) -> CausalNetwork:
        """See :func:`~.network.start_network`."""
        peft = _peft()
        model, tokenizer = _load(base, precision)
        most = getattr(model.config, "max_position_embeddings", longest)
        if longest > most:
            raise InputError(f"--longest {longest}: the base {base.name} reads {most} tokens at most.")
        model.name_or_path = base.name  # peft keeps it; a path would be this machine's
        torch_library().manual_seed(seed)
        config = peft.LoraConfig(
            r=rank, lora_alpha=SCALING * rank, target_modules="all-linear", task_type="CAUSAL_LM", lora_dropout=0.0
        )
        with quiet():
            return cls(peft.get_peft_model(model, config), tokenizer, base, longest, levels, precision)

    @classmethod
    def open(cls, folder: Path, file: ScorerFile) -> CausalNetwork:
        """See :func:`~.network.open_network`."""
        peft = _peft()
        base = find_base(file.base)
        if base.weights() != file.base_weights:
            raise InputError(f"{folder}: the base {file.base} has other weights than this scorer's base had.")
        model, tokenizer = _load(base, file.precision)
        found = load(lambda _: peft.PeftModel.from_pretrained(model, str(folder)), str(folder), "LoRA matrices")
        return cls(found, tokenizer, base, file.longest, file.levels, file.precision)

    def tokens(self, texts: Sequence[ScoredText]) -> list[int]:
        """Return the number of tokens of each uncut text."""
        return [len(each) for each in self._encoded([asked_for_level(each, self._levels) for each in texts])]

    def levels(self, texts: Sequence[ScoredText]) -> Any:
        """Return each level's log-probability among all tokens, shape (texts, levels); checkpointed in training."""
        asked = self._encoded([asked_for_level(each, self._levels) for each in texts])
        encoded = [self._cut(tokens, self.longest) for tokens in asked]
        return self._read(encoded, lambda places: self._said(*self._padded([encoded[place] for place in places])))

    def levels_after_rationales(self, texts: Sequence[ScoredText], most: int) -> tuple[Any, list[str]]:
        """Write rationales of at most ``most`` tokens; return :meth:`levels` after them, and the rationales."""
        said = [found[0].text for found in self.write([asked_why(each) for each in texts], most)]
        return self.levels([after_rationale(each, why) for each, why in zip(texts, said, strict=True)]), said

    def write(self, asked: Sequence[Sequence[Message]], most: int) -> list[list[Rationale]]:
        """Write the likeliest rationale, of at most ``most`` tokens, for each conversation, which is cut to leave room;
        each in a list of one. Padding changes a rationale only if two tokens are almost equally likely."""
        encoded = [self._cut(tokens, self.longest - most) for tokens in self._encoded(asked)]
        order = sorted(range(len(encoded)), key=lambda place: len(encoded[place]))
        rationales: dict[int, list[Rationale]] = {}
        for begin in range(0, len(order), WRITTEN_AT_ONCE):
            places = order[begin : begin + WRITTEN_AT_ONCE]
            written = self._generated([encoded[place] for place in places], most, do_sample=False)
            rationales |= {place: [rationale] for place, rationale in zip(places, written, strict=True)}
        return [rationales[place] for place in range(len(encoded))]

    def sample(self, asked: Sequence[Message], most: int, count: int, seed: int) -> list[Rationale]:
        """Draw ``count`` rationales for one conversation at temperature 1, else as :meth:`write`."""
        encoded = self._cut(self._encoded([asked])[0], self.longest - most)
        self._torch.manual_seed(seed)
        return self._generated([encoded], most, do_sample=True, temperature=1.0, num_return_sequences=count)

    def likelihood(self, written: Sequence[tuple[Sequence[Message], str]]) -> Any:
        """Return the log-probability and the number of tokens of each rationale, with the end of its turn; shape
        (rationales, 2), on the processor."""
        prompts = self._encoded([asked for asked, _ in written])
        replies = self._tokenizer([text for _, text in written], add_special_tokens=False, verbose=False)["input_ids"]
        replies = [[*each[: self.longest // 2], *self._ends[:1]] for each in replies]
        encoded = [
            [*self._cut(one, self.longest - len(other)), *other] for one, other in zip(prompts, replies, strict=True)
        ]

        def read(places: list[int]) -> Any:
            ids, mask = self._padded([encoded[place] for place in places])
            counts = self._torch.tensor([len(replies[place]) for place in places], device=self.device)
            most = max(len(replies[place]) for place in places)
            logits = self._logits(ids, mask, most + 1)[:, :-1]
            found = self._torch.log_softmax(logits, dim=-1).gather(-1, ids[:, -most:, None])[:, :, 0]
            is_said = self._torch.arange(most, device=self.device) >= most - counts[:, None]
            return self._torch.stack([(found * is_said).sum(-1), counts.float()], dim=-1)

        return self._read(encoded, read)

    def parameters(self) -> list[Any]:
        """Return the LoRA matrices."""
        return [each for each in self._model.parameters() if each.requires_grad]

    def training(self, on: bool) -> None:
        """Switch gradients on or off."""
        self._model.train(on)

    def state(self) -> dict[str, Any]:
        """Return the LoRA matrices by name."""
        return {name: each.data for name, each in self._model.named_parameters() if each.requires_grad}

    def restore(self, state: dict[str, Any]) -> None:
        """Set the LoRA matrices of :meth:`state`."""
        for name, each in self.state().items():
            each.copy_(state[name])

    def save(self, folder: Path) -> None:
        """Write the LoRA matrices and their configuration in peft's form. The base's weights are not written."""
        safetensors = import_optional("safetensors.torch", "train", "safetensors")
        state = _peft().get_peft_model_state_dict(self._model, save_embedding_layers=False)
        folder.mkdir(parents=True, exist_ok=True)
        written = safetensors.save({name: each.cpu().contiguous() for name, each in state.items()})
        (folder / WEIGHTS_FILES[self.kind]).write_bytes(written)
        self._model.peft_config["default"].save_pretrained(folder)

    def merged(self) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
        """Yield name in transformers, base values, and values with LoRA added, of each changed matrix; float32."""
        layer = import_optional("peft.tuners.lora", "train", "peft").LoraLayer
        for name, module in self._model.get_base_model().named_modules():
            if isinstance(module, layer):
                before = module.get_base_layer().weight.data.float()
                after = before + module.get_delta_weight("default").data.float()
                yield name, before.cpu().numpy(), after.cpu().numpy()

    def _encoded(self, conversations: Sequence[Sequence[Message]]) -> list[list[int]]:
        """Return the tokens of each conversation up to the model's answer."""
        if not conversations:
            return []
        shown = [
            self._tokenizer.apply_chat_template(
                [{"role": role, "content": content} for role, content in conversation],
                add_generation_prompt=True,
                tokenize=False,
                enable_thinking=False,
            )
            for conversation in conversations
        ]
        encoded: list[list[int]] = self._tokenizer(shown, add_special_tokens=False, verbose=False)["input_ids"]
        return encoded

    def _cut(self, tokens: list[int], longest: int) -> list[int]:
        if len(tokens) <= longest:
            return tokens
        head = longest // HEAD
        return tokens[:head] + tokens[head - longest :]

    def _read(self, encoded: Sequence[list[int]], read: Callable[[list[int]], Any]) -> Any:
        """Read texts of similar length together; more than ``AT_ONCE`` texts are checkpointed in training."""
        checkpoint = import_optional("torch.utils.checkpoint", "train", "torch").checkpoint
        trained = self._model.training

        def some(places: list[int]) -> Any:
            return checkpoint(read, places, use_reentrant=False) if trained and len(encoded) > AT_ONCE else read(places)

        with self._torch.set_grad_enabled(trained):
            return by_length([len(each) for each in encoded], AT_ONCE, some)

    def _padded(self, texts: Sequence[list[int]]) -> tuple[Any, Any]:
        """Return tokens with padding before them, and a mask with 0 for padding. All texts end at the same place."""
        most = max(map(len, texts))
        ids = [[0] * (most - len(each)) + each for each in texts]
        mask = [[0] * (most - len(each)) + [1] * len(each) for each in texts]
        return tuple(self._torch.tensor(each, device=self.device) for each in (ids, mask))

    def _said(self, ids: Any, mask: Any) -> Any:
        said = self._torch.log_softmax(self._logits(ids, mask, 1)[:, -1], dim=-1)
        return self._torch.stack([said[:, tokens].logsumexp(-1) for tokens in self._level_tokens], dim=-1)

    def _logits(self, ids: Any, mask: Any, last: int) -> Any:
        """Logits at the last places, in float32; shape (texts, last, tokens)."""
        places = (mask.cumsum(-1) - 1).clamp(min=0)
        with self._torch.autocast(self.device, self._torch.bfloat16, enabled=self.precision == "bfloat16"):
            outputs = self._model(
                input_ids=ids, attention_mask=mask, position_ids=places, logits_to_keep=last, use_cache=False
            )
        return outputs.logits.float()

    def _generated(self, encoded: Sequence[list[int]], most: int, **how: Any) -> list[Rationale]:
        """Generate after each text, up to the end of the turn or ``most`` tokens."""
        configuration = import_optional("transformers", "train", "transformers").GenerationConfig
        previous, trained = self._model.generation_config, self._model.training
        ids, mask = self._padded(encoded)
        drawn = {"top_k": 0, "top_p": 1.0} if how["do_sample"] else {}
        wanted = configuration(
            max_new_tokens=most, eos_token_id=self._ends or None, pad_token_id=(self._ends or [0])[0], **how, **drawn
        )
        self._model.eval()
        try:
            # an empty one: the model's own configuration would fill in the unset fields
            self._model.get_base_model().generation_config = configuration()
            with quiet(), self._torch.no_grad():
                generated = self._model.generate(input_ids=ids, attention_mask=mask, generation_config=wanted)
        finally:
            self._model.get_base_model().generation_config = previous
            self._model.train(trained)
        return [self._written(tokens) for tokens in generated[:, ids.shape[1] :].tolist()]

    def _written(self, tokens: list[int]) -> Rationale:
        ends = [place for place, each in enumerate(tokens) if each in self._ends]
        said = tokens[: ends[0]] if ends else tokens
        return Rationale(self._tokenizer.decode(said, skip_special_tokens=True).strip(), bool(ends))


def _turn_ends(tokenizer: Any) -> list[int]:
    """Return the tokens that end the model's turn: the first token that the chat template puts after the model's text,
    then the end of a text."""
    shown = tokenizer.apply_chat_template(
        [{"role": "user", "content": "no"}, {"role": "assistant", "content": "yes"}], tokenize=False
    )
    after = tokenizer(shown.rpartition("yes")[2], add_special_tokens=False)["input_ids"]
    found = [each for each in after if tokenizer.decode([each]).strip()][:1]
    end = tokenizer.eos_token_id
    return list(dict.fromkeys([*found, *([] if end is None else [end])]))


def _level_tokens(tokenizer: Any, levels: int, base: str) -> list[list[int]]:
    """Return the tokens that spell each level. Raises InputError if one has none, e.g. 10 as tokens 1 and 0."""
    reads: Callable[[str], int | None] = spelling if levels == 2 else digit
    spelt = [reads(token) for token in tokenizer.batch_decode([[place] for place in range(len(tokenizer))])]
    found = [[place for place, each in enumerate(spelt) if each == level] for level in range(levels)]
    for level, tokens in enumerate(found):
        if not tokens:
            word = ("no", "yes")[level] if levels == 2 else str(level)
            raise InputError(
                f"--levels {levels}: a score is read from one token, and the base {base} has none for the level {word}: "
                f"its tokenizer makes {tokenizer.tokenize(word)} of it. Take fewer levels, or another base."
            )
    return found


def _peft() -> Any:
    return import_optional("peft", "train", "peft")


def _load(base: Base, precision: Precision) -> tuple[Any, Any]:
    """Load the base's model in ``precision``, on one GPU, all GPUs or the processor, and its tokenizer. Raises
    InputError."""
    torch = torch_library()
    if base.file is not None:
        import_optional("gguf", "train", "gguf")
    # A GGUF file's matrices stay in float32, because they are compared with the file when it is written again.
    halves = precision == "bfloat16" and base.file is None
    placement: dict[str, Any] = {"device_map": "auto"} if torch.cuda.device_count() > 1 else {}
    given = base.given | placement | {"dtype": torch.bfloat16 if halves else torch.float32}

    def both(use: Any) -> tuple[Any, Any]:
        tokenizer = use.AutoTokenizer.from_pretrained(base.place, **base.given)
        model = use.AutoModelForCausalLM.from_pretrained(base.place, **given)
        return model if placement else model.to(device()), tokenizer

    model, tokenizer = load(both, base.name, "a causal language model")
    if not tokenizer.chat_template:
        raise InputError(f"--base {base.name}: it has no chat template, so it cannot be asked. Take an instruct model.")
    return model, tokenizer

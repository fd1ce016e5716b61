"""A causal language model that is asked as a judge is, and says yes or no; trained by LoRA (Hu et al. 2021)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...prompts.errors import InputError, import_optional
from ..probabilities import spelling
from .bases import find_base
from .scorer_file import WEIGHTS_FILES
from .torch_tools import by_length, device, load, quiet, torch_library

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from .bases import Base
    from .scored_text import ScoredText
    from .scorer_file import ScorerFile

AT_ONCE = 4
"""Texts that go through the network together; what a training step keeps of them grows with their number."""
HEAD = 4
"""Of a text that is too long, this part (one in so many) stays of its beginning and the rest of its end."""
SCALING = 2.0
"""LoRA's alpha over its rank."""
WORDS = (False, True)
"""The levels: no, yes."""


class CausalNetwork:
    """A language model with LoRA matrices beside all its projections; see :class:`~.network.Network`.

    Its levels are no and yes: all tokens that spell one of them are merged, as a judge's are
    (:mod:`askance.models.probabilities`). What the model would say beside them is missing from the levels' sum.
    """

    kind: Final = "causal"

    def __init__(self, model: Any, tokenizer: Any, longest: int, base_weights: str) -> None:
        """``model`` is that of peft, ``tokenizer`` that of transformers; ``longest`` is in tokens."""
        self._torch = torch_library()
        self.device = device()
        self._model, self._tokenizer, self.longest = model.to(self.device), tokenizer, longest
        self.base_weights = base_weights
        said = [spelling(each) for each in tokenizer.batch_decode([[place] for place in range(len(tokenizer))])]
        self._words = [
            self._torch.tensor([place for place, each in enumerate(said) if each is word], device=self.device)
            for word in WORDS
        ]
        self.training(False)

    @classmethod
    def start(cls, base: Base, *, longest: int, seed: int, rank: int) -> CausalNetwork:
        """See :func:`~.network.start_network`."""
        peft = _peft()
        model, tokenizer = _load(base)
        most = getattr(model.config, "max_position_embeddings", longest)
        if longest > most:
            raise InputError(f"--longest {longest}: the base {base.name} reads {most} tokens at most.")
        model.name_or_path = base.name  # peft keeps it; a path would be this machine's
        torch_library().manual_seed(seed)
        how = peft.LoraConfig(
            r=rank, lora_alpha=SCALING * rank, target_modules="all-linear", task_type="CAUSAL_LM", lora_dropout=0.0
        )
        with quiet():
            return cls(peft.get_peft_model(model, how), tokenizer, longest, base.weights())

    @classmethod
    def open(cls, folder: Path, file: ScorerFile) -> CausalNetwork:
        """See :func:`~.network.open_network`."""
        peft = _peft()
        base = find_base(file.base)
        if base.weights() != file.base_weights:
            raise InputError(
                f"{folder}: the base {file.base} has other weights than those that this scorer was trained from."
            )
        model, tokenizer = _load(base)
        found = load(lambda _: peft.PeftModel.from_pretrained(model, str(folder)), str(folder), "LoRA matrices")
        return cls(found, tokenizer, file.longest, base.weights())

    def tokens(self, texts: Sequence[ScoredText]) -> list[int]:
        """Tokens of each text, none cut."""
        return [len(each) for each in self._encoded(texts)]

    def levels(self, texts: Sequence[ScoredText]) -> Any:
        """Log-probability of no and of yes among all tokens; shape (texts, 2).

        What training keeps for the gradients of a text is forgotten and worked out again where there are many.
        """
        again = import_optional("torch.utils.checkpoint", "train", "torch").checkpoint
        encoded = [self._cut(each) for each in self._encoded(texts)]
        trained = self._model.training

        def read(places: list[int]) -> Any:
            ids, mask = self._padded([encoded[place] for place in places])
            if trained and len(encoded) > AT_ONCE:
                return again(self._said, ids, mask, use_reentrant=False)
            return self._said(ids, mask)

        with self._torch.set_grad_enabled(trained):
            return by_length([len(each) for each in encoded], AT_ONCE, read)

    def parameters(self) -> list[Any]:
        """The LoRA matrices."""
        return [each for each in self._model.parameters() if each.requires_grad]

    def training(self, on: bool) -> None:
        """Gradients on or off."""
        self._model.train(on)

    def state(self) -> dict[str, Any]:
        """The LoRA matrices by name."""
        return {name: each.data for name, each in self._model.named_parameters() if each.requires_grad}

    def restore(self, state: dict[str, Any]) -> None:
        """Set them."""
        for name, each in self.state().items():
            each.copy_(state[name])

    def save(self, folder: Path) -> None:
        """Write the LoRA matrices and their configuration, as peft does; the base stays where it is."""
        safetensors = import_optional("safetensors.torch", "train", "safetensors")
        state = _peft().get_peft_model_state_dict(self._model, save_embedding_layers=False)
        folder.mkdir(parents=True, exist_ok=True)
        written = safetensors.save({name: each.cpu().contiguous() for name, each in state.items()})
        (folder / WEIGHTS_FILES[self.kind]).write_bytes(written)
        self._model.peft_config["default"].save_pretrained(folder)

    def merged(self) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
        """Name of each changed matrix in transformers' terms, its numbers in the base, and with LoRA added to them; float32."""
        layer = import_optional("peft.tuners.lora", "train", "peft").LoraLayer
        for name, each in self._model.get_base_model().named_modules():
            if isinstance(each, layer):
                before = each.get_base_layer().weight.data.float()
                after = before + each.get_delta_weight("default").data.float()
                yield name, before.cpu().numpy(), after.cpu().numpy()

    def _encoded(self, texts: Sequence[ScoredText]) -> list[list[int]]:
        """The tokens of each text's conversation up to where the model answers."""
        if not texts:
            return []
        shown = [
            self._tokenizer.apply_chat_template(
                [{"role": role, "content": content} for role, content in each.messages],
                add_generation_prompt=True,
                tokenize=False,
                enable_thinking=False,
            )
            for each in texts
        ]
        encoded: list[list[int]] = self._tokenizer(shown, add_special_tokens=False, verbose=False)["input_ids"]
        return encoded

    def _cut(self, tokens: list[int]) -> list[int]:
        if len(tokens) <= self.longest:
            return tokens
        head = self.longest // HEAD
        return tokens[:head] + tokens[head - self.longest :]

    def _padded(self, texts: Sequence[list[int]]) -> tuple[Any, Any]:
        """Tokens with padding before them, and which are none; the end of every text is at the same place."""
        most = max(map(len, texts))
        ids = [[0] * (most - len(each)) + each for each in texts]
        mask = [[0] * (most - len(each)) + [1] * len(each) for each in texts]
        return tuple(self._torch.tensor(each, device=self.device) for each in (ids, mask))

    def _said(self, ids: Any, mask: Any) -> Any:
        places = (mask.cumsum(-1) - 1).clamp(min=0)
        found = self._model(input_ids=ids, attention_mask=mask, position_ids=places, logits_to_keep=1, use_cache=False)
        said = self._torch.log_softmax(found.logits[:, -1].float(), dim=-1)
        return self._torch.stack([said[:, tokens].logsumexp(-1) for tokens in self._words], dim=-1)


def _peft() -> Any:
    return import_optional("peft", "train", "peft")


def _load(base: Base) -> tuple[Any, Any]:
    """The base's model, in float32, and its tokenizer.

    Raises:
        InputError: It cannot be loaded, or has no chat template.
    """
    torch = torch_library()
    if base.file is not None:
        import_optional("gguf", "train", "gguf")

    def both(use: Any) -> tuple[Any, Any]:
        tokenizer = use.AutoTokenizer.from_pretrained(base.place, **base.given)
        return use.AutoModelForCausalLM.from_pretrained(base.place, dtype=torch.float32, **base.given), tokenizer

    model, tokenizer = load(both, base.name, "a causal language model")
    if not tokenizer.chat_template:
        raise InputError(f"--base {base.name}: it has no chat template, so it cannot be asked. Take an instruct model.")
    return model, tokenizer

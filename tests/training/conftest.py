"""A world small enough to learn in seconds: people and a judge see whether a word is in an output."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.verdicts import Verdict, VerdictColumns
from askance.training.options import TrainOptions

WORDS = ("red", "blue", "green", "tall", "small", "old", "new", "fast", "slow", "warm", "cold", "soft")
CHECKLIST = Checklist(
    questions=(
        Question(id="good", text="nice", dimension="quality"),
        Question(id="broken", text="damaged", dimension="quality", good="no"),
    )
)


def p_yes(question: str, output: str) -> float:
    return 0.9 if question in output.split() else 0.1


def made(count: int = 60, *, to_a_document: int = 1) -> list[Example]:
    """Outputs that are good, broken, both or neither; people like the good ones that are not broken."""
    chance = random.Random(0)
    found = []
    for place in range(count):
        words = [chance.choice(WORDS) for _ in range(4)]
        words += [word for word in ("good", "broken") if chance.random() < 0.5]
        chance.shuffle(words)
        output = " ".join(words)
        score = (p_yes("good", output) + 1 - p_yes("broken", output)) / 2
        document = place // to_a_document
        given = f"{WORDS[document % 12]} {document}"
        found.append(Example(id=f"e{place}", input=given, output=output, human={"quality": (score,)}))
    return found


def said(examples: list[Example]) -> VerdictColumns:
    """The judge's verdicts on both questions."""
    return VerdictColumns(
        Verdict(each.id, question.id, "openai/teacher", "0", p >= 0.5, p, "logprob")
        for each in examples
        for question in CHECKLIST.questions
        for p in [p_yes(question.id, each.output or "")]
    )


SMALL = {"longest": 32, "learning_rate": 4e-3, "batch_size": 16, "epochs": 8, "resamples": 100, "patience": 9}


def options(**given: Any) -> TrainOptions:
    """Settings for so small a network."""
    return TrainOptions.model_validate(SMALL | given)


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder of one layer with random numbers, on disk as transformers has it."""
    return random_bert(tmp_path_factory.mktemp("base"), map(str, range(200)), width=32, longest=64)


def random_bert(folder: Path, further: Iterable[str] = (), *, width: int, longest: int) -> Path:
    """An encoder of one layer with random numbers, whose tokens are words; ``further`` ones beside those of the world."""
    pytest.importorskip("torch").manual_seed(0)
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words = [*marks, *WORDS, *further, "nice", "damaged", "good", "broken"]
    vocabulary = {word: place for place, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(each, vocabulary[each]) for each in ("[CLS]", "[SEP]")],
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=width,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=2 * width,
        max_position_embeddings=longest,
        initializer_range=0.3,
        hidden_dropout_prob=0.05,
        attention_probs_dropout_prob=0.05,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def random_llama(folder: Path, template: str, *, further: Sequence[str] = (), longest: int) -> Path:
    """A Llama of two layers with random numbers, whose tokens are words; ``further`` ones beside those of the world."""
    torch = pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    torch.manual_seed(0)
    ours = ["good", "broken", "nice", "damaged", "user", "assistant", "yes", "no", "Yes", "No", "Question", *further]
    vocabulary = {word: place for place, word in enumerate(["[UNK]", *WORDS, *ours])}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    config = transformers.LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=longest,
        initializer_range=0.3,
        tie_word_embeddings=True,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder

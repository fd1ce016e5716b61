from __future__ import annotations

import re
from pathlib import Path

import pytest

from askance.models.embedded.registry import MODELS, HubFile, RegisteredModel, Wheels, resolve
from askance.prompts.errors import InputError

NAME = "qwen2.5-coder-1.5b-instruct"


def test_a_name_is_found_whatever_its_case() -> None:
    model = resolve(" Qwen2.5-Coder-1.5B-Instruct ")
    assert isinstance(model, RegisteredModel)
    assert model.name == NAME
    assert model.bytes == 1_117_320_768


def test_an_unknown_name_suggests_the_nearest_and_lists_all() -> None:
    with pytest.raises(InputError, match="Did you mean 'smollm2-135m-instruct'") as raised:
        resolve("smolm2-135m-instruct")
    assert all(model.name in str(raised.value) for model in MODELS)


def test_the_path_of_an_existing_gguf_file_is_returned_as_a_path(tmp_path: Path) -> None:
    file = tmp_path / "own.GGUF"
    file.write_bytes(b"GGUF")
    assert resolve(str(file)) == file.resolve()


def test_the_path_of_a_missing_gguf_file_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(str(tmp_path / "gone.gguf"))):
        resolve(str(tmp_path / "gone.gguf"))


def test_a_directory_named_like_a_gguf_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.gguf").mkdir()
    with pytest.raises(InputError, match="no file"):
        resolve(str(tmp_path / "folder.gguf"))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_every_entry_is_complete(model: RegisteredModel) -> None:
    assert re.fullmatch("[0-9a-f]{64}", model.sha256)
    assert model.name == model.name.lower()
    assert model.file.endswith(".gguf")
    assert model.licence and model.description and model.sources
    assert model.bytes > 50_000_000


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_hub_files_come_before_wheels_and_are_at_fixed_places(model: RegisteredModel) -> None:
    kinds = [type(source) for source in model.sources]
    assert kinds in ([HubFile], [Wheels], [HubFile, Wheels])


def test_names_and_files_are_unique() -> None:
    assert len({model.name for model in MODELS}) == len(MODELS)
    assert len({model.file for model in MODELS}) == len(MODELS)
    assert len({model.sha256 for model in MODELS}) == len(MODELS)


def test_parts_are_listed_in_numeric_order_and_none_is_missing() -> None:
    several = [
        source.packages
        for model in MODELS
        for source in model.sources
        if isinstance(source, Wheels) and len(source.packages) > 1
    ]
    assert {len(packages) for packages in several} == {22, 6, 4}
    for packages in several:
        numbers = [int(re.search(r"(\d+)$", name)[1]) for name, _ in packages]  # type: ignore[index]
        assert numbers == list(range(1, len(packages) + 1))
        assert len({version for _, version in packages}) == 1

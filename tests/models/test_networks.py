"""Proxies and certificates of the environment hold for every path that asks models or fetches."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from askance.models.base import ModelError
from askance.models.networks import BUNDLES, certificate_problem, opener, proxy_for, tls_context
from askance.prompts.errors import InputError
from askance.testing import StandInServer
from tests.said import naming, says

from .direct.conftest import ask, make

SELF_SIGNED = "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate"

NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", *BUNDLES)


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({}, "https://api.example.com/v1", None),
        ({"HTTPS_PROXY": "http://p:1"}, "https://api.example.com/v1", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1"}, "http://api.example.com/v1", None),
        ({"http_proxy": "p:1"}, "http://api.example.com/v1", "http://p:1"),
        ({"ALL_PROXY": "http://p:1"}, "https://api.example.com/v1", "http://p:1"),
        ({"ALL_PROXY": "socks5://s:1", "HTTPS_PROXY": "http://p:1"}, "https://api.example.com", "http://p:1"),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "example.com"}, "https://api.example.com/v1", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": ".example.com, other"}, "https://api.example.com/v1", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "api.example.com:8000"}, "http://api.example.com:8000/v1", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "api.example.com:8000"}, "http://api.example.com/v1", "http://p:1"),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "*"}, "https://api.example.com/v1", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, "http://10.1.2.3:8000/v1", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, "http://11.1.2.3:8000/v1", "http://p:1"),
        ({"ALL_PROXY": "http://p:1"}, "http://127.0.0.1:8000/v1", None),
        ({"ALL_PROXY": "http://p:1"}, "http://localhost:8000/v1", None),
        ({"ALL_PROXY": "http://p:1"}, "http://[::1]:8000/v1", None),
    ],
)
def test_the_proxy_of_an_address(
    environment: dict[str, str], url: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(url) == proxy


def test_a_proxy_of_another_kind_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://me:secret@s:1080")
    with pytest.raises(InputError, match=naming("socks5", "http://", "https://", "HTTPS_PROXY")) as caught:
        proxy_for("https://api.example.com/v1")
    assert "secret" not in str(caught.value)


async def test_a_model_is_asked_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with StandInServer(lambda body: "Yes") as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1").replace("http://", "http://me:pw@"))
        model = make("http://judge.example.invalid/v1")
        assert (await ask(model)).text == "Yes"
        await model.close()
    assert proxy.headers[0]["Host"] == "judge.example.invalid"
    assert proxy.headers[0]["Proxy-Authorization"].startswith("Basic ")


async def test_a_proxy_that_is_not_there_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://me:secret@127.0.0.1:9")
    model = make("http://judge.example.invalid/v1")
    with pytest.raises(ModelError, match=naming("the proxy http://127.0.0.1:9")) as caught:
        await ask(model)
    await model.close()
    assert "secret" not in str(caught.value)


def test_files_are_fetched_through_the_proxy_of_every_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.path.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{server.server_port}")
    url = "http://hub.example.invalid/file"
    with opener(url=url).open(url, timeout=5) as reply:
        assert reply.read().decode() == url
    server.shutdown()
    server.server_close()


def test_a_bundle_of_the_environment_is_read_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(tls_context(), ssl.SSLContext)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(CERTIFICATE))
    assert [each["subject"][0][0][1] for each in tls_context().get_ca_certs()] == ["localhost"]
    for bad in (tmp_path / "none.pem", tmp_path / "empty.pem"):
        (tmp_path / "empty.pem").write_text("no certificate")
        monkeypatch.setenv("SSL_CERT_FILE", str(bad))
        with pytest.raises(InputError, match=naming(f"SSL_CERT_FILE={bad}", "certificates")):
            tls_context()


CERTIFICATE = Path(__file__).parents[1] / "data" / "localhost.pem"


@pytest.fixture
def secure() -> Iterator[str]:
    """The address of a server whose certificate no authority has signed."""

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            data = b'{"choices": [{"message": {"content": "Yes"}}]}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://localhost:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


async def test_a_certificate_that_is_not_trusted_is_told_with_what_to_set(secure: str) -> None:
    model = make(secure)
    with pytest.raises(ModelError, match=naming("certificate", "verified", "SSL_CERT_FILE")) as caught:
        await ask(model)
    await model.close()
    assert caught.value.fatal and not caught.value.retry
    assert "server running" not in str(caught.value)


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
async def test_a_certificate_of_the_environment_is_trusted(
    secure: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, str(CERTIFICATE))
    model = make(secure)
    assert (await asyncio.wait_for(ask(model), 10)).text == "Yes"
    await model.close()


async def test_an_address_with_https_where_the_server_speaks_http_says_so() -> None:
    with StandInServer(lambda body: "Yes") as server:
        model = make(server.url.replace("http://", "https://"))
        with pytest.raises(ModelError, match=naming("https://")):
            await ask(model)
        await model.close()


def test_other_errors_are_none_of_certificates() -> None:
    assert certificate_problem("Connection refused") is None
    assert says(certificate_problem(SELF_SIGNED), "SSL_CERT_FILE")

"""The network between this machine and an endpoint: the proxies and certificates that the environment names."""

from __future__ import annotations

import os
import re
import ssl
import urllib.request
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from ..prompts.errors import InputError

BUNDLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables that name a file of trusted certificates, in order of precedence."""
_CERTIFICATE = re.compile(r"certificate[ _]verify[ _]failed|self.signed certificate|unable to get local issuer", re.I)


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for an address: ``HTTP_PROXY``, ``HTTPS_PROXY``, else ``ALL_PROXY``.

    None if there is no proxy, or ``NO_PROXY`` names the host, or its domain or network (``10.0.0.0/8``). This machine
    (``localhost``, 127.0.0.0/8, ::1) is never asked through a proxy, because the proxy's ``localhost`` is another
    machine. Raises InputError for a kind of proxy that cannot be used."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or _is_here(host) or _is_left_out(host, proxies.get("no", "")):
        return None
    if urllib.request.proxy_bypass(f"{host}:{parts.port}" if parts.port else host):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not proxy.startswith(("http://", "https://")):
        kind = proxy.partition("://")[0]
        raise InputError(
            f"The proxy of the environment for {host} is of the kind {kind}; only http:// and https:// can be used. "
            f"Set {parts.scheme.upper()}_PROXY to such a proxy, or name the host in NO_PROXY."
        )
    return proxy


def tls_context() -> ssl.SSLContext:
    """TLS context with the system's certificates, or those from a file. ``SSL_CERT_FILE``, ``REQUESTS_CA_BUNDLE`` or
    ``CURL_CA_BUNDLE`` names the file. Raises InputError where the file cannot be read, or holds no certificate."""
    for name in BUNDLES:
        if bundle := os.environ.get(name, "").strip():
            try:
                folder = os.path.isdir(bundle)
                return ssl.create_default_context(cafile=None if folder else bundle, capath=bundle if folder else None)
            except OSError as error:
                raise InputError(f"{name}={bundle}: no certificates can be read from it ({error}).") from None
    return ssl.create_default_context()


def opener(*handlers: urllib.request.BaseHandler, url: str) -> urllib.request.OpenerDirector:
    """Return an opener of urllib for an address, with the proxy and the certificates of the environment."""
    proxy = proxy_for(url)
    proxies = urllib.request.ProxyHandler({} if proxy is None else {"http": proxy, "https": proxy})
    return urllib.request.build_opener(proxies, urllib.request.HTTPSHandler(context=tls_context()), *handlers)


def certificate_problem(said: str) -> str | None:
    """Return advice if an error is about a certificate: the problem and the variable to set. None for other errors."""
    if not _CERTIFICATE.search(said):
        return None
    return (
        "its certificate cannot be verified. Where an authority of your own has signed it, as in networks that look "
        "into what passes, set SSL_CERT_FILE to the file with that authority's certificate (PEM)."
    )


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _is_left_out(host: str, no_proxy: str) -> bool:
    """Whether ``NO_PROXY`` names a network that contains the host's address. urllib handles names."""
    for entry in no_proxy.replace(" ", ",").split(","):
        try:
            if "/" in entry and ip_address(host) in ip_network(entry, strict=False):
                return True
        except ValueError:
            continue
    return False

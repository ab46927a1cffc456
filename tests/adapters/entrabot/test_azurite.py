"""EntraBot's memory in Azurite, over TLS with a bearer token, as in Azure itself."""

import asyncio
import base64
import secrets
import ssl
import threading
import time
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import httpx
import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from entrabot.errors import TokenExpiredError
from entrabot.storage import blob
from entrabot.storage.backend import BlobBackend, get_backend
from entrabot.storage.blob import BlobStore, ConcurrencyError
from entrabot.storage.migration import migrate_local_to_backend
from entrabot.tools.interaction_log import log_interaction, read_day
from entrabot.tools.promises import add_promise, list_promises, resolve_promise

import npm_tools
import object_servers
from object_servers import AZURITE_VERSION, free_ports

ACCOUNT = "entclaw0f9c"
CONTAINER = "agent-0f9c"


def token(**changes):
    """Of the form Entra gives out; Azurite looks at what it claims."""
    now = int(time.time())
    claims = {
        "aud": "https://storage.azure.com",
        "iss": "https://sts.windows.net/11111111-1111-1111-1111-111111111111/",
        "iat": now - 60,
        "nbf": now - 60,
        "exp": now + 3600,
        "ver": "1.0",
        "oid": "agent",
    }
    return jwt.encode(claims | changes, "x" * 32, algorithm="HS256")


def certificate(folder):
    """One for this machine, which nobody else trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "azurite")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture(scope="module")
def azurite_tls(tmp_path_factory):
    """The endpoint of an Azurite that takes bearer tokens, which it does over TLS alone, and what trusts it."""
    program = npm_tools.command("azurite", AZURITE_VERSION, "azurite-blob")
    folder = tmp_path_factory.mktemp("azurite-tls")
    cert, key = certificate(folder)
    (port,) = free_ports(1)
    options = [*object_servers._IN_MEMORY, "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    process = object_servers._started(
        [program, *options, "--oauth", "basic", "--cert", str(cert), "--key", str(key)],
        port,
        folder,
        AZURITE_ACCOUNTS=f"{ACCOUNT}:{base64.b64encode(secrets.token_bytes(64)).decode()}",
    )
    trust = ssl.create_default_context(cafile=str(cert))
    endpoint = f"https://127.0.0.1:{port}/{ACCOUNT}"
    try:
        headers = {"Authorization": f"Bearer {token()}", "x-ms-version": blob.API_VERSION}
        httpx.put(
            f"{endpoint}/{CONTAINER}?restype=container", headers=headers, verify=trust, timeout=60
        ).raise_for_status()
        yield endpoint, trust
    finally:
        object_servers._end(process)


@pytest.fixture
def endpoint(azurite_tls, monkeypatch):
    endpoint, trust = azurite_tls
    monkeypatch.setattr(blob, "_tls", lambda: trust)
    return endpoint


@pytest.fixture
def store(endpoint):
    return BlobStore(endpoint=endpoint, container=CONTAINER, token_provider=token)


def call(work):
    return asyncio.run(work)


def test_every_call_means_there_what_it_means_here(store):
    """
    Put, get, exists, list, delete, and the conditions.
    """
    first = call(store.put("a/x & <y>.md", b"one"))
    second = call(store.put("a/x & <y>.md", b"two", if_match=first))

    with pytest.raises(ConcurrencyError):
        call(store.put("a/x & <y>.md", b"three", if_match=first))
    with pytest.raises(ConcurrencyError):
        call(store.put("a/x & <y>.md", b"three", if_none_match="*"))
    assert first != second
    assert call(store.fetch("a/x & <y>.md")) == (b"two", second)
    assert call(store.exists("a/x & <y>.md")) is True
    assert call(store.list("a/")) == ["a/x & <y>.md"]
    call(store.delete("a/x & <y>.md"))
    call(store.delete("a/x & <y>.md"))
    assert call(store.exists("a/x & <y>.md")) is False
    with pytest.raises(KeyError):
        call(store.get("a/x & <y>.md"))


@pytest.mark.parametrize("name", ["Zoë/記憶 ☃.md", "100%25 of ?#+.md", "a'b\"c;d=e,f.md"])
def test_any_name_may_be_a_blobs_there_too(store, name):
    """
    It is written, listed and read under that very name.
    """
    call(store.put(f"names/{name}", b"x"))

    assert f"names/{name}" in call(store.list("names/"))
    assert call(store.get(f"names/{name}")) == b"x"


def test_an_expired_token_is_an_expired_token(endpoint):
    """
    Azurite refuses it as Azure does: not with 401 in every version, but never with an answer.
    """
    stale = BlobStore(
        endpoint=endpoint, container=CONTAINER, token_provider=lambda: token(exp=int(time.time()) - 60)
    )

    with pytest.raises((TokenExpiredError, httpx.HTTPStatusError)):
        call(stale.get("x"))


def test_writers_at_the_same_time_lose_nothing_there(endpoint):
    """
    Appends of several threads are all there, once.
    """

    def work(writer):
        store = BlobStore(endpoint=endpoint, container=CONTAINER, token_provider=token)
        for number in range(4):
            BlobBackend(store).append_text("race.jsonl", f"{writer}-{number}\n")

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    store = BlobStore(endpoint=endpoint, container=CONTAINER, token_provider=token)
    lines = BlobBackend(store).read_text("race.jsonl").splitlines()
    assert sorted(lines) == [f"{writer}-{number}" for writer in range(3) for number in range(4)]


def test_entrabot_lives_there(endpoint, entrabot_settings, tmp_path):
    """
    Its log, its promises and a move of its files, by its settings alone.
    """
    entrabot_settings(blob_endpoint=endpoint, blob_container=CONTAINER, storage_token=token())
    source = tmp_path / "source"
    source.mkdir()
    (source / "watched_chats").write_text("a\nb\n")

    said = log_interaction(channel="email", direction="inbound", sender="d", summary="Zoë asked")
    made = call(add_promise(chat_id="c", description="answer"))
    settled = call(resolve_promise(promise_id=made.id, resolution="answered"))
    report = migrate_local_to_backend([(source, "")], get_backend())

    assert said in read_day(said["ts"][:10])
    assert call(list_promises()) == []
    assert call(list_promises(open_only=False)) == [settled]
    assert (report.copied, get_backend().read_text("watched_chats")) == (1, "a\nb\n")

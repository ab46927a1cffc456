"""From a URL and an environment to a store that lets us in."""

import os

import pytest

from faulty_server import FaultyServer
from memplane.errors import RemoteDenied, SettingsInvalid
from memplane.sync.local import LocalObjects
from memplane.sync.opening import open_store
from object_servers import HURRIED, free_ports

NO_FILES = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "PATH": ""}
KEY = "bm90IGEgcmVhbCBrZXk="


@pytest.fixture(scope="module")
def faulty():
    server = FaultyServer()
    yield server
    server.close()


@pytest.mark.parametrize(
    ("url", "environment", "opened"),
    [
        ("az://memory/agent", {"AZURE_STORAGE_ACCOUNT_NAME": "acct"}, "az://acct/memory/agent"),
        ("az://memory", {"AZURE_STORAGE_ACCOUNT": "acct"}, "az://acct/memory"),
        ("az://acct/memory/a/b/", {}, "az://acct/memory/a/b"),
        ("az://acct/memory/a", {"AZURE_STORAGE_ACCOUNT_NAME": "acct"}, "az://acct/memory/a"),
        (
            "az://memory",
            {
                "AZURE_STORAGE_CONNECTION_STRING": f"AccountName=acct;AccountKey={KEY};EndpointSuffix=core.windows.net"
            },
            "az://acct/memory",
        ),
        ("https://acct.blob.core.windows.net/memory/my%20agent", {}, "az://acct/memory/my agent"),
        ("https://acct.blob.core.windows.net/memory?sv=1&sig=TOPSECRET", {}, "az://acct/memory"),
        ("http://127.0.0.1:10000/acct/memory/x", {"AZURE_STORAGE_ACCOUNT_KEY": KEY}, "az://acct/memory/x"),
        ("s3://bucket", {}, "s3://bucket"),
        (
            "s3://bucket/deep//prefix/",
            {"AWS_ACCESS_KEY_ID": "TOPSECRET", "AWS_SECRET_ACCESS_KEY": "TOPSECRET"},
            "s3://bucket/deep/prefix",
        ),
        ("gs://bucket/Grüße", {"GOOGLE_BEARER_TOKEN": "TOPSECRET"}, "gs://bucket/Grüße"),
    ],
)
def test_urls(url, environment, opened):
    """
    Each kind of URL opens, and what the store calls itself holds nothing secret.
    """
    store = open_store(url, NO_FILES | environment)

    assert store.url == opened
    assert "TOPSECRET" not in repr(store)


def test_directories(tmp_path):
    """
    A path and a file:// URL are directories; nothing is made before something is kept.
    """
    (tmp_path / "with space").mkdir()
    for url in (
        str(tmp_path / "with space"),
        (tmp_path / "with space").as_uri(),
        f"file://localhost{tmp_path}/with space",
    ):
        store = open_store(url, {})
        assert isinstance(store, LocalObjects)
        assert store._root == tmp_path / "with space"

    assert open_store("~/memory", {})._root.is_absolute()
    open_store(str(tmp_path / "new"), {})
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "  ",
        "ftp://host/x",
        "file://host/x",
        "az://",
        "az://only-account",
        "s3://",
        "gs:///",
        "s3://key:TOPSECRET@bucket/x",
        "https://user:TOPSECRET@acct.blob.core.windows.net/c",
        "https://acct.blob.core.windows.net/?sig=TOPSECRET",
        "http://127.0.0.1:10000/",
        "s3://bucket/../x",
        "https://acct.blob.core.windows.net/c/%2e%2e/x",
    ],
)
def test_what_opens_nothing(url):
    """
    A URL that cannot be meant is an error that says what one looks like, and repeats no secret.
    """
    with pytest.raises(SettingsInvalid) as told:
        open_store(url, NO_FILES)

    assert "TOPSECRET" not in str(told.value)


@pytest.mark.parametrize(
    ("url", "environment"),
    [
        ("az://acct/memory", {"AZURE_STORAGE_ACCOUNT_KEY": "TOPSECRET not base64"}),
        ("az://acct/memory", {"AZURE_CREDENTIAL_TYPE": "TOPSECRET"}),
        ("s3://bucket", {"AWS_SKIP_SIGNATURE": "TOPSECRET"}),
        ("gs://bucket", {"GOOGLE_SERVICE_ACCOUNT_KEY": '{"private_key": "TOPSECRET"}'}),
        ("gs://bucket", {"GOOGLE_APPLICATION_CREDENTIALS": "not-there.json"}),
    ],
)
def test_credentials_of_no_form(url, environment):
    """
    A credential that is none is an error before any request, and is not repeated.
    """
    with pytest.raises((SettingsInvalid, RemoteDenied)) as told:
        open_store(url, NO_FILES | environment, patience=HURRIED).get("k")

    assert "TOPSECRET" not in str(told.value)


def test_a_token_of_the_callers(faulty):
    """
    Whoever has tokens of its own, as an agent's identity has, gives a function; it wins over the environment.
    """
    url, environment = faulty.place("az")
    store = open_store(url, environment, patience=HURRIED, token=lambda: "of-the-agent")
    store.put("k", b"1")

    assert faulty.authorized[-1] == "Bearer of-the-agent"


def test_the_azure_cli(faulty, tmp_path, monkeypatch):
    """
    With nothing else set, the token is what `az account get-access-token` prints.
    """
    az = tmp_path / "az"
    az.write_text(
        "#!/bin/sh\n"
        'echo \'{"accessToken": "from-the-cli", "expiresOn": "2099-01-01 00:00:00.000000", "subscription": "s",'
        ' "tenant": "t", "tokenType": "Bearer"}\'\n'
    )
    az.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    url, environment = faulty.place("az")
    del environment["AZURE_STORAGE_SAS_TOKEN"]
    open_store(url, environment | {"PATH": str(tmp_path)}, patience=HURRIED).put("k", b"1")

    assert faulty.authorized[-1] == "Bearer from-the-cli"


def test_a_client_secret_that_cannot_be_used(faulty):
    """
    Where no token can be had for an identity, the message says how to sign in.
    """
    (port,) = free_ports(1)
    url, environment = faulty.place("az")
    del environment["AZURE_STORAGE_SAS_TOKEN"]
    secret = {
        "AZURE_CLIENT_ID": "client",
        "AZURE_CLIENT_SECRET": "TOPSECRET",
        "AZURE_TENANT_ID": "tenant",
        "AZURE_AUTHORITY_HOST": f"http://127.0.0.1:{port}",
    }
    for more in (secret, {"AZURE_MSI_ENDPOINT": f"http://127.0.0.1:{port}/token"}):
        with pytest.raises(RemoteDenied, match="az login") as told:
            open_store(url, NO_FILES | environment | more, patience=HURRIED).get("k")
        assert "TOPSECRET" not in str(told.value)


def test_profiles_of_aws(faulty, tmp_path):
    """
    Keys come from the files of the AWS command line, by profile; those in the environment win.
    """
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = PLAIN\naws_secret_access_key = s\n"
        "[work]\naws_access_key_id = WORK\naws_secret_access_key = s\n"
    )
    (tmp_path / "config").write_text("[default]\nregion = eu-north-1\n[profile work]\nregion = eu-west-1\n")
    files = {
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_ENDPOINT_URL": faulty.url,
    }
    own = {"AWS_ACCESS_KEY_ID": "OWN", "AWS_SECRET_ACCESS_KEY": "s"}
    for more, key, region in (
        ({}, "PLAIN", "eu-north-1"),
        ({"AWS_PROFILE": "work"}, "WORK", "eu-west-1"),
        (own, "OWN", "eu-north-1"),
    ):
        open_store("s3://bucket/x", files | more, patience=HURRIED).get("k")
        assert f"Credential={key}/" in faulty.authorized[-1]
        assert f"/{region}/s3/" in faulty.authorized[-1]


def test_no_credential_of_aws(faulty):
    """
    Without any key, and on no machine of Amazon's, the message says what is missing.
    """
    (port,) = free_ports(1)
    environment = NO_FILES | {
        "AWS_METADATA_ENDPOINT": f"http://127.0.0.1:{port}",
        "AWS_ENDPOINT_URL": faulty.url,
    }
    with pytest.raises(RemoteDenied, match="AWS_ACCESS_KEY_ID"):
        open_store("s3://bucket", environment, patience=HURRIED).get("k")


def test_an_endpoint_of_azure(azurite):
    """
    The address of the service itself opens too, with the account's key or with a token behind the question mark.
    """
    container = azurite.container()
    url = f"{azurite.endpoint}/{container}/agent"
    keyed = open_store(url, {"AZURE_STORAGE_ACCOUNT_KEY": azurite.key}, patience=HURRIED)
    keyed.put("k", b"1")
    wrong = {"AZURE_STORAGE_ACCOUNT_KEY": KEY, "AZURE_CLIENT_SECRET": "x"}
    signed = open_store(f"{url}?{azurite.sas(container=container)}", wrong, patience=HURRIED)

    assert signed.get("k").data == b"1"
    assert signed.url == f"az://{azurite.account}/{container}/agent"
    connection = f"BlobEndpoint={azurite.endpoint};AccountName={azurite.account};AccountKey={azurite.key}"
    other = open_store(
        f"az://{container}/agent", {"AZURE_STORAGE_CONNECTION_STRING": connection}, patience=HURRIED
    )
    assert other.get("k").data == b"1"

"""Open an object store from a URL, with the credentials that the providers' own tools would find.

    ~/memory, file:///mnt/memory                            a directory
    az://container/prefix, az://account/container/prefix    Azure Blob Storage
    https://account.blob.core.windows.net/container/prefix  the same; a SAS token may follow the ?
    s3://bucket/prefix                                      Amazon S3 and compatible services (AWS_ENDPOINT_URL)
    gs://bucket/prefix                                      Google Cloud Storage

The environment is passed as a mapping. The client library itself finds other credentials, such as a role of the
machine or a file that `gcloud` wrote.
"""

import configparser
import shutil
from collections.abc import Callable, Mapping
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal
from urllib.parse import SplitResult, unquote, urlsplit

from memplane.clock import system_clock, to_datetime
from memplane.errors import InvalidRequest, SettingsInvalid
from memplane.sync.local import LocalObjects
from memplane.sync.store import ObjectStore

Token = Callable[[], str]
"""Fetches a bearer token that is good for at least the next minute."""

_TOKEN_LASTS = timedelta(seconds=60)

_AZURE = {
    "account_name": ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"),
    "account_key": (
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_ACCESS_KEY",
        "AZURE_STORAGE_KEY",
    ),
    "sas_key": ("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"),
    "token": ("AZURE_STORAGE_TOKEN",),
    "client_id": ("AZURE_STORAGE_CLIENT_ID", "AZURE_CLIENT_ID"),
    "client_secret": ("AZURE_STORAGE_CLIENT_SECRET", "AZURE_CLIENT_SECRET"),
    "tenant_id": ("AZURE_STORAGE_TENANT_ID", "AZURE_TENANT_ID"),
    "authority_host": ("AZURE_AUTHORITY_HOST",),
    "federated_token_file": ("AZURE_FEDERATED_TOKEN_FILE",),
    "msi_endpoint": ("AZURE_MSI_ENDPOINT", "IDENTITY_ENDPOINT", "MSI_ENDPOINT"),
    "object_id": ("AZURE_OBJECT_ID",),
    "msi_resource_id": ("AZURE_MSI_RESOURCE_ID",),
    "credential_type": ("AZURE_CREDENTIAL_TYPE",),
    "use_azure_cli": ("AZURE_USE_AZURE_CLI",),
    "skip_signature": ("AZURE_SKIP_SIGNATURE",),
    "endpoint": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
_CONNECTION = {
    "accountname": "account_name",
    "accountkey": "account_key",
    "sharedaccesssignature": "sas_key",
    "blobendpoint": "endpoint",
}
_AZURE_CREDENTIALS = (
    "account_key",
    "sas_key",
    "token",
    "client_secret",
    "federated_token_file",
    "msi_endpoint",
    "credential_type",
    "use_azure_cli",
    "skip_signature",
)
_S3 = {
    "access_key_id": ("AWS_ACCESS_KEY_ID",),
    "secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
    "session_token": ("AWS_SESSION_TOKEN",),
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "role_arn": ("AWS_ROLE_ARN",),
    "role_session_name": ("AWS_ROLE_SESSION_NAME",),
    "web_identity_token_file": ("AWS_WEB_IDENTITY_TOKEN_FILE",),
    "container_credentials_relative_uri": ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",),
    "container_credentials_full_uri": ("AWS_CONTAINER_CREDENTIALS_FULL_URI",),
    "container_authorization_token_file": ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",),
    "metadata_endpoint": ("AWS_METADATA_ENDPOINT",),
    "skip_signature": ("AWS_SKIP_SIGNATURE",),
    "virtual_hosted_style_request": ("AWS_VIRTUAL_HOSTED_STYLE_REQUEST",),
    "server_side_encryption": ("AWS_SERVER_SIDE_ENCRYPTION",),
    "sse_kms_key_id": ("AWS_SSE_KMS_KEY_ID",),
    "request_payer": ("AWS_REQUEST_PAYER",),
}
_GOOGLE = {
    "application_credentials": ("GOOGLE_APPLICATION_CREDENTIALS",),
    "service_account": ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH"),
    "service_account_key": ("GOOGLE_SERVICE_ACCOUNT_KEY",),
    "bearer_token": ("GOOGLE_BEARER_TOKEN",),
    "base_url": ("GOOGLE_BASE_URL", "STORAGE_EMULATOR_HOST"),
    "skip_signature": ("GOOGLE_SKIP_SIGNATURE",),
}


def open_store(
    url: str,
    environment: Mapping[str, str],
    *,
    patience: Any = None,
    token: Token | None = None,
) -> ObjectStore:
    """The store at a URL. Nothing is asked of it yet: whether it is there and lets us in shows with the first request.

    `patience` is a `cloud.RetryPolicy`; `token` fetches bearer tokens for Azure in place of the environment's credential.
    """
    scheme, found, rest = url.strip().partition("://")
    if not found:
        return _local(url)
    match scheme.lower():
        case "file":
            return _local(_file_path(url))
        case "az" | "azure":
            return _azure(_parts(rest), _found(_AZURE, environment), environment, patience, token)
        case "http" | "https":
            return _azure_endpoint(urlsplit(url.strip()), environment, patience, token)
        case "s3" | "s3a":
            return _s3(_parts(rest), environment, patience)
        case "gs" | "gcs":
            return _google(_parts(rest), environment, patience)
    raise SettingsInvalid(
        f"{scheme[:20]!r} is no kind of object store: give a directory, file://, az://, https://, s3:// or gs://"
    )


def check_local(store: ObjectStore) -> None:
    """Where memory is kept on this machine, it goes to a directory and nowhere else."""
    if not isinstance(store, LocalObjects):
        raise SettingsInvalid(
            f"memory is kept on this machine (keep_memory_local), and {store.url} is elsewhere: nothing was sent. "
            "Leave out --keep-memory-local and MEMPLANE_KEEP_MEMORY_LOCAL to sync, or give a directory"
        )


def _local(path: str) -> ObjectStore:
    if not path.strip():
        raise SettingsInvalid(
            "no object store is named: give a directory or a URL such as s3://bucket/prefix"
        )
    return LocalObjects(path.strip())


def _file_path(url: str) -> str:
    split = urlsplit(url.strip())
    if split.netloc not in {"", "localhost"}:
        raise SettingsInvalid("a file:// URL has three slashes before its path: file:///mnt/memory")
    return unquote(split.path)


def _azure_endpoint(
    split: SplitResult, environment: Mapping[str, str], patience: Any, token: Token | None
) -> ObjectStore:
    """An address of the service itself; its account is the first part of the host, or, where the host is a number or
    this machine, as emulators have it, of the path."""
    if split.username or split.password:
        raise SettingsInvalid("a URL must not hold a password; give it in the environment")
    host, parts = split.hostname or "", [unquote(part) for part in split.path.split("/") if part]
    config = _found(_AZURE, environment)
    origin = f"{split.scheme}://{split.netloc}"
    if _is_emulator(host):
        if not parts:
            raise SettingsInvalid(
                "the URL names no account and container: http://127.0.0.1:10000/account/container"
            )
        config |= {"account_name": parts[0], "endpoint": f"{origin}/{parts.pop(0)}"}
    else:
        config |= {"account_name": host.partition(".")[0], "endpoint": origin}
    if split.query:
        config |= {"sas_key": split.query, "credential_type": "sas_token"}
    return _azure([config["account_name"], *parts], config, environment, patience, token)


def _is_emulator(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return "." not in host
    return True


def _azure(
    parts: list[str],
    config: dict[str, str],
    environment: Mapping[str, str],
    patience: Any,
    token: Token | None,
) -> ObjectStore:
    connection = environment.get("AZURE_STORAGE_CONNECTION_STRING", "")
    for member in connection.split(";"):
        name, _, value = member.partition("=")
        if name.strip().lower() in _CONNECTION and value:
            config.setdefault(_CONNECTION[name.strip().lower()], value.strip())
    account = config.get("account_name")
    if account is None and parts:
        account = parts.pop(0)
    elif parts and parts[0] == account:
        parts.pop(0)
    if not account or not parts:
        raise SettingsInvalid(
            "an Azure URL names an account and a container: az://account/container/prefix, or az://container/prefix "
            "where AZURE_STORAGE_ACCOUNT_NAME is set"
        )
    container, *prefix = parts
    config["account_name"] = account
    config["sas_key"] = config.get("sas_key", "").removeprefix("?")
    if token is not None:
        for name in _AZURE_CREDENTIALS:
            config.pop(name, None)
    elif not any(config.get(name) for name in _AZURE_CREDENTIALS) and _has_azure_cli(environment):
        config["use_azure_cli"] = "true"
    given = {name: value for name, value in config.items() if value}
    provider = None if token is None else _azure_bearer(token)
    url = f"az://{'/'.join((account, container, *prefix))}"
    return _opened("az", "AzureStore", container, given, url, "/".join(prefix), patience, provider)


def _has_azure_cli(environment: Mapping[str, str]) -> bool:
    return shutil.which("az", path=environment.get("PATH")) is not None


def _azure_bearer(token: Token) -> Callable[[], dict[str, Any]]:
    return lambda: {"token": token(), "expires_at": to_datetime(system_clock()) + _TOKEN_LASTS}


def _s3(parts: list[str], environment: Mapping[str, str], patience: Any) -> ObjectStore:
    bucket, *prefix = _bucket(parts, "s3://bucket/prefix")
    config = _profile(environment) | _found(_S3, environment)
    return _opened("s3", "S3Store", bucket, config, f"s3://{'/'.join(parts)}", "/".join(prefix), patience)


def _google(parts: list[str], environment: Mapping[str, str], patience: Any) -> ObjectStore:
    bucket, *prefix = _bucket(parts, "gs://bucket/prefix")
    config = _found(_GOOGLE, environment)
    return _opened("gs", "GCSStore", bucket, config, f"gs://{'/'.join(parts)}", "/".join(prefix), patience)


def _profile(environment: Mapping[str, str]) -> dict[str, str]:
    """What the files of the AWS command line say for the profile. Its keys count only where the environment has none."""
    profile = environment.get("AWS_PROFILE", "default")
    home = environment.get("HOME", "~")
    files = (
        (environment.get("AWS_CONFIG_FILE", f"{home}/.aws/config"), f"profile {profile}"),
        (environment.get("AWS_SHARED_CREDENTIALS_FILE", f"{home}/.aws/credentials"), profile),
    )
    names = {
        "aws_access_key_id": "access_key_id",
        "aws_secret_access_key": "secret_access_key",
        "aws_session_token": "session_token",
        "region": "region",
        "endpoint_url": "endpoint",
    }
    found: dict[str, str] = {}
    for file, section in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(Path(file).expanduser(), encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError):
            continue  # not ours to mend, and the environment may have all that is needed
        for name in (section, profile):
            if parser.has_section(name):
                found |= {names[option]: value for option, value in parser.items(name) if option in names}
                break
    if environment.get("AWS_ACCESS_KEY_ID"):
        for name in ("access_key_id", "secret_access_key", "session_token"):
            found.pop(name, None)
    return found


def _opened(
    provider: Literal["az", "s3", "gs"],
    kind: str,
    place: str,
    config: Mapping[str, str],
    url: str,
    prefix: str,
    patience: Any,
    credential: Callable[[], dict[str, Any]] | None = None,
) -> ObjectStore:
    from obstore import store as stores  # the client is large; only a URL of a cloud needs it

    from memplane.sync import cloud  # as above

    limits = patience or cloud.PATIENT
    plain = any(config.get(name, "").startswith("http://") for name in ("endpoint", "base_url"))
    client = {**limits.client(), **({"allow_http": True} if plain else {})}
    given = {"credential_provider": credential} if credential is not None else {}
    try:
        made = getattr(stores, kind)(
            place, config=config, client_options=client, retry_config=limits.retry(), **given
        )
        store: ObjectStore = cloud.CloudObjects(made, provider=provider, url=url, prefix=prefix)
    except InvalidRequest:
        raise SettingsInvalid(f"the prefix of {url} is no key: give parts without . or .. in them") from None
    except Exception:  # noqa: BLE001 - the client's own message may hold the credential
        raise SettingsInvalid(
            f"{url} cannot be opened with the settings there are: a name or a credential has a form that is none"
        ) from None
    return store


def _parts(rest: str) -> list[str]:
    if "@" in rest.partition("/")[0]:
        raise SettingsInvalid("a URL must not hold a password; give it in the environment")
    return [part for part in rest.split("/") if part]


def _bucket(parts: list[str], example: str) -> list[str]:
    if not parts:
        raise SettingsInvalid(f"the URL names no bucket: {example}")
    return parts


def _found(names: Mapping[str, tuple[str, ...]], environment: Mapping[str, str]) -> dict[str, str]:
    """What is set, under the client's names; of several variables the first."""
    found = {}
    for name, variables in names.items():
        values = [environment[variable] for variable in variables if environment.get(variable)]
        if values:
            found[name] = values[0]
    return found

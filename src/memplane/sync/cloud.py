"""Azure Blob Storage, Amazon S3 and what speaks like it, Google Cloud Storage: `ObjectStore` over `obstore`.

The client signs, renews tokens and tries again by itself; this adapter gives it its limits, makes conditions out of
versions, and turns what comes back into our errors. Nothing of the client's own messages is passed on: they may hold
addresses with signatures in them.
"""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final, Literal

import msgspec
import obstore
from obstore import exceptions

from memplane.errors import Changed, InvalidRequest, MemplaneError, RemoteDenied, RemoteUnavailable, Unchanged
from memplane.sync.backend import Pause, pause_s
from memplane.sync.store import (
    ABSENT,
    KEY_BYTES_MAX,
    ObjectInfo,
    StoredObject,
    display_key,
    from_name,
    order,
    to_name,
)

Provider = Literal["az", "s3", "gs"]


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How long a store may keep us waiting before it counts as not to be reached."""

    tries: int = 8
    """Of one request, after the first, while it is refused with 429 or 5xx, or the connection drops."""
    first_ms: int = 200
    most_ms: int = 10_000
    """Between two tries; the wait doubles from `first_ms`, with jitter."""
    total_s: int = 60
    connect_s: int = 5
    silent_s: int = 30
    """How long an answer may pause."""
    request_s: int = 300

    def retry(self) -> Any:
        return {
            "max_retries": self.tries,
            "retry_timeout": timedelta(seconds=self.total_s),
            "backoff": {
                "init_backoff": timedelta(milliseconds=self.first_ms),
                "max_backoff": timedelta(milliseconds=self.most_ms),
                "base": 2,
            },
        }

    def client(self) -> dict[str, Any]:
        return {
            "connect_timeout": timedelta(seconds=self.connect_s),
            "read_timeout": timedelta(seconds=self.silent_s),
            "timeout": timedelta(seconds=self.request_s),
        }


PATIENT: Final = RetryPolicy()

_SIGN_IN: Final[Mapping[str, str]] = {
    "az": "sign in with `az login`, or renew what AZURE_STORAGE_SAS_TOKEN, AZURE_STORAGE_ACCOUNT_KEY or "
    "AZURE_CLIENT_SECRET holds; the identity needs the role Storage Blob Data Contributor on the container",
    "s3": "renew AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or choose an AWS_PROFILE; "
    "the identity needs s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject",
    "gs": "sign in with `gcloud auth application-default login`, or point GOOGLE_APPLICATION_CREDENTIALS to a key; "
    "the identity needs the role Storage Object User on the bucket",
}
_NO_CONTAINER = re.compile(
    r"ContainerNotFound|NoSuchBucket|container does not exist|bucket does not exist", re.IGNORECASE
)
_STATUS = re.compile(r"status code: (\d{3})|\(code: (\d{3})\)")
_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
_CREDENTIAL = re.compile(
    r"token request|instance metadata|instance credentials|metadata service|azure cli|credential|"
    r"service account|authoriz|OAuth|169\.254\.169\.254|/latest/api/token|metadata\.google",
    re.IGNORECASE,
)
_DENIED = frozenset({"401", "403"})
_EXPIRED = frozenset({"ExpiredToken", "InvalidToken", "TokenRefreshRequired"})
"""S3 says so with the status 400."""
_LOCKED_OUT = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)
_OTHERS_FIRST: Final[Mapping[str, frozenset[str]]] = {
    "409": frozenset({"BlobAlreadyExists", "ConditionalRequestConflict", "OperationAborted"}),
    "412": frozenset({"ConditionNotMet", "PreconditionFailed"}),
}
"""Statuses, with their codes, of a condition that did not hold and that the client does not know as one."""
_LOST_TRIES = 3


class CloudObjects:
    """`ObjectStore` in a container or bucket, below a prefix."""

    def __init__(
        self,
        client: Any,
        *,
        provider: Provider,
        url: str,
        prefix: str,
        pause: Pause = time.sleep,
    ) -> None:
        self._client = client
        self._provider = provider
        self._url = url
        self._prefix = f"{to_name(prefix)}/" if prefix else ""
        self._pause = pause

    def __repr__(self) -> str:
        return f"CloudObjects({self._url!r})"

    @property
    def url(self) -> str:
        return self._url

    def get(self, key: str, *, unless: str | None = None) -> StoredObject | None:
        options: Any = {"if_none_match": unless} if unless else None
        for attempt in range(_LOST_TRIES):
            try:
                with self._translated(key):
                    got = obstore.get(self._client, self._name(key), options=options)
                    data = bytes(got.bytes())
                    if len(data) == got.meta["size"]:
                        return StoredObject(data, _etag(got.meta))
            except FileNotFoundError:
                return None
            except _Lost:
                pass
            self._pause(pause_s(attempt))  # it broke off, more often than the client tries by itself
        raise self._unavailable("its answers break off")

    def put(self, key: str, data: bytes, *, expect: str | None = None) -> str:
        name = self._name(key)
        for attempt in range(_LOST_TRIES):
            try:
                with self._translated(key, is_conditional=expect is not None):
                    put = obstore.put(
                        self._client, name, data, mode=self._mode(key, name, expect), use_multipart=False
                    )
                    return _etag(put)
            except FileNotFoundError:
                raise self._no_place() from None
            except _Lost:
                self._pause(pause_s(attempt))  # it may be written: then trying again says `Changed`
        raise self._unavailable("its answers are lost")

    def delete(self, key: str) -> None:
        for attempt in range(_LOST_TRIES):
            try:
                with self._translated(key):
                    obstore.delete(self._client, self._name(key))
            except FileNotFoundError:
                return
            except _Lost:
                self._pause(pause_s(attempt))
            else:
                return
        raise self._unavailable("its answers are lost")

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Providers list by whole parts and each in its own order, so the last part is looked at here."""
        whole, _, _ = prefix.rpartition("/")
        folder = self._prefix + (f"{to_name(whole)}/" if whole else "")
        found: dict[str, ObjectInfo] = {}
        try:
            with self._translated(prefix or "a listing"):
                for chunk in obstore.list(self._client, folder.rstrip("/") or None, chunk_size=1_000):
                    for meta in chunk:
                        key = from_name(meta["path"].removeprefix(self._prefix))
                        if key is not None and key.startswith(prefix):
                            found[key] = ObjectInfo(key, meta["size"], _etag(meta), meta["last_modified"])
        except FileNotFoundError:
            raise self._no_place() from None
        except _Lost:
            raise self._unavailable("its answers break off") from None
        yield from (found[key] for key in sorted(found, key=order))

    def _name(self, key: str) -> str:
        name = self._prefix + to_name(key)
        if len(name.encode()) > KEY_BYTES_MAX:
            raise InvalidRequest(f"{display_key(key)} is too long a key for {self._url}", field="key")
        return name

    def _mode(self, key: str, name: str, expect: str | None) -> Any:
        if expect is None:
            return "overwrite"
        if expect == ABSENT:
            return "create"
        if self._provider != "gs":
            return {"e_tag": expect}
        # Google compares generations, and neither listings nor writes say both: ask for the one that has our version.
        try:
            meta = obstore.head(self._client, name)
        except FileNotFoundError:
            raise Changed(key) from None
        if _etag(meta) != expect:
            raise Changed(key)
        return {"e_tag": expect, "version": meta["version"]}

    @contextmanager
    def _translated(self, key: str, *, is_conditional: bool = False) -> Iterator[None]:
        """The one place where the client's errors become ours. `FileNotFoundError` is left to the caller."""
        try:
            yield
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
            if is_conditional:
                raise Changed(key) from None
            raise self._unavailable("it refuses the request") from None
        except exceptions.NotModifiedError:
            raise Unchanged(key) from None
        except FileNotFoundError as exc:
            if _NO_CONTAINER.search(str(exc)):
                raise self._no_place() from None
            raise
        except exceptions.BaseError as exc:
            raise self._error(exc, key) from None
        except ValueError:
            raise InvalidRequest(
                f"{display_key(key)} is not a valid key for {self._url}", field="key"
            ) from None

    def _error(self, error: Exception, key: str) -> "MemplaneError | _Lost":
        said = str(error)
        found = _STATUS.search(said)
        status = (found[1] or found[2]) if found else ""
        code = _CODE.search(said)
        why = " ".join(part for part in (status, code[1] if code else "") if part)
        if isinstance(error, _LOCKED_OUT) or status in _DENIED or (code and code[1] in _EXPIRED):
            return RemoteDenied(f"{self._url} denied access ({why or 'denied'}): {self._sign_in}")
        if status in _OTHERS_FIRST and (code is None or code[1] in _OTHERS_FIRST[status]):
            return Changed(key)
        if status == "404" or _NO_CONTAINER.search(said):
            return self._no_place()
        return self._unavailable(f"status {why}") if status else self._unanswered(said)

    def _unanswered(self, said: str) -> "MemplaneError | _Lost":
        if _CREDENTIAL.search(said):
            return RemoteDenied(f"no valid credential for {self._url}: {self._sign_in}")
        return self._unavailable("no connection") if "kind: Connect" in said else _Lost()

    @property
    def _sign_in(self) -> str:
        return _SIGN_IN[self._provider]

    def _no_place(self) -> RemoteUnavailable:
        what = "container" if self._provider == "az" else "bucket"
        return RemoteUnavailable(f"no such {what}: {self._url}; create it or correct the name")

    def _unavailable(self, why: str) -> RemoteUnavailable:
        return RemoteUnavailable(f"{self._url} is unavailable: {why}; try again later")


class _Lost(Exception):
    """A request went out and no answer came back."""


def _etag(meta: Any) -> str:
    """A version as conditions want it: Azure leaves the quotes out in listings."""
    tag: str = meta["e_tag"] or ""
    return tag if tag.endswith('"') else f'"{tag}"'

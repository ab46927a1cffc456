"""Every error Memplane raises on purpose.

    MemplaneError
    ├── InvalidRequest          the caller can mend it
    │   ├── NotFound            nothing has this id or key in this space
    │   ├── PathTaken           a file or folder is there already
    │   ├── CollectionTaken     a collection has this id already
    │   ├── DocumentUnreadable  a document's text cannot be had
    │   └── LimitReached        a per-session limit is used up
    ├── RateLimited             a tenant called too often within a minute (try again)
    ├── QuotaExceeded           a tenant's quota of the billing cycle is used up
    ├── SettingsInvalid         an option or environment variable is off
    ├── StorageError            the data directory has a problem
    │   ├── StorageUnavailable  it cannot be opened or written
    │   │   └── StorageUnreachable  the database is away; nothing was written (try again)
    │   ├── StorageUncertain    the database went away in the middle of a commit
    │   ├── StorageBusy         another process held it too long (try again)
    │   ├── StorageFull         no room left; nothing was written
    │   ├── StorageCorrupt      a file is damaged
    │   ├── StorageTooNew       a newer Memplane wrote it
    │   └── KeyMismatch         the encryption key does not fit
    └── RemoteError             the object store has a problem
        ├── RemoteUnavailable   it cannot be reached, or keeps refusing (try again)
        ├── RemoteDenied        a credential is missing, expired, or may not do this
        ├── ManifestUnreadable  its manifest is damaged, or a newer Memplane wrote it
        ├── Changed             an object is not what it was; nothing was written
        └── Unchanged           an object is what it was

Adapters map these errors to the codes of their protocols (`ErrorCategory` is the default).
"""

from enum import Enum
from typing import ClassVar

_INVALID_PARAMS, _INTERNAL_ERROR = -32_602, -32_603  # JSON-RPC


class ErrorCategory(Enum):
    """What an error means to a client, whichever interface it uses. This is the only table from errors to statuses; an
    interface overrides a row for a single error where its protocol demands it."""

    # HTTP status, exit status of the command line, JSON-RPC code, whether a retry may succeed
    INVALID = (422, 1, _INVALID_PARAMS, False)
    NOT_FOUND = (404, 1, _INVALID_PARAMS, False)
    CONFLICT = (409, 1, _INVALID_PARAMS, False)
    UNAUTHENTICATED = (401, 1, _INVALID_PARAMS, False)
    FORBIDDEN = (403, 1, _INVALID_PARAMS, False)
    LIMITED = (429, 1, _INVALID_PARAMS, False)
    MISCONFIGURED = (500, 1, _INTERNAL_ERROR, False)
    UNAVAILABLE = (503, 4, _INTERNAL_ERROR, True)
    UPSTREAM = (502, 4, _INTERNAL_ERROR, False)
    STORAGE = (500, 4, _INTERNAL_ERROR, False)
    INTERNAL = (500, 70, _INTERNAL_ERROR, False)

    def __init__(self, http_status: int, exit_status: int, rpc_code: int, retryable: bool) -> None:  # noqa: FBT001 - a row
        self.http_status = http_status
        self.exit_status = exit_status
        self.rpc_code = rpc_code
        self.retryable = retryable

    @property
    def is_callers(self) -> bool:
        """Whether the caller can correct it, so that its message is shown."""
        return self.rpc_code == _INVALID_PARAMS


class MemplaneError(Exception):
    """Base of every error we raise on purpose; anything else is a bug."""

    code: ClassVar[str] = "internal"
    category: ClassVar[ErrorCategory] = ErrorCategory.INTERNAL
    retryable: ClassVar[bool] = False
    """As the category says, unless a class says otherwise."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "category" in vars(cls) and "retryable" not in vars(cls):
            cls.retryable = cls.category.retryable


class InvalidRequest(MemplaneError):
    """The request cannot be carried out as it is; the message says what to change."""

    code = "invalid_request"
    category = ErrorCategory.INVALID

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class NotFound(InvalidRequest):
    """Nothing in this space has this id or key."""

    code = "not_found"
    category = ErrorCategory.NOT_FOUND

    def __init__(self, what: str, name: str, *, place: str = "this space") -> None:
        super().__init__(f"no {what} {name!r} in {place}")
        self.what = what
        self.name = name


class PathTaken(InvalidRequest):
    """A file or folder has this path already; nothing is written over."""

    code = "path_taken"
    category = ErrorCategory.CONFLICT

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is there already; choose another path", field="path")
        self.path = path


class CollectionTaken(InvalidRequest):
    """A collection has this id already; it is left as it is."""

    code = "collection_taken"
    category = ErrorCategory.CONFLICT

    def __init__(self, collection_id: str) -> None:
        super().__init__(
            f"there is a collection {collection_id!r} already; choose another id, or delete it first",
            field="id",
        )
        self.collection_id = collection_id


class DocumentUnreadable(InvalidRequest):
    """A document's text cannot be had: damaged, locked, too large, or of a format that is not read."""

    code = "document_unreadable"

    def __init__(self, message: str) -> None:
        super().__init__(message, field="content")


class LimitReached(InvalidRequest):
    """A per-session limit is used up; a new session starts afresh."""

    code = "rate_limited"
    category = ErrorCategory.LIMITED

    def __init__(self, action: str, limit: int) -> None:
        super().__init__(f"a session may {action} {limit} times and this one has; start a new session")
        self.action = action
        self.limit = limit


class RateLimited(MemplaneError):
    """A tenant made as many calls within a minute as it may."""

    code = "rate_limited"
    category = ErrorCategory.LIMITED
    retryable = True

    def __init__(self, what: str, limit: int, retry_after_s: int) -> None:
        super().__init__(
            f"{limit} calls of {what} a minute are allowed; try again in {retry_after_s} seconds"
        )
        self.what = what
        self.limit = limit
        self.retry_after_s = retry_after_s


class QuotaExceeded(MemplaneError):
    """A tenant used up what its plan allows until the billing cycle ends."""

    code = "quota_exceeded"
    category = ErrorCategory.LIMITED

    def __init__(self, *, plan: str, used: int, limit: int, reset_date: str) -> None:
        super().__init__(
            f"the plan {plan} allows {limit:,} ingested events a billing cycle and they are used up; "
            f"the next one begins at {reset_date}"
        )
        self.plan = plan
        self.used = used
        self.limit = limit
        self.reset_date = reset_date


class SettingsInvalid(MemplaneError):
    """A setting or environment variable has a value that cannot be used."""

    code = "settings_invalid"
    category = ErrorCategory.MISCONFIGURED


class StorageError(MemplaneError):
    """The store could not do its work."""

    code = "storage"
    category = ErrorCategory.STORAGE


class StorageUnavailable(StorageError):
    """The data directory or one of its files cannot be opened or written."""

    code = "storage_unavailable"
    category = ErrorCategory.UNAVAILABLE
    retryable = False


class StorageUnreachable(StorageUnavailable):
    """The database cannot be reached, or takes no writes just now; nothing was written."""

    code = "storage_unreachable"
    category = ErrorCategory.UNAVAILABLE


class StorageUncertain(StorageError):
    """The connection was lost during a commit, so the data may or may not have been written. Check whether it is
    stored, or send it again with the same id, which stores it once."""

    code = "storage_uncertain"
    category = ErrorCategory.UNAVAILABLE
    retryable = False


class StorageBusy(StorageError):
    """Another process held the space longer than we wait; nothing was written."""

    code = "storage_busy"
    category = ErrorCategory.UNAVAILABLE


class StorageFull(StorageError):
    """No room is left on the device; nothing was written, what was stored before is intact."""

    code = "storage_full"


class StorageCorrupt(StorageError):
    """A file of this space is damaged; it is left exactly as it is."""

    code = "storage_corrupt"


class StorageTooNew(StorageError):
    """A newer Memplane wrote this space; an older one must not touch it."""

    code = "storage_too_new"


class KeyMismatch(StorageError):
    """The encryption key does not fit this space."""

    code = "key_mismatch"


class RemoteError(MemplaneError):
    """The object store has a problem; what is kept here is not concerned."""

    code = "remote_error"
    category = ErrorCategory.UPSTREAM


class RemoteUnavailable(RemoteError):
    """The object store cannot be reached, or keeps refusing; try again later."""

    code = "remote_unavailable"
    category = ErrorCategory.UNAVAILABLE


class RemoteDenied(RemoteError):
    """The object store does not take the credential: it is missing, expired, or may not do this."""

    code = "remote_denied"


class ManifestUnreadable(RemoteError):
    """The manifest of an object store is damaged, or a newer Memplane wrote it; it is left exactly as it is."""

    code = "manifest_unreadable"


class Changed(RemoteError):
    """The object is not what it was when it was read; nothing was written."""

    code = "changed"
    category = ErrorCategory.UNAVAILABLE

    def __init__(self, key: str) -> None:
        super().__init__(f"{key!r} was changed by another writer")
        self.key = key


class Unchanged(RemoteError):
    """The object is what it was when it was read last."""

    code = "unchanged"

    def __init__(self, key: str) -> None:
        super().__init__(f"{key!r} is as it was")
        self.key = key

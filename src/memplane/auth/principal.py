"""An authenticated caller: the only thing an adapter bases access decisions on."""

from enum import StrEnum
from typing import Protocol

import msgspec

from memplane.clock import Instant
from memplane.errors import ErrorCategory, MemplaneError

# A secret that does not show itself by accident.


class Secret:
    """Text that must not reach a log, a traceback or a `repr`; read it with `reveal()`."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a secret is not pickled")


ADAPTERS = frozenset({"plane", "facts", "mcp", "ipc", "tool", "v6", "proxy", "console", "system"})
"""Every name a credential may be limited to."""
CREDENTIAL_CHARS_MAX = 16_384
"""A longer string is not a credential and is not hashed."""


class Right(StrEnum):
    """What a credential may do. Rights are independent: write does not imply read."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    """Manage keys, spaces and callers of the tenant; implies the other two."""


class Unauthenticated(MemplaneError):
    """No credential, or an invalid one. The message gives the reason only to a caller who proved to hold the secret,
    such as the owner of an expired token."""

    code = "unauthenticated"
    category = ErrorCategory.UNAUTHENTICATED


class LockedOut(Unauthenticated):
    """Too many wrong credentials from one place; it must wait."""

    code = "locked_out"
    category = ErrorCategory.LIMITED
    retryable = True

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"too many wrong credentials; try again in {retry_after_s} seconds")
        self.retry_after_s = retry_after_s


class Forbidden(MemplaneError):
    """The credential is valid but does not give access to this."""

    code = "forbidden"
    category = ErrorCategory.FORBIDDEN


class KeySetUnavailable(MemplaneError):
    """The issuer's keys are unavailable, so its tokens cannot be verified."""

    code = "key_set_unavailable"
    category = ErrorCategory.UNAVAILABLE


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The caller: its tenant, name and what it may access."""

    tenant: str
    subject: str
    """The owner used by interfaces that name none: the `sub` of a token, the agent of `agent:secret`, or the name of
    a key."""
    spaces: frozenset[str] | None = None
    """None: every space of the tenant."""
    adapters: frozenset[str] | None = None
    """None: every adapter."""
    rights: frozenset[Right] = frozenset()
    credential: str = ""
    """The credential, for logs: the id of a key, or `jwt`. Never a secret."""
    expires: Instant | None = None
    """When the credential expires; long connections check it."""

    def check(self, right: Right, *, adapter: str, space: str | None = None) -> None:
        """Raise `Forbidden` unless this is allowed through that adapter in that space."""
        if self.adapters is not None and adapter not in self.adapters:
            raise Forbidden(f"this credential is not allowed to use the {adapter} interface")
        if right not in self.rights and Right.ADMIN not in self.rights:
            raise Forbidden(f"this credential may not {right.value} here")
        if space is not None and self.spaces is not None and space not in self.spaces:
            raise Forbidden("this credential does not open that space")

    def check_whole(self) -> None:
        """Raise `Forbidden` for a credential of some spaces only, where the answer is about all of them."""
        if self.spaces is not None:
            raise Forbidden("this credential opens some spaces only, and this is about all of them")

    def allows(self, right: Right, *, adapter: str, space: str) -> bool:
        """Whether `check` would pass."""
        try:
            self.check(right, adapter=adapter, space=space)
        except Forbidden:
            return False
        return True


class Authenticator(Protocol):
    """Turns a credential into a principal."""

    def authenticate(self, credential: str, *, peer: str) -> Principal:
        """`credential` is what follows `Bearer ` or is in `x-api-key`; `peer` is the client address.

        Raises `Unauthenticated`, or `LockedOut` if the peer guessed too often. Takes the same time for a wrong
        credential as for a right one, and honours revocations by other processes.
        """

"""A caller whose credential was checked: what every door decides by, and the only thing it decides by."""

from enum import StrEnum
from typing import Protocol

import msgspec

from memplane.clock import Instant
from memplane.errors import Category, MemplaneError

# A secret that does not show itself by accident.


class Secret:
    """Text that must not reach a log, a traceback or a `repr`. Whoever needs it says so: `reveal()`."""

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
"""A longer one is no credential, and nobody computes with it."""


class Right(StrEnum):
    """What a credential may do. Each stands for itself: who may write need not be able to read."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    """Keys, spaces and callers of the tenant; implies the other two."""


class Unauthenticated(MemplaneError):
    """No credential, or one that is not valid. The message says which part was wrong only to one who proved to hold the
    secret, such as the owner of a token that has expired."""

    code = "unauthenticated"
    category = Category.UNAUTHENTICATED


class LockedOut(Unauthenticated):
    """Too many wrong credentials from one place; it has to wait."""

    code = "locked_out"
    category = Category.LIMITED
    retryable = True

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"too many wrong credentials; try again in {retry_after_s} seconds")
        self.retry_after_s = retry_after_s


class Forbidden(MemplaneError):
    """The credential is valid, and does not reach what was asked for."""

    code = "forbidden"
    category = Category.FORBIDDEN


class KeySetUnavailable(MemplaneError):
    """The keys of the issuer of tokens cannot be had just now, so its tokens cannot be checked."""

    code = "key_set_unavailable"
    category = Category.UNAVAILABLE


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who knocks: of which tenant, under which name, and what they may open."""

    tenant: str
    subject: str
    """Whose space a door opens that names none: the `sub` of a token, the agent of `agent:secret`, the name of a key."""
    spaces: frozenset[str] | None = None
    """None: every space of the tenant."""
    doors: frozenset[str] | None = None
    """None: every door."""
    rights: frozenset[Right] = frozenset()
    credential: str = ""
    """Which credential it was, for logs: the id of a key, or `jwt`. Never a secret."""
    expires: Instant | None = None
    """When the credential ends; whoever keeps a connection open looks at it."""

    def check(self, right: Right, *, door: str, space: str | None = None) -> None:
        """Raise `Forbidden` unless this may be done through that door in that space."""
        if self.doors is not None and door not in self.doors:
            raise Forbidden(f"this credential does not open the {door} door")
        if right not in self.rights and Right.ADMIN not in self.rights:
            raise Forbidden(f"this credential may not {right.value} here")
        if space is not None and self.spaces is not None and space not in self.spaces:
            raise Forbidden("this credential does not open that space")

    def allows(self, right: Right, *, door: str, space: str) -> bool:
        """Whether `check` would let it pass."""
        try:
            self.check(right, door=door, space=space)
        except Forbidden:
            return False
        return True


class Authenticator(Protocol):
    """Turns a credential into a principal."""

    def authenticate(self, credential: str, *, peer: str) -> Principal:
        """`credential` is what follows `Bearer ` or stands in `x-api-key`; `peer` is the address it came from.

        Raises `Unauthenticated`, or `LockedOut` when the peer guessed too often. Takes as long for a wrong credential
        as for a right one, and looks at revocations of other processes.
        """

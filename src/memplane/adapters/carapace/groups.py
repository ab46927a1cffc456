"""Group membership. A connection sends only its identity, and the host maps it to a group."""

import re
from collections.abc import Mapping

import msgspec

from memplane.auth.principal import Forbidden, Principal, Right
from memplane.errors import InvalidRequest
from memplane.types import TENANT_DEFAULT

# Group names become file names, so the rule is strict: no name can lead to another path.


_GROUP = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,127}")
_PREVIEW_CHARS_MAX = 128


def check_group(name: str) -> str:
    if not isinstance(name, str) or not _GROUP.fullmatch(name):
        shown = str(name)[:_PREVIEW_CHARS_MAX]
        raise InvalidRequest(f'Invalid group name: "{shown}". Only [a-zA-Z0-9_-] allowed.', field="group")
    return name


ADAPTER = "ipc"
GROUP_DEFAULT = "default"

_IDENTITY_BYTES_MAX = 255
_HEX = "hex:"


class IpcSession(msgspec.Struct, frozen=True, kw_only=True):
    """One connection, as the host identifies it."""

    id: str
    group: str
    principal: Principal


class Groups:
    """The host's map from identity to group, and the default group."""

    def __init__(
        self,
        identities: Mapping[bytes, str] | None = None,
        *,
        default: str | None = GROUP_DEFAULT,
    ) -> None:
        """With `default=None`, identities that are not in the map are rejected."""
        self._identities = {name: check_group(group) for name, group in (identities or {}).items()}
        self._default = None if default is None else check_group(default)

    def session(self, identity: bytes) -> IpcSession:
        """Raises `Forbidden` for an identity without a group."""
        group = self._identities.get(identity, self._default)
        if group is None:
            raise Forbidden("This connection belongs to no group.")
        return IpcSession(id=session_id(identity), group=group, principal=_principal(group))


def _principal(group: str) -> Principal:
    return Principal(
        tenant=TENANT_DEFAULT,
        subject=group,
        spaces=frozenset({group}),
        adapters=frozenset({ADAPTER}),
        rights=frozenset({Right.READ, Right.WRITE}),
    )


def session_id(identity: bytes) -> str:
    return f"container-{identity.hex()}"


def read_identity(given: str) -> tuple[bytes, str]:
    """Parse `IDENTITY=GROUP`; a binary identity is given as `hex:…`."""
    name, sign, group = given.rpartition("=")
    if not sign or not name:
        raise InvalidRequest(f"{given!r} is not IDENTITY=GROUP", field="identity")
    try:
        identity = bytes.fromhex(name.removeprefix(_HEX)) if name.startswith(_HEX) else name.encode("utf-8")
    except ValueError as exc:
        raise InvalidRequest(
            f"{name!r}: hex: must be followed by pairs of hexadecimal digits", field="identity"
        ) from exc
    if not 0 < len(identity) <= _IDENTITY_BYTES_MAX:
        raise InvalidRequest(
            f"{name!r}: an identity must have 1 to {_IDENTITY_BYTES_MAX} bytes", field="identity"
        )
    return identity, check_group(group)

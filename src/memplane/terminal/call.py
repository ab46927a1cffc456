"""The context of one command: shared options, output, and the space it works on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import msgspec

from memplane.auth.identity import Identity
from memplane.config import Settings, is_url
from memplane.errors import InvalidRequest
from memplane.main import Memplane
from memplane.space import Space
from memplane.storage.work import Work
from memplane.telemetry import Listener
from memplane.terminal.exits import SpaceMissing
from memplane.terminal.output import Output
from memplane.transfer.move import MoveProgress, MoveReport
from memplane.types import Caller

SPACE_DEFAULT = "default"

_SPACES_NAMED_MAX = 10


class Installation(Protocol):
    """What the CLI needs of an installation; `memplane.main.Memplane` implements it."""

    settings: Settings
    work: Work | None

    def space(self, owner: str, *, caller: Caller | None = None) -> Space: ...

    def spaces(self) -> Iterator[str]: ...

    def has_space(self, owner: str, *, tenant: str = ...) -> bool: ...

    def rotate_key(self, new_key: str | None, *, progress: Callable[[str, bool], None]) -> int: ...

    def identity(self) -> Identity: ...

    def has_data(self) -> bool: ...

    def move_to(
        self, target: Any, progress: Callable[[MoveProgress], None], *, passes_max: int = ...
    ) -> MoveReport: ...

    def compare_with(self, target: Any, progress: Callable[[MoveProgress], None]) -> MoveReport: ...

    def close(self) -> None: ...

    def index_large_spaces(self) -> int:
        """See `Stores`."""


class Wiring(msgspec.Struct, frozen=True, kw_only=True):
    """Dependencies of the CLI, which itself opens no storage and reads no environment."""

    open: Callable[[str | None, Mapping[str, str]], Installation]
    """Open an installation from a data directory (None: the default) and an environment."""
    environment: Mapping[str, str]
    actor: str = ""
    open_served: Callable[[str | None, Mapping[str, str], Listener], Memplane] | None = None
    """Like `open`, for a server: enriches in the background and reports events to the listener."""


Run = Callable[[Wiring, Sequence[str]], int]
"""Runs another command line and returns its exit code."""


class CommandContext:
    """One command's context. Opens the installation on first use; the caller must call `close`."""

    def __init__(
        self,
        wiring: Wiring,
        *,
        run: Run,
        data: str | None = None,
        space: str | None = None,
        json: bool = False,
    ) -> None:
        self.wiring = wiring
        self.run = run
        self.out = Output(json=json)
        self._defaults: Mapping[str, str] = {}
        self._data = _non_empty(data, "--data")
        self._space = _non_empty(space, "--space")

    def use(self, defaults: Mapping[str, str]) -> None:
        """Set defaults for unset environment variables; call this before the plane is opened."""
        self._defaults = defaults

    @cached_property
    def plane(self) -> Installation:
        return self.wiring.open(self._data, {**self._defaults, **self.wiring.environment})

    @property
    def data(self) -> str | None:
        """The value of `--data`."""
        return self._data

    @property
    def directory(self) -> Path:
        """The directory of this machine's own files."""
        return self.plane.settings.folder

    @property
    def place(self) -> str:
        """The data directory or database URL, without its password."""
        settings = self.plane.settings
        return settings.place if is_url(settings.data) else str(settings.folder)

    @cached_property
    def identity(self) -> Identity:
        return self.plane.identity()

    @property
    def space_option(self) -> str | None:
        """The value of `--space`, if given."""
        return self._space

    def name_space(self, name: str | None) -> None:
        """Set the space from an argument; it must not contradict `--space`."""
        if name is None:
            return
        if self._space is not None and self._space != name:
            raise InvalidRequest(f"conflicting spaces {name!r} and {self._space!r}; give only one")
        self._space = _non_empty(name, "SPACE")

    @property
    def space_name(self) -> str:
        return self._space or self.wiring.environment.get("MEMPLANE_SPACE") or SPACE_DEFAULT

    def space(self) -> Space:
        """The space to write to; the first write creates it."""
        return self.plane.space(self.space_name, caller=Caller(self.wiring.actor, "cli"))

    def existing_space(self) -> Space:
        """The space to read; raises instead of creating a missing one."""
        names = list(self.plane.spaces())
        if self.space_name not in names:
            raise SpaceMissing(
                f"no space {self.space_name!r} in {self.place}; {_existing(names)}", field="space"
            )
        return self.space()

    def close(self) -> None:
        if "identity" in self.__dict__:
            self.identity.close()
        if "plane" in self.__dict__:
            self.plane.close()


def _non_empty(value: str | None, option: str) -> str | None:
    """Reject an empty option: in a script it is an unset variable, not a request for the default."""
    if value == "":
        raise InvalidRequest(f"{option} is empty; give a name or leave the option out")
    return value


def _existing(names: list[str]) -> str:
    if not names:
        return "there are no spaces yet"
    more = f" and {len(names) - _SPACES_NAMED_MAX} more" if len(names) > _SPACES_NAMED_MAX else ""
    return f"existing spaces: {', '.join(names[:_SPACES_NAMED_MAX])}{more}"

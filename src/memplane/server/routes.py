"""Which route a request takes. It is looked for segment by segment in the path as it was sent, so that an encoded
slash belongs to a name and never to the path."""

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

import msgspec

from memplane.console.links import ROOT
from memplane.server.endpoint import AsgiRoute, Route
from memplane.server.refusal import HttpError

_PATH_MARK = ":path"
_VERSION = "/v1"


class RouteMatch(msgspec.Struct, frozen=True):
    """A route and the parameters of its path."""

    route: Route
    path: dict[str, str]


class _Part(NamedTuple):
    """One piece of a template: fixed text, or the name of a parameter."""

    fixed: str | None = None
    name: str = ""
    many: bool = False


class _Pattern:
    """A path template, taken apart."""

    def __init__(self, template: str) -> None:
        self._parts = [_part(piece) for piece in template.removeprefix("/").split("/")]

    def match(self, segments: list[str]) -> dict[str, str] | None:
        """The parameters. A name that spans segments ends where what follows it first fits; the last takes the rest."""
        return self._match(segments, 0, 0)

    def _match(self, segments: list[str], at: int, place: int) -> dict[str, str] | None:
        if place == len(self._parts):
            return {} if at == len(segments) else None
        part = self._parts[place]
        if part.many:
            return self._match_many(part, segments, at, place)
        if at == len(segments):
            return None
        segment = segments[at]
        if (segment != part.fixed) if part.fixed is not None else not segment:
            return None
        rest = self._match(segments, at + 1, place + 1)
        if rest is None or part.fixed is not None:
            return rest
        return {part.name: segment, **rest}

    def _match_many(self, part: _Part, segments: list[str], at: int, place: int) -> dict[str, str] | None:
        if place == len(self._parts) - 1:
            return {part.name: "/".join(segments[at:])}
        following = self._parts[place + 1].fixed
        for end in range(at + 1, len(segments)):
            if following is not None and segments[end] != following:
                continue
            rest = self._match(segments, end, place + 1)
            if rest is not None and (found := "/".join(segments[at:end])):
                return {part.name: found, **rest}
        return None


def _part(piece: str) -> _Part:
    if not piece.startswith("{"):
        return _Part(fixed=piece)
    name = piece[1:-1]
    return _Part(name=name.removesuffix(_PATH_MARK), many=name.endswith(_PATH_MARK))


class Routes:
    """All routes. A fixed path wins over one with parameters."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._fixed: dict[str, list[Route]] = {}
        self._patterns: list[tuple[_Pattern, Route]] = []
        for route in routes:
            if "{" in route.path:
                self._patterns.append((_Pattern(route.path), route))
            else:
                self._fixed.setdefault(route.path, []).append(route)

    def find(self, method: str | None, raw_path: bytes) -> RouteMatch:
        """The route; `method` None is a websocket. Raises a 404, or a 405 with what is allowed."""
        path, segments = _decoded(raw_path)
        candidates = [RouteMatch(route, {}) for route in self._fixed.get(path, ())]
        if path.count("/") != len(segments):  # an encoded slash: part of a name, so of no fixed path
            candidates = []
        if not candidates:
            matched = ((pattern.match(segments), route) for pattern, route in self._patterns)
            candidates = [RouteMatch(route, found) for found, route in matched if found is not None]
        if not candidates:
            raise HttpError(404, "not_found", f"nothing is at this path; {self._hint(path)}")
        for found in candidates:
            if method in methods_of(found.route) or (method is None and _is_websocket(found.route)):
                return found
        allowed = sorted({name for found in candidates for name in methods_of(found.route)} - {None})
        if not allowed:
            raise HttpError(426, "upgrade_required", "this path speaks websockets", {"upgrade": "websocket"})
        verbs = ", ".join(str(name) for name in allowed)
        what = (
            f"this path speaks no websockets; it takes {verbs}"
            if method is None
            else f"this path takes {verbs}"
        )
        raise HttpError(405, "method_not_allowed", what, {"allow": verbs})

    def _hint(self, path: str) -> str:
        """What whoever came here may have meant: a person in the console has no use for a list of calls."""
        there = f"{_VERSION}{path}"
        if there in self._fixed:
            return f"{there} is there, so end the base URL in {_VERSION}"
        return "every page is below a space" if path.startswith(f"{ROOT}/") else "/docs lists every call"


def methods_of(route: Route) -> frozenset[str]:
    if _is_websocket(route):
        return frozenset()
    given = frozenset(route.methods)
    return given | {"HEAD"} if "GET" in given else given


def _is_websocket(route: Route) -> bool:
    return isinstance(route, AsgiRoute) and route.websocket


def _decoded(raw_path: bytes) -> tuple[str, list[str]]:
    try:
        segments = [unquote_to_bytes(part).decode("utf-8") for part in raw_path.split(b"/")[1:]]
    except UnicodeDecodeError as exc:
        raise HttpError(400, "malformed_path", "the path is not percent-encoded UTF-8") from exc
    return "/" + "/".join(segments), segments

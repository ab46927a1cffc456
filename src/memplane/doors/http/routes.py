"""Which route a request takes. It is looked for segment by segment in the path as it was sent, so that an encoded
slash belongs to a name and never to the path."""

from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

import msgspec

from memplane.doors.http.endpoint import AsgiRoute, Route
from memplane.doors.http.refusal import Refused

_PATH_MARK = ":path"


class Found(msgspec.Struct, frozen=True):
    """A route and the parameters of its path."""

    route: Route
    path: dict[str, str]


class _Pattern:
    """A path template, taken apart."""

    def __init__(self, template: str) -> None:
        parts = template.removeprefix("/").split("/")
        self.rest = (
            parts.pop()[1:-1].removesuffix(_PATH_MARK) if parts[-1].endswith(_PATH_MARK + "}") else None
        )
        self.parts = [(part[1:-1], None) if part.startswith("{") else (None, part) for part in parts]

    def match(self, segments: list[str]) -> dict[str, str] | None:
        if len(segments) < len(self.parts) or (self.rest is None and len(segments) != len(self.parts)):
            return None
        found: dict[str, str] = {}
        for (name, fixed), segment in zip(self.parts, segments, strict=False):
            if name is None and segment != fixed:
                return None
            if name is not None and not segment:
                return None
            if name is not None:
                found[name] = segment
        if self.rest is not None:
            found[self.rest] = "/".join(segments[len(self.parts) :])
        return found


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

    def find(self, method: str | None, raw_path: bytes) -> Found:
        """The route; `method` None is a websocket. Raises a 404, or a 405 with what is allowed."""
        path, segments = _decoded(raw_path)
        candidates = [Found(route, {}) for route in self._fixed.get(path, ())]
        if path.count("/") != len(segments):  # an encoded slash: part of a name, so of no fixed path
            candidates = []
        if not candidates:
            matched = ((pattern.match(segments), route) for pattern, route in self._patterns)
            candidates = [Found(route, found) for found, route in matched if found is not None]
        if not candidates:
            raise Refused(404, "not_found", "nothing is at this path; /docs lists every call")
        for found in candidates:
            if method in methods_of(found.route) or (method is None and _is_websocket(found.route)):
                return found
        allowed = sorted({name for found in candidates for name in methods_of(found.route)} - {None})
        if not allowed:
            raise Refused(426, "upgrade_required", "this path speaks websockets", {"upgrade": "websocket"})
        verbs = ", ".join(str(name) for name in allowed)
        raise Refused(405, "method_not_allowed", f"this path takes {verbs}", {"allow": verbs})


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
        raise Refused(400, "malformed_path", "the path is not percent-encoded UTF-8") from exc
    return "/" + "/".join(segments), segments

"""Sparklines and the graph layout. The layout depends only on the facts. This module returns numbers and text; a
template renders them as escaped SVG."""

from collections.abc import Iterable, Sequence

import msgspec

from memplane.clock import DAY, to_datetime
from memplane.space.graph import Graph, name_of
from memplane.types import Memory

BAR = 4
BAR_HEIGHT = 24

ROW = 44
NODE_HEIGHT = 30
_COLUMNS = (0, 360, 720, 1_080)
"""The columns: names that point to the subject, the subject, its objects, and their objects."""
NODE_WIDTH = 190
_MARGIN = 8
_LABEL_CHARS = 22
_EDGE_CHARS = 20
_STRAIGHT = 100
"""The last part of every edge is horizontal, so its label fits above it."""


class Bar(msgspec.Struct, frozen=True):
    """One day."""

    x: int
    height: float


class Sparkline(msgspec.Struct, frozen=True):
    """Activity as bars, and a text alternative."""

    bars: tuple[Bar, ...]
    words: str


class Node(msgspec.Struct, frozen=True):
    """A subject or an object of facts."""

    x: int
    y: int
    name: str
    label: str
    column: int


class Edge(msgspec.Struct, frozen=True):
    """A fact that connects two nodes."""

    x1: int
    y1: int
    x2: int
    y2: int
    label: str
    memory: Memory

    @property
    def path(self) -> str:
        bent = self.x2 - _STRAIGHT
        middle = (self.x1 + bent) // 2
        return f"M{self.x1} {self.y1} C{middle} {self.y1} {middle} {self.y2} {bent} {self.y2} H{self.x2}"


class GraphLayout(msgspec.Struct, frozen=True):
    """The complete layout."""

    width: int
    height: int
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def spark(days: Sequence[int], first_day: int) -> Sparkline:
    most = max(days, default=0)
    bars = tuple(
        Bar(BAR * place, round(max(1.0, BAR_HEIGHT * count / most), 1))
        for place, count in enumerate(days)
        if count
    )
    if not most:
        return Sparkline(bars, f"No entries in {len(days)} days")
    busiest = to_datetime((first_day + days.index(most)) * DAY)
    return Sparkline(
        bars, f"{sum(days):,} entries in {len(days)} days, most on {busiest:%Y-%m-%d} ({most:,})"
    )


def drawn(graph: Graph) -> GraphLayout:
    """Arrange the nodes in columns from left to right. The same facts always give the same layout."""
    named = _grouped(graph.facts)
    nodes: dict[tuple[int, str], Node] = {}
    edges: list[Edge] = []
    third: dict[str, list[Memory]] = {}
    for memory in graph.further:
        third.setdefault(memory.subject or "", []).append(memory)
    row = 0
    for name, facts in named.items():
        children = third.get(name, [])
        nodes[2, name] = _node(2, row, name, facts[0].object_text or "")
        for place, memory in enumerate(children):
            child = name_of(memory)
            nodes.setdefault((3, child), _node(3, row + place, child, memory.object_text or ""))
            edges.append(_edge(nodes[2, name], nodes[3, child], [memory]))
        row += max(1, len(children))
    naming = _by_subject(graph.naming)
    height = max(row, len(naming), 1)
    middle = _node(1, 0, graph.subject, graph.subject)
    middle = msgspec.structs.replace(middle, y=_MARGIN + (height - 1) * ROW // 2)
    nodes[1, graph.subject] = middle
    for name, facts in named.items():
        edges.append(_edge(middle, nodes[2, name], facts))
    for place, (name, facts) in enumerate(naming.items()):
        nodes[0, name] = _node(0, place, name, name)
        edges.append(_edge(nodes[0, name], middle, facts))
    return _fitted(nodes.values(), edges, height)


def _grouped(facts: Iterable[Memory]) -> dict[str, list[Memory]]:
    """Group facts by object, sorted by predicate."""
    found: dict[str, list[Memory]] = {}
    for memory in sorted(facts, key=lambda memory: (memory.predicate or "", name_of(memory), memory.id)):
        found.setdefault(name_of(memory), []).append(memory)
    return found


def _by_subject(facts: Iterable[Memory]) -> dict[str, list[Memory]]:
    found: dict[str, list[Memory]] = {}
    for memory in sorted(facts, key=lambda memory: (memory.subject or "", memory.predicate or "", memory.id)):
        found.setdefault(memory.subject or "", []).append(memory)
    return found


def _node(column: int, row: int, name: str, label: str) -> Node:
    return Node(_COLUMNS[column] + _MARGIN, _MARGIN + row * ROW, name, _cut(label, _LABEL_CHARS), column)


def _edge(left: Node, right: Node, facts: Sequence[Memory]) -> Edge:
    half = NODE_HEIGHT // 2
    label = ", ".join(dict.fromkeys(memory.predicate or "" for memory in facts))
    return Edge(
        left.x + NODE_WIDTH, left.y + half, right.x, right.y + half, _cut(label, _EDGE_CHARS), facts[0]
    )


def _fitted(nodes: Iterable[Node], edges: Iterable[Edge], rows: int) -> GraphLayout:
    """Crop the layout to the columns that have nodes."""
    nodes, edges = tuple(nodes), tuple(edges)
    left = min(node.x for node in nodes) - _MARGIN
    right = max(node.x for node in nodes) + NODE_WIDTH + _MARGIN
    move = msgspec.structs.replace
    return GraphLayout(
        right - left,
        rows * ROW + _MARGIN,
        tuple(move(node, x=node.x - left) for node in nodes),
        tuple(move(edge, x1=edge.x1 - left, x2=edge.x2 - left) for edge in edges),
    )


def _cut(text: str, chars_max: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= chars_max else f"{text[: chars_max - 1]}…"

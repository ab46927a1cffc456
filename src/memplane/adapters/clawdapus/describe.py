"""`/.claw-describe.json`: what this service offers, in the words that `claw up` reads."""

import msgspec

from memplane.server.endpoint import Call, Response, json_response

TOKEN_VARIABLE = "MEMPLANE_TOKEN"  # noqa: S105 - the name of a variable
"""The variable in which a subscribing service holds the key that its proxy sends."""


class Operation(msgspec.Struct, frozen=True):
    """Where one operation is."""

    path: str


class Memory(msgspec.Struct, frozen=True):
    """The operations of a memory service."""

    recall: Operation
    retain: Operation
    forget: Operation


class Auth(msgspec.Struct, frozen=True):
    """Which credential is projected."""

    type: str
    env: str


class Offered(msgspec.Struct, frozen=True):
    """An endpoint beside the operations."""

    method: str
    path: str
    description: str


class Descriptor(msgspec.Struct, frozen=True):
    """A descriptor of version 2, the first that knows memory."""

    version: int
    description: str
    memory: Memory
    endpoints: tuple[Offered, ...]
    auth: Auth


DESCRIPTOR = Descriptor(
    version=2,
    description="Memplane: durable, governed, query-aware memory for agents",
    memory=Memory(Operation("/recall"), Operation("/retain"), Operation("/forget")),
    endpoints=(
        Offered("GET", "/health", "Whether the service is up"),
        Offered("GET", "/history/{agent_id}", "What an agent said and heard, one JSON object a line"),
    ),
    auth=Auth("bearer", TOKEN_VARIABLE),
)


def describe(_call: Call) -> Response:
    return json_response(DESCRIPTOR)

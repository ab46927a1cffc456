"""`/.claw-describe.json`: what this service offers, in the words that `claw up` reads."""

import msgspec
from starlette.responses import Response

from memplane.server.endpoint import HttpCall
from memplane.server.responses import json_response

TOKEN_VARIABLE = "MEMPLANE_TOKEN"  # noqa: S105 - the name of a variable
"""The variable in which a subscribing service holds the key that its proxy sends."""


class DescriptorOperation(msgspec.Struct, frozen=True):
    """Where one operation is."""

    path: str


class DescriptorMemory(msgspec.Struct, frozen=True):
    """The operations of a memory service."""

    recall: DescriptorOperation
    retain: DescriptorOperation
    forget: DescriptorOperation


class DescriptorAuth(msgspec.Struct, frozen=True):
    """Which credential is projected."""

    type: str
    env: str


class DescriptorEndpoint(msgspec.Struct, frozen=True):
    """An endpoint beside the operations."""

    method: str
    path: str
    description: str


class Descriptor(msgspec.Struct, frozen=True):
    """A descriptor of version 2, the first that knows memory."""

    version: int
    description: str
    memory: DescriptorMemory
    endpoints: tuple[DescriptorEndpoint, ...]
    auth: DescriptorAuth


DESCRIPTOR = Descriptor(
    version=2,
    description="Memplane: durable, governed, query-aware memory for agents",
    memory=DescriptorMemory(
        DescriptorOperation("/recall"), DescriptorOperation("/retain"), DescriptorOperation("/forget")
    ),
    endpoints=(
        DescriptorEndpoint("GET", "/health", "Whether the service is up"),
        DescriptorEndpoint(
            "GET", "/history/{agent_id}", "What an agent said and heard, one JSON object a line"
        ),
    ),
    auth=DescriptorAuth("bearer", TOKEN_VARIABLE),
)


def describe(_call: HttpCall) -> Response:
    return json_response(DESCRIPTOR)

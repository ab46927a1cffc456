"""`/.claw-describe.json`: the service descriptor that `claw up` reads."""

import msgspec
from starlette.responses import Response

from memplane.server.endpoint import HttpCall
from memplane.server.responses import json_response

TOKEN_VARIABLE = "MEMPLANE_TOKEN"  # noqa: S105 - a variable name
"""The environment variable of a subscribing service with the key that its proxy sends."""


class DescriptorOperation(msgspec.Struct, frozen=True):
    """The path of one operation."""

    path: str


class DescriptorMemory(msgspec.Struct, frozen=True):
    """The operations of a memory service."""

    recall: DescriptorOperation
    retain: DescriptorOperation
    forget: DescriptorOperation


class DescriptorAuth(msgspec.Struct, frozen=True):
    """The credential that is projected."""

    type: str
    env: str


class DescriptorEndpoint(msgspec.Struct, frozen=True):
    """An additional endpoint."""

    method: str
    path: str
    description: str


class Descriptor(msgspec.Struct, frozen=True):
    """A version 2 descriptor; version 1 does not support memory."""

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
            "GET", "/history/{agent_id}", "An agent's session history, one JSON object per line"
        ),
    ),
    auth=DescriptorAuth("bearer", TOKEN_VARIABLE),
)


def describe(_call: HttpCall) -> Response:
    return json_response(DESCRIPTOR)

"""What the server says of itself, to everybody: is it up, is it ready, what can it do."""

from importlib.metadata import version

import msgspec

from memplane.config import Settings
from memplane.doors.http.endpoint import Call, Door, Endpoint, Response, json_response
from memplane.engine import Engine

NAME = "system"


class Health(msgspec.Struct):
    """The process answers. Two clients look for two different words."""

    status: str
    ok: bool
    version: str


def door(plane: Engine, settings: Settings) -> Door:  # noqa: ARG001
    return Door(
        name=NAME,
        routes=(
            Endpoint(
                method="GET",
                path="/healthz",
                door=NAME,
                summary="Is the process up?",
                handle=health,
                right=None,
                answer=Health,
            ),
        ),
    )


def health(_call: Call) -> Response:
    return json_response(Health("ok", ok=True, version=version("memplane")))

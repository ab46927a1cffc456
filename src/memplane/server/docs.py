"""`/docs`: Swagger UI over `/openapi.json`. Its files come from the package `swagger-ui-py`, so nothing is loaded from
another host."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from starlette.responses import FileResponse, Response

from memplane.server.endpoint import HttpCall
from memplane.server.errors import HttpError
from memplane.server.responses import HTML

PATH = "/docs"
FILES = f"{PATH}/{{name}}"

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "referrer-policy": "no-referrer",
}

_NAMES = frozenset({"swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"})
_DAY = "public, max-age=86400"
_SCRIPT = "start.js"

_PAGE = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Memplane API</title>
<link rel="icon" href="{PATH}/favicon-32x32.png">
<link rel="stylesheet" href="{PATH}/swagger-ui.css">
<div id="swagger-ui"></div>
<noscript>This page needs JavaScript. The description is at <a href="/openapi.json">/openapi.json</a>.</noscript>
<script src="{PATH}/swagger-ui-bundle.js"></script>
<script src="{PATH}/{_SCRIPT}"></script>
</html>
"""

_START = """SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  tryItOutEnabled: true,
  validatorUrl: null,
});
"""


def page(_call: HttpCall) -> Response:
    return Response(_PAGE, headers=HEADERS, media_type=HTML)


def file(call: HttpCall) -> Response:
    """A script, a style sheet or an image of the page."""
    name = call.path_params["name"]
    if name == _SCRIPT:
        return Response(_START, headers={"cache-control": _DAY}, media_type="text/javascript")
    if name not in _NAMES:
        raise HttpError(404, "not_found", "nothing is at this path; /docs lists every call")
    return FileResponse(_directory() / name, headers={"cache-control": _DAY})


@cache
def _directory() -> Path:
    """Found without importing the package, which would load parts that are not needed."""
    spec = find_spec("swagger_ui")
    assert spec is not None, "swagger-ui-py is a dependency"
    assert spec.origin is not None, "it is a package with files"
    return Path(spec.origin).parent / "static"

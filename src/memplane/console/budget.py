"""The token budget page: the tokens an agent loads at session start, by layer."""

from starlette.responses import Response

from memplane.auth.principal import Right
from memplane.console.views import Row, space_of, space_page
from memplane.server.endpoint import HttpCall, Query
from memplane.sync.budget import budget_of

_SAMPLE = 100
"""Items of each layer that are sampled; counting all of a large space takes seconds."""


def show(call: HttpCall) -> Response:
    space = space_of(call)
    budget = budget_of(space, sample=None if call.query["exact"] else _SAMPLE)
    full = max(budget.tokens, budget.budget_tokens, 1)
    shares = [(layer, 100 * layer.tokens / full) for layer in budget.layers]
    return space_page(
        call,
        "budget.html",
        "budget",
        space,
        budget=budget,
        shares=shares,
        mark=100 * budget.budget_tokens / full,
    )


def rows() -> list[Row]:
    return [("GET", "/space/{space}/budget", show, Right.READ, (Query(name="exact", default=""),))]

"""Serve pictures and conversations over HTTP, with one shared `Limner` and a budget per user.

Run it with `uvicorn web_service:app`; it needs `pip install starlette uvicorn`.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

import limner
from limner.errors import (
    BudgetExceeded,
    Denied,
    ImageError,
    NotFound,
    ProviderError,
    ProviderRefused,
    UserError,
)

BUDGET_USD = 20.00
USER_BUDGET_USD = 0.50
STATUSES = {
    NotFound: 404,
    UserError: 400,
    ImageError: 415,
    BudgetExceeded: 402,
    Denied: 403,
    ProviderRefused: 422,
    ProviderError: 502,
}


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncGenerator[None]:
    # Leaving the block waits for paid calls that are still running.
    async with limner.Limner(budget_usd=BUDGET_USD) as app.state.lim:
        yield


def limner_of(request: Request) -> limner.Limner:
    lim: limner.Limner = request.app.state.lim
    return lim.scope(request.headers.get("x-user", "guest"), budget_usd=USER_BUDGET_USD)


async def draw(request: Request) -> Response:
    asked: dict[str, str] = await request.json()
    drawn = await limner_of(request).generate(asked["prompt"])
    return JSONResponse({"picture": f"/pictures/{drawn.image.handle}", "cost_usd": drawn.cost_usd})


async def inspect(request: Request) -> Response:
    """The body is the picture."""
    question = request.query_params.get("question", "What is in this picture?")
    seen = await limner_of(request).inspect(await request.body(), question)
    return JSONResponse({"text": seen.text, "cost_usd": seen.cost_usd})


async def picture(request: Request) -> Response:
    info = await limner_of(request).picture(request.path_params["handle"]).info()
    return Response(info.data, media_type=info.mime)


async def chat(request: Request) -> Response:
    asked: dict[str, str] = await request.json()
    return StreamingResponse(events(limner_of(request), asked), media_type="text/event-stream")


async def events(lim: limner.Limner, asked: dict[str, str]) -> AsyncGenerator[str]:
    """If the client hangs up, the turn is interrupted and its session is free again."""
    try:
        async with limner.Agent(lim, session=asked.get("session")) as agent:
            async for event in agent.run(asked["text"]):
                told = {**event.as_json(), "session": agent.session_id}
                yield f"data: {json.dumps(told)}\n\n"
    except limner.LimnerError as error:
        yield f"data: {json.dumps({'type': 'error', 'error': error.as_json()})}\n\n"


async def spend(request: Request) -> Response:
    spent = await limner_of(request).spend()
    return JSONResponse({"cost_usd": spent.own_usd, "budget_usd": USER_BUDGET_USD})


async def failed(_: Request, error: Exception) -> Response:
    assert isinstance(error, limner.LimnerError)
    found = (status for kind, status in STATUSES.items() if isinstance(error, kind))
    return JSONResponse({"error": error.as_json()}, status_code=next(found, 500))


app = Starlette(
    lifespan=lifespan,
    exception_handlers={limner.LimnerError: failed},
    routes=[
        Route("/draw", draw, methods=["POST"]),
        Route("/inspect", inspect, methods=["POST"]),
        Route("/pictures/{handle}", picture),
        Route("/chat", chat, methods=["POST"]),
        Route("/spend", spend),
    ],
)

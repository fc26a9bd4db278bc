"""Takes orders and shows them. One fault is in here on purpose: `cacp probe` finds it."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

CENTS = {"tea": 450, "cup": 1295, "pot": 3990}
MANY = 10


class NewOrder(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    sku: Literal["tea", "cup", "pot"]
    quantity: int = Field(ge=1, le=100)


def total_of(order: NewOrder) -> float:
    """The price in cents; ten and more cost 5 % less."""
    full = CENTS[order.sku] * order.quantity
    return full if order.quantity < MANY else full * 0.95


async def place(request: Request) -> JSONResponse:
    try:
        order = NewOrder.model_validate_json(await request.body())
    except ValidationError as error:
        wrong = error.errors()[0]
        where = ".".join(map(str, wrong["loc"])) or "the body"
        return JSONResponse({"error": f"{where}: {wrong['msg']}"}, 400)
    placed = {"id": len(orders) + 1, **order.model_dump(), "total": total_of(order)}
    orders.append(placed)
    return JSONResponse(placed, 201)


async def show(request: Request) -> JSONResponse:
    number = int(request.path_params["id"])
    if not 1 <= number <= len(orders):
        return JSONResponse({"error": f"there is no order {number}"}, 404)
    return JSONResponse(orders[number - 1])


orders: list[dict[str, object]] = []
app = Starlette(
    routes=[
        Route("/orders", place, methods=["POST"]),
        Route("/orders/{id:int}", show, methods=["GET"]),
    ]
)

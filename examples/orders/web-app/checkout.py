"""Places orders at the backend, and says what they cost."""

import httpx


class OrderRefusedError(Exception):
    """The backend took no order; the text says why."""


def place_order(backend: httpx.Client, sku: str, quantity: int) -> str:
    """What the customer reads. Raises OrderRefusedError."""
    answer = backend.post("/orders", json={"sku": sku, "quantity": quantity})
    if answer.status_code == httpx.codes.BAD_REQUEST:
        raise OrderRefusedError(answer.json()["error"])
    order = answer.raise_for_status().json()
    return f"Order {order['id']}: {order['quantity']} x {order['sku']}, {price(order['total'])}"


def price(cents: int) -> str:
    """
    >>> price(4702)
    '47.02 EUR'
    """
    return f"{cents // 100}.{cents % 100:02d} EUR"

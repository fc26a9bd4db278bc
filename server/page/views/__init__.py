"""The views. Importing this package declares them."""

from server.page.view import VIEWS
from server.page.views import (
    activity,
    attention,
    contract,
    feature,
    graph,
    handoffs,
    history,
    mail,
    matrix,
    projects,
    runs,
    search,
)

__all__ = [
    "VIEWS",
    "activity",
    "attention",
    "contract",
    "feature",
    "graph",
    "handoffs",
    "history",
    "mail",
    "matrix",
    "projects",
    "runs",
    "search",
]

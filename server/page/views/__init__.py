"""The views. Importing this package declares them."""

from server.page.view import VIEWS
from server.page.views import (
    activity,
    agents,
    attention,
    contract,
    feature,
    graph,
    handoffs,
    health,
    history,
    mail,
    matrix,
    mesh,
    projects,
    runs,
    search,
)

__all__ = [
    "VIEWS",
    "activity",
    "agents",
    "attention",
    "contract",
    "feature",
    "graph",
    "handoffs",
    "health",
    "history",
    "mail",
    "matrix",
    "mesh",
    "projects",
    "runs",
    "search",
]

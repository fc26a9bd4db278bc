"""The views. Importing this package declares them."""

from server.page.view import VIEWS
from server.page.views import (
    activity,
    agents,
    attention,
    feature,
    graph,
    health,
    history,
    matrix,
    mesh,
    projects,
    runs,
)

__all__ = [
    "VIEWS",
    "activity",
    "agents",
    "attention",
    "feature",
    "graph",
    "health",
    "history",
    "matrix",
    "mesh",
    "projects",
    "runs",
]

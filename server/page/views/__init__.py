"""The views. Importing this package declares them."""

from server.page.view import VIEWS
from server.page.views import (
    activity,
    attention,
    feature,
    graph,
    history,
    matrix,
    projects,
    runs,
)

__all__ = [
    "VIEWS",
    "activity",
    "attention",
    "feature",
    "graph",
    "history",
    "matrix",
    "projects",
    "runs",
]

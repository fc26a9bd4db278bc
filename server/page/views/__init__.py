"""The views. Importing this package declares them."""

from server.page.view import VIEWS
from server.page.views import (
    activity,
    attention,
    contract,
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
    "contract",
    "feature",
    "graph",
    "history",
    "matrix",
    "projects",
    "runs",
]

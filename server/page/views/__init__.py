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
__all__ = ["VIEWS", "attention", "runs"]
from server.page.views import attention, handoffs, mail, search

__all__ = ["VIEWS", "attention", "handoffs", "mail", "search"]
from server.page.views import attention, handoffs, mail, runs, search

__all__ = ["VIEWS", "attention", "handoffs", "mail", "runs", "search"]

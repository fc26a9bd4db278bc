"""The views. Importing this package declares them."""

from server.page.view import VIEWS
from server.page.views import attention, graph, matrix, runs

__all__ = ["VIEWS", "attention", "graph", "matrix", "runs"]

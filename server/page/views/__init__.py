"""The views. Importing this package declares them."""

from server.page.view import VIEWS
from server.page.views import attention, runs

__all__ = ["VIEWS", "attention", "runs"]

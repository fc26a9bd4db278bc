"""Fixtures of the tests of views."""

from tests.server.methods.cacp.conftest import duo

__all__ = ["duo"]

"""Dialects of contracts, and what a change of a contract means (design, N2)."""

from typing import Literal

DialectName = Literal[
    "openapi",
    "asyncapi",
    "json-schema",
    "graphql",
    "protobuf",
    "endpoint",
    "shorthand",
    "opaque",
]
Effect = Literal["compatible", "breaking", "unknown"]
Verdict = Literal["same", "compatible", "breaking", "unknown"]
Direction = Literal["request", "response"]
"""Who sends: the consumer a request, the provider a response (and what it emits)."""
BrokenSide = Literal["provider", "consumer", "both"]

"""What an agent's user has told it, in words and data that name no tool and no method."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(slots=True)
class Software:
    """What the agents build. It has a fault, that a test of all parts together shows until the
    agent of `culprit` has read about it and repaired it."""

    culprit: str
    fault: str
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class Sheet:
    """The goals of an agent."""

    repo: str
    opening: str
    """Its user's first words: a line `- WISH {details}` for each thing to do before all else."""
    software: Software
    files: tuple[str, ...]
    """What it changes when it builds."""
    needs: Json = field(default_factory=dict)
    """What an interface must have, or it asks for a change."""
    question: Json = field(default_factory=dict)
    """What it must know before it builds."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """What it answers to a question with this word."""

    @property
    def agent(self) -> str:
        return f"aid://example.com/{self.repo}@1.0.0"

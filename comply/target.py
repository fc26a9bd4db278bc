"""What the runner needs of a subject: the protocols that each transport fulfils."""

from typing import Protocol

from pydantic import JsonValue

from comply.files import Case
from comply.record import Transcript
from schemas.jsont import ComplianceTest, JsontStep


class HarnessError(Exception):
    """The runner or the test is at fault; nothing is known about the subject."""


class SubjectUnreachable(Exception):
    """The subject does not answer at its address, or can't be started."""


class CaseSession(Protocol):
    """One test's connection to its subject. `record` holds every message of both sides."""

    record: Transcript
    variables: dict[str, JsonValue]

    async def start(self) -> None:
        """Start the subject."""

    async def act(self, step: JsontStep) -> None:
        """Carry out a step `send`, `request`, `run` or `newSession`."""

    async def close(self) -> str:
        """Release the subject, started or not. Returns its stderr."""


class Target(Protocol):
    """An agent or node under test."""

    @property
    def name(self) -> str: ...

    @property
    def facts(self) -> dict[str, str]: ...

    async def missing(self, test: ComplianceTest) -> str | None:
        """Why this test does not apply to the target; None when it does.

        Raises Finding when earlier tests have shown that it would fail.
        """

    def concerns(self, test: ComplianceTest) -> bool:
        """Whether the target speaks the protocol version that the test is for."""

    async def open(self, case: Case) -> CaseSession:
        """A session that is not started yet."""

    async def learn(self) -> None:
        """Fill `facts`, once, before the first test."""

    async def clean(self) -> list[str]:
        """Remove what the tests have made at the target, after the last of them. Returns a line for
        what was removed, and one for each kind of things that stay."""

    async def close(self) -> None: ...

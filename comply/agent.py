"""An agent over stdio as a target: its capabilities, versions, and what it never answers."""

import asyncio
from dataclasses import dataclass, field
from functools import partial

from pydantic import JsonValue

from comply import versions
from comply.files import Case
from comply.matching import at
from comply.open_turns import PLAIN, Turns, left_open
from comply.preconditions import unmet
from comply.report_limits import REASON, cut
from comply.result import Finding, NotApplicable
from comply.run import to_its_end
from comply.settings import AgentServer
from comply.stdio import OtherVersion, StdioSession, Unanswered, initialises
from comply.target import HarnessError, SubjectUnreachable
from comply.template import text_of
from schemas.jsont import ComplianceTest, JsonObject

START_SECONDS = 30.0
TURN_SECONDS = 60.0
LEARN_SECONDS = 0.3
PREVIEW_SECONDS = 20.0
OPENING: list[JsonValue] = [{"newSession": {}}]


@dataclass(slots=True)
class StdioTarget:
    """An agent, and what it offered when the runner first initialised it."""

    name: str
    server: AgentServer
    facts: dict[str, str] = field(default_factory=dict)
    offers: JsonObject = field(default_factory=dict)
    """In version 1: the agent's capabilities, and the answer to `session/new`."""
    preview: JsonObject = field(default_factory=dict)
    """The same for version 2."""
    spoken: frozenset[int] = frozenset()
    """The versions that it negotiates."""
    start_seconds: float = START_SECONDS
    """Seconds to answer the first `initialize`, and the first `session/new`."""
    locked: str | None = None
    """Why it opens no session: it demands authentication."""
    silent: dict[str, Finding] = field(default_factory=dict)
    """The methods that it is known never to answer, with the finding."""
    turn_seconds: float = TURN_SECONDS
    """Seconds to end a plain turn."""
    turns: dict[int, Turns] = field(default_factory=lambda: {1: Turns(), 2: Turns()})
    """By version of the protocol."""

    async def learn(self) -> None:
        """Initialise once in each version, and open a session if the agent allows it.

        Raises SubjectUnreachable when the agent can't be started.
        """
        await self._learn()
        if "initialize" not in self.silent:
            await self._learn_preview()
        self.facts["Protocol"] = ", ".join(map(str, sorted(self.spoken))) or "unknown"

    async def _learn_preview(self) -> None:
        """Learn what it offers in version 2, if it negotiates that. Nothing here is judged."""
        test = _own(2, OPENING)
        session = StdioSession(self.server, test, min(self.start_seconds, PREVIEW_SECONDS))
        try:
            async with asyncio.timeout(PREVIEW_SECONDS):
                await session.start()
                self.spoken |= {2}
                self.preview = session.capabilities
                self.facts.setdefault("Caps", cut(text_of(self.preview), REASON))
                await session.act(test.steps[0])
                self.preview = {**session.capabilities, "opened": session.opened}
        except (Finding, NotApplicable, HarnessError, TimeoutError):
            return
        finally:
            await to_its_end(session.close())

    async def _learn(self) -> None:
        test = _own(1, OPENING)
        session = StdioSession(self.server, test, self.start_seconds)
        try:
            await session.start()
            self.spoken |= {1}
            self.offers = session.capabilities
            self.facts["Caps"] = cut(text_of(self.offers), REASON)
            await session.act(test.steps[0])
            self.offers = {**self.offers, "session": session.opened}
            await asyncio.sleep(LEARN_SECONDS)
        except OtherVersion as reason:
            self.facts["Notes"] = cut(str(reason), REASON)
        except NotApplicable as reason:
            self.facts["Notes"] = self.locked = cut(str(reason), REASON)
        except Finding as finding:
            self.facts["Notes"] = cut(str(finding), REASON)
            if isinstance(finding, Unanswered) and session.record.ended is None:
                # Otherwise each test would wait for it again.
                self.silent[finding.method] = finding
        except HarnessError as error:
            raise SubjectUnreachable(str(error)) from None
        finally:
            log = await to_its_end(session.close())
            for known in self.silent.values():
                known.log = log
        if "initialize" in self.silent:
            return
        modes = at(self.offers, "session.modes.availableModes")
        self.facts["Modes"] = _ids(modes, "id") or "not advertised"
        commands = [
            listed
            for frame in session.record.frames
            if (listed := at(frame.message, "params.update.availableCommands")) is not None
        ]
        self.facts["Commands"] = _ids(commands[-1] if commands else None, "name") or "none"

    async def missing(self, test: ComplianceTest) -> str | None:
        absent = self._absent(test)
        if absent is None:
            ask = partial(self._plain_turn, test.protocol_version)
            turns = self.turns[test.protocol_version]
            try:
                await turns.check(test, ask, self.turn_seconds)
            except Finding as finding:
                self.facts["Turns"] = f"{finding}; tests that need one failed without being run"
                raise
        return absent

    async def _plain_turn(self, version: int) -> str | None:
        """The end of its stderr if it leaves a plain prompt open, else None."""
        test = _own(version, PLAIN)
        session = StdioSession(self.server, test, self.start_seconds)
        frames, log, silent = session.record.frames, "", False
        try:
            await session.start()
            for step in test.steps:
                await session.act(step)
            await session.record.until(lambda: not left_open(version, frames), self.turn_seconds)
            silent = session.record.ended is None and left_open(version, frames)
        except (Finding, NotApplicable, HarnessError):
            pass
        finally:
            log = await to_its_end(session.close())
        return log if silent else None

    def _absent(self, test: ComplianceTest) -> str | None:
        if test.transport != "stdio":
            return f"is for {test.transport}, not for an agent over stdio"
        if "initialize" not in self.silent and not self.concerns(test):
            return f"does not speak version {test.protocol_version} of the protocol"
        if (unknown := self._known_silence(test)) is not None:
            return unknown
        if self.locked is not None and any(step.new_session for step in test.steps):
            return self.locked
        return unmet(
            test.preconditions,
            agent=self.offers if test.protocol_version == 1 else self.preview,
            client=versions.client_capabilities(test),
            settings={name for name, value in self.server if value},
        )

    def _known_silence(self, test: ComplianceTest) -> str | None:
        """Why the test is NA for an agent that never answered `initialize`. Raises Finding."""
        needed = {"initialize", "authenticate"} if not initialises(test) else set()
        if test.severity == "optional" and "initialize" in needed & self.silent.keys():
            return str(self.silent["initialize"])
        if any(step.new_session for step in test.steps):
            needed.add("session/new")
        for method in needed & self.silent.keys():
            raise self.silent[method]
        return None

    def concerns(self, test: ComplianceTest) -> bool:
        # An agent that answers nothing fails in version 1 only.
        spoken = self.spoken or (frozenset({1}) if "initialize" in self.silent else frozenset())
        return not spoken or test.protocol_version in spoken

    async def open(self, case: Case) -> StdioSession:
        turns = self.turns[case.test.protocol_version]
        return StdioSession(self.server, case.test, over=partial(turns.note, case.id, case.test))

    async def clean(self) -> list[str]:
        return []

    async def close(self) -> None:
        """Nothing outlives its test."""


def _own(version: int, steps: list[JsonValue]) -> ComplianceTest:
    """A test of the runner's own, to learn what an agent does."""
    about = {"title": "own", "severity": "required", "protocolVersion": version}
    return ComplianceTest.model_validate({**about, "steps": steps})


def _ids(items: JsonValue, name: str) -> str:
    entries = items if isinstance(items, list) else []
    return cut("/".join(text_of(at(item, name)) for item in entries), REASON)

"""Packages made from the specification's own words are taken as they stand, to the end.

The text of §4, §6 and §7.1 is quoted below and read: each member, each literal of a union, with
and without what is optional.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
import rfc8785
from uuid_utils import uuid7

from tests.support.in_process_node import ANA, BEN, CLEO, HUMAN, InProcessNode
from tests.support.mail_agent import agent
from tests.support.node import Node

SPECIFICATION = """
export type ACPPriority = "low" | "normal" | "high" | "critical";

export interface ACPExternalRef {
  type: "workq_item" | "file" | "branch" | "pr" | "url" | "session" | "ticket" | "other";
  value: string;              // identifier, absolute path, URL, etc.
  description?: string;
  version?: string;           // git sha, semantic version, timestamp, etc.
}

export interface ACPArtifactRef {
  type: "file" | "branch" | "pr" | "url" | "session" | "workq_item";
  path: string;               // absolute path, URL, or durable identifier
  sha256?: string;
  description?: string;
  version?: string;
  size_bytes?: number;
  required?: boolean;
}

export interface ACPHandoffPackage {
  protocol: "acp";
  version: "1.0.0";
  handoff_id: string;         // UUIDv7
  thread_id: string;

  task: {
    task_id: string;
    title: string;
    objective: string;
    success_criteria: string[];
    deadline?: string;
    priority: ACPPriority;
    external_refs?: ACPExternalRef[];
  };

  context: {
    summary: string;
    constraints?: string[];
    assumptions?: string[];
    open_questions?: string[];
    known_risks?: string[];
  };

  work_state: {
    status: "not_started" | "in_progress" | "blocked" | "review";
    percent_complete?: number;  // 0..100
    completed_steps?: string[];
    next_step: string;
    branch?: string;
    worktree_path?: string;
    test_status?: "passing" | "failing" | "untested";
  };

  artifacts: Array<{
    artifact_id: string;
    ref: ACPArtifactRef;
  }>;

  provenance: {
    origin_session: string;
    related_sessions?: string[];
    decision_refs?: string[];
    message_thread_refs?: string[];
    handoff_chain?: string[];  // ordered owner chain for cycle prevention
  };

  policy: {
    classification: "internal" | "restricted";
    requires_human_approval: boolean;
    export_restrictions?: string[];
  };

  verification: {
    schema_version: "1.0.0";
    package_hash: string;     // sha256 of canonicalized package
  };
}
"""

_TOKEN = re.compile(r'"[^"]*"|\w+|[{}<>\[\]|?:;=]')


class Reader:
    """Makes values of the types that the quoted text declares; `turn` says which of several."""

    def __init__(self, turn: int, *, whole: bool) -> None:
        """`whole`: with every optional member, else with none."""
        self._turn = turn
        self._whole = whole
        self._types = self._declared()

    def package(self) -> Any:
        return self._value(iter(self._types["ACPHandoffPackage"]), "")

    @staticmethod
    def _declared() -> dict[str, list[str]]:
        """The tokens of each type, by its name."""
        bare = re.sub(r"//[^\n]*", "", SPECIFICATION)
        found = {}
        for text in re.split(r"\bexport (?:type|interface)\b", bare)[1:]:
            name, *tokens = _TOKEN.findall(text)
            found[name] = [one for one in tokens if one != "="] + ["end"]
        return found

    def _value(self, tokens: Iterator[str], name: str) -> Any:
        """A value of the type that comes next."""
        token = next(tokens)
        if token == "{":
            return self._object(tokens)
        if token == "Array":
            assert next(tokens) == "<"
            one = self._value(tokens, name)
            assert next(tokens) == ">"
            return [one]
        if token.startswith('"'):
            return token.strip('"')
        if token in self._types:
            return self._union(iter(self._types[token]), name)[0]
        return {"string": self._text(name), "number": self._number(), "boolean": self._odd()}[token]

    def _object(self, tokens: Iterator[str]) -> dict[str, Any]:
        made = {}
        while (name := next(tokens)) != "}":
            optional = next(tokens) == "?"
            if optional:
                assert next(tokens) == ":"
            value, _ = self._union(tokens, name)
            if self._whole or not optional:
                made[name] = value
        return made

    def _union(self, tokens: Iterator[str], name: str) -> tuple[Any, str]:
        """A value of a member's type, and the token after it."""
        values = [self._value(tokens, name)]
        while (token := next(tokens)) == "|":
            values.append(self._value(tokens, name))
        value = values[self._turn % len(values)]
        if token == "[":
            assert next(tokens) == "]"
            return [value], next(tokens)
        return value, token

    def _text(self, name: str) -> str:
        known = {
            "handoff_id": str(uuid7()),
            "deadline": "2026-02-21T09:30:00Z",
            "path": "/srv/_shared/teamspaces/core/notes.md",
            "sha256": hashlib.sha256(b"notes").hexdigest(),
            "handoff_chain": ANA,
        }
        return known.get(name, f"{name}-{self._turn}")

    def _number(self) -> float:
        return (0, 62.5, 100)[self._turn % 3]

    def _odd(self) -> bool:
        return self._turn % 2 == 1


def literal(turn: int, *, whole: bool) -> dict[str, Any]:
    """A package of §7.1, with its right hash."""
    made: dict[str, Any] = Reader(turn, whole=whole).package()
    for one in made["artifacts"]:
        # A whole number of bytes; it is `percent_complete` that has no such bound.
        if "size_bytes" in one["ref"]:
            one["ref"]["size_bytes"] = 5
    return hashed(made)


def hashed(made: dict[str, Any]) -> dict[str, Any]:
    made["verification"].pop("package_hash", None)
    made["verification"]["package_hash"] = hashlib.sha256(rfc8785.dumps(made)).hexdigest()
    return made


def test_the_text_is_read_whole() -> None:
    made = literal(0, whole=True)
    assert list(made) == [
        "protocol",
        "version",
        "handoff_id",
        "thread_id",
        "task",
        "context",
        "work_state",
        "artifacts",
        "provenance",
        "policy",
        "verification",
    ]
    assert made["task"]["external_refs"][0]["type"] == "workq_item"
    assert set(made["artifacts"][0]["ref"]) == {
        *("type", "path", "sha256", "description", "version", "size_bytes", "required")
    }
    assert "handoff_chain" not in literal(0, whole=False)["provenance"]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("turn", range(8))
def test_a_literal_package_goes_through_every_state(
    desk: InProcessNode, turn: int, whole: bool
) -> None:
    """§7.1, §7.2: what is stored is what was sent, with the chain."""
    given = literal(turn, whole=whole)
    made = desk.handoff(ANA, "initiate", to=BEN, reason="r", package=given)["handoff"]
    assert (made["handoffId"], made["threadId"]) == (given["handoff_id"], given["thread_id"])
    stored = desk.handoff(BEN, "get", handoff_id=made["handoffId"])["package"]
    given["provenance"]["handoff_chain"] = [ANA]
    assert stored == hashed(given)
    seen = [made["status"]]
    about = {"handoff_id": made["handoffId"]}
    read = given["verification"]["package_hash"]
    seen.append(desk.handoff(BEN, "accept", package_hash=read, **about)["handoff"]["status"])
    if given["policy"]["requires_human_approval"]:
        desk.call("acp/approve", HUMAN, human=True, message_id=made["handoffId"])
    for who, action, more in (
        (BEN, "activate", {}),
        (BEN, "complete", {"summary": "done"}),
        (ANA, "close", {}),
    ):
        seen.append(desk.handoff(who, action, **about, **more)["handoff"]["status"])
    waits = "validating" if given["policy"]["requires_human_approval"] else "accepted"
    assert seen == ["proposed", waits, "activated", "completed", "closed"]


def test_a_draft_of_a_literal_package_is_proposed_as_it_is(desk: InProcessNode) -> None:
    given = literal(0, whole=True)
    offer = {"to": BEN, "reason": "r", "package": given}
    made = desk.handoff(ANA, "initiate", draft=True, **offer)["handoff"]
    assert desk.handoff(ANA, "propose", handoff_id=made["handoffId"])["handoff"]["status"] == (
        "proposed"
    )
    assert desk.handoff(ANA, "initiate", draft=True, **offer)["handoff"]["status"] == "proposed"


def test_what_was_received_is_handed_on_with_its_chain_put_forward(desk: InProcessNode) -> None:
    """A receiver that goes on with the package that it got, and puts itself at the chain's end."""
    first = desk.accepted(package=literal(0, whole=True))
    given = desk.handoff(BEN, "get", handoff_id=first)["package"]
    given |= {"handoff_id": str(uuid7()), "thread_id": "onward"}
    given["provenance"]["handoff_chain"].append(BEN)
    onward = desk.handoff(BEN, "initiate", to=CLEO, reason="r", package=hashed(given))
    assert onward["handoff"]["handedOnFrom"] == first


def test_a_literal_package_goes_over_the_wire(node: Node) -> None:
    ana, ben = agent(node, "ana"), agent(node, "ben")
    given = literal(0, whole=True)
    given["task"]["task_id"] = f"task-{ana.id}"
    given["provenance"]["handoff_chain"] = [ana.id]
    made = ana.call("handoff", action="initiate", to=ben.id, reason="r", package=hashed(given))
    handoff_id = made["handoff"]["handoffId"]
    assert ben.call("handoff", action="accept", handoff_id=handoff_id)["handoff"]["status"] == (
        "accepted"
    )

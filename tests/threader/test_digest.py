"""Digests (agent-threader-v2 §10)."""

from tests.threader.builders import make_manifest
from threader.digest import manifest_digest, sha256, task_definition


def test_spelled_out_defaults_change_nothing() -> None:
    plain = make_manifest([{"id": "A"}])
    spelled = make_manifest([{"id": "A", "priority": 0, "context_refs": []}], {"concurrency": 1})
    assert manifest_digest(plain) == manifest_digest(spelled)
    assert manifest_digest(plain) != manifest_digest(make_manifest(["B"]))


def test_the_definition_covers_what_invalidates_an_attempt() -> None:
    def digest(**fields: object) -> str:
        return task_definition(make_manifest([{"id": "A"}, {"id": "B", **fields}]).tasks[1])

    assert digest() == digest(priority=4, timeout_sec=5)
    assert len({digest(), digest(prompt_ref="x"), digest(depends_on=["A"])}) == 3
    assert digest() != digest(verify_profile="other")


def test_sha256() -> None:
    assert sha256(b"").startswith("sha256:e3b0c442")

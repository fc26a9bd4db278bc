"""Digests (agent-threader-v2 §10)."""

from tests.threader.builders import make_manifest
from threader.digest import is_digest_of, manifest_digest, sha256, task_definition


def test_spelled_out_defaults_change_nothing() -> None:
    plain = make_manifest([{"id": "A"}])
    spelled = make_manifest([{"id": "A", "priority": 0, "context_refs": []}], {"concurrency": 1})
    assert manifest_digest(plain) == manifest_digest(spelled)
    assert manifest_digest(plain) != manifest_digest(make_manifest(["B"]))


def test_the_digests_of_the_former_release_are_known() -> None:
    """As it made them; a run under way goes on although the manifest has new fields since."""
    plain = make_manifest(["A"])
    assert is_digest_of(
        "sha256:94245c41af774607e388548083aad56aca694d428398cb14d88226e2ac5af1c4", plain
    )
    task = {"id": "A", "priority": 4, "timeout_sec": 60.5, "retry_policy": {"max_attempts": 2}}
    fields = {
        "worker": {"adapter": "command", "command": ["sh", "w.sh"]},
        "healer": {"adapter": "claude"},
        "isolation": "worktree",
    }
    policy = {"concurrency": 3, "failure_threshold": 0.5}
    former = "sha256:32a072f40dc599abf1bbf893a1a92e75725c6cb2560f3548f7201ac641772e29"
    assert is_digest_of(former, make_manifest([task, "B"], policy, **fields))
    changed = {**policy, "outage_pause_sec": 6}
    assert not is_digest_of(former, make_manifest([task, "B"], changed, **fields))


def test_the_definition_covers_what_invalidates_an_attempt() -> None:
    def digest(**fields: object) -> str:
        return task_definition(make_manifest([{"id": "A"}, {"id": "B", **fields}]).tasks[1])

    assert digest() == digest(priority=4, timeout_sec=5)
    assert len({digest(), digest(prompt_ref="x"), digest(depends_on=["A"])}) == 3
    assert digest() != digest(verify_profile="other")


def test_sha256() -> None:
    assert sha256(b"").startswith("sha256:e3b0c442")

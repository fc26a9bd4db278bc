"""What waits for each agent, and its keys."""

from server.domain.agent_list import WaitingWork
from server.store import agent_states, keys, pushes
from server.store.connection import Connection
from server.store.pushes import Webhook
from tests.server.store.conftest import PROJECT

ANNA, BERT = "aid://example.com/anna", "aid://example.com/bert"


def test_the_newest_active_key_stands_for_all(db: Connection) -> None:
    def add(name: str, at: int, **more: object) -> str | None:
        return keys.add(db, keys.new_key(), agent_id=name, repo="r", now=at, **more)  # type: ignore[arg-type]

    add(f"{ANNA}@1.0.0", 10, human=True)
    add(f"{ANNA}@2.0.0", 20, projects=[PROJECT])
    revoked = add(f"{ANNA}@3.0.0", 30)
    assert revoked is not None
    keys.revoke(db, revoked, now=31)
    add(BERT, 40, trust="known")
    known = agent_states.active_keys(db)
    assert known[ANNA] == ("verified", 20, 1, 2, True)
    assert known[BERT] == ("known", 40, 0, 1, False)


def test_agents_with_a_webhook(db: Connection) -> None:
    assert agent_states.announced(db) == set()
    pushes.put_webhook(db, ANNA, Webhook("w", "http://x", "2026-01-01T00:00:00Z"))
    assert agent_states.announced(db) == {ANNA}


def test_work_is_of_the_holders_of_repos_whom_it_concerns(db: Connection) -> None:
    db.execute(
        "INSERT INTO projects (project_id, name, objective, status, agreement_policy, created_at,"
        " stamp, signature, created_by) VALUES (?, 'n', 'o', 'planning', 'all', 1, 1, '{}', 'x')",
        (PROJECT,),
    )
    for repo, holder in (("r1", f"{ANNA}@1"), ("r2", f"{BERT}@1"), ("r3", f"{BERT}@2")):
        db.execute(
            "INSERT INTO repos (project_id, repo_id, name, role, language, relevant_paths, stamp,"
            " agent_id, claimed_at, renewed_at) VALUES (?, ?, ?, '', '', '[]', 1, ?, 1, 1)",
            (PROJECT, repo, repo, holder),
        )
    rows = [
        # For whoever holds r1; for all but r1; for all, but not for Bert.
        ("i1", "urgent", 7, "r1", "", ""),
        ("i2", "normal", 5, "", "r1", ""),
        ("i3", "normal", 3, "", "", f"{BERT}@9"),
    ]
    db.executemany(
        "INSERT INTO attention_openings (project_id, subject_id, item_id, kind, urgency, since,"
        f" repo_id, not_repo, not_agent, revision) VALUES ('{PROJECT}', 's', ?, 'respond', ?, ?, ?,"
        " ?, ?, 1)",
        rows,
    )
    db.execute("INSERT INTO mailboxes (address, high_water, created_at) VALUES (?, 4, '')", (BERT,))
    db.execute("UPDATE mailboxes SET read_count = 1")
    assert agent_states.work(db) == {
        ANNA: WaitingWork(items=2, urgent=1, since=3),
        # What waits for both of his repos counts once.
        BERT: WaitingWork(items=1, since=5, mail=3),
    }
    db.execute("DELETE FROM attention_openings")

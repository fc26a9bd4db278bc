-- Nothing is stored for a peer that has been removed, nor for an entity that an operator has dropped
-- while it was being tried: only a later change of it counts again.
-- name: put_undelivered(peer, entity, project_id, entity_id, seq, tries, reason)!
INSERT INTO undelivered (peer, entity, project_id, entity_id, seq, tries, reason)
SELECT agent_id, :entity, :project_id, :entity_id, :seq, :tries, :reason
FROM peers WHERE agent_id = :peer
ON CONFLICT (peer, entity, project_id, entity_id) DO UPDATE SET
    seq = excluded.seq, tries = excluded.tries, reason = excluded.reason, dropped = 0
WHERE undelivered.dropped = 0 OR excluded.seq > undelivered.seq;

-- name: note_undelivered(peer, entity, project_id, entity_id, reason)!
INSERT INTO undelivered (peer, entity, project_id, entity_id, seq, tries, reason)
SELECT agent_id, :entity, :project_id, :entity_id, cursor + 1, 0, :reason
FROM peers WHERE agent_id = :peer
ON CONFLICT DO NOTHING;

-- name: forget_undelivered(peer, entity, project_id, entity_id)!
DELETE FROM undelivered WHERE peer = :peer AND entity = :entity AND project_id = :project_id
                          AND entity_id = :entity_id;

-- name: all_undelivered()
SELECT peer, entity, project_id, entity_id, seq, tries, reason FROM undelivered
WHERE dropped = 0
ORDER BY peer, seq, entity, entity_id;

-- name: drop_undelivered(peer, entity_id)!
UPDATE undelivered SET dropped = 1
WHERE peer = :peer AND dropped = 0 AND (CAST(:entity_id AS TEXT) IS NULL OR entity_id = :entity_id);

-- name: forget_dropped(peer)!
DELETE FROM undelivered WHERE peer = :peer AND dropped <> 0;

-- name: forget_undelivered_of(peer)!
DELETE FROM undelivered WHERE peer = :peer;

-- name: stuck_undelivered(tries)^
SELECT count(*), count(DISTINCT peer) FROM undelivered WHERE tries >= :tries AND dropped = 0;

-- name: put_peer(agent_id, endpoint, repo_name, trust, at)!
INSERT INTO peers (agent_id, endpoint, repo_name, trust, registered_at, last_seen)
VALUES (:agent_id, :endpoint, :repo_name, :trust, :at, :at)
ON CONFLICT (agent_id) DO UPDATE SET
    endpoint = excluded.endpoint, repo_name = coalesce(excluded.repo_name, peers.repo_name),
    trust = excluded.trust,
    last_seen = excluded.last_seen;

-- name: put_peer_keys(agent_id, secret, key_id)!
UPDATE peers SET secret = :secret, key_id = :key_id WHERE agent_id = :agent_id;

-- name: put_peer_api_key(endpoint, api_key)!
INSERT INTO peer_api_keys (endpoint, api_key) VALUES (:endpoint, :api_key)
ON CONFLICT (endpoint) DO UPDATE SET api_key = excluded.api_key;

-- name: drop_peer_api_key(endpoint)!
DELETE FROM peer_api_keys WHERE endpoint = :endpoint;

-- name: peer_api_key(endpoint)$
SELECT api_key FROM peer_api_keys WHERE endpoint = :endpoint;

-- name: put_peer_cursor(agent_id, cursor, at)!
UPDATE peers SET cursor = :cursor,
                 last_seen = CASE WHEN last_seen < :at THEN :at ELSE last_seen END
WHERE agent_id = :agent_id;

-- name: peer_by_agent(agent_id)^
SELECT agent_id, endpoint, repo_name, trust, registered_at, last_seen, secret, key_id, cursor,
       retries, (SELECT api_key FROM peer_api_keys AS k WHERE k.endpoint = rtrim(peers.endpoint, '/'))
FROM peers WHERE agent_id = :agent_id;

-- name: all_peers()
SELECT agent_id, endpoint, repo_name, trust, registered_at, last_seen, secret, key_id, cursor,
       retries, (SELECT api_key FROM peer_api_keys AS k WHERE k.endpoint = rtrim(peers.endpoint, '/'))
FROM peers ORDER BY registered_at, agent_id;

-- name: put_peer_way(agent_id, came_by)!
UPDATE peers SET came_by = :came_by WHERE agent_id = :agent_id;

-- name: peers_by_way()
SELECT came_by, count(*) FROM peers GROUP BY came_by ORDER BY came_by;

-- name: peer_count()$
SELECT count(*) FROM peers;

-- name: remove_peer(agent_id)!
DELETE FROM peers WHERE agent_id = :agent_id;

-- name: retry_peer(agent_id)!
UPDATE peers SET retries = retries + 1 WHERE agent_id = :agent_id;

-- name: exchanged_document(peer_id, entity_id)$
SELECT document FROM exchanged WHERE peer_id = :peer_id AND entity_id = :entity_id;

-- name: put_exchanged(peer_id, entity_id, document)!
INSERT INTO exchanged (peer_id, entity_id, document) VALUES (:peer_id, :entity_id, :document)
ON CONFLICT (peer_id, entity_id) DO UPDATE SET document = excluded.document;

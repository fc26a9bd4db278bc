-- name: every_agent()
SELECT agent_id FROM keys WHERE revoked_at IS NULL
UNION SELECT agent FROM node_keys UNION SELECT agent FROM homes UNION SELECT agent_id FROM peers
ORDER BY 1;

-- name: node_key(agent)^
SELECT public_key, introduced_by FROM node_keys WHERE agent = :agent;

-- name: put_node_key(agent, public_key, introduced_by)!
INSERT INTO node_keys (agent, public_key, introduced_by)
VALUES (:agent, :public_key, :introduced_by)
ON CONFLICT (agent) DO UPDATE SET public_key = excluded.public_key,
                                  introduced_by = excluded.introduced_by;

-- name: forget_node_key(agent)!
DELETE FROM node_keys WHERE agent = :agent;

-- name: home_of(agent)$
SELECT node FROM homes WHERE agent = :agent;

-- name: put_home(agent, node)!
INSERT INTO homes (agent, node) VALUES (:agent, :node) ON CONFLICT DO NOTHING;

-- name: forget_homes(node)!
DELETE FROM homes WHERE node = :node;

-- name: insert_invite(invite_id, secret, created_at, expires_at)!
INSERT INTO invites (invite_id, secret, created_at, expires_at)
VALUES (:invite_id, :secret, :created_at, :expires_at);

-- name: all_invites()
SELECT invite_id, created_at, expires_at, used_by, revoked_at FROM invites
ORDER BY created_at, invite_id;

-- name: open_invite(invite_id, now)$
SELECT secret FROM invites
WHERE invite_id = :invite_id AND used_by IS NULL AND revoked_at IS NULL AND expires_at > :now;

-- name: use_invite(invite_id, agent)!
UPDATE invites SET used_by = :agent, secret = '' WHERE invite_id = :invite_id AND used_by IS NULL;

-- name: revoke_invite(invite_id, now)!
UPDATE invites SET revoked_at = :now, secret = ''
WHERE invite_id = :invite_id AND used_by IS NULL AND revoked_at IS NULL;

-- name: put_wanted(url, invite)!
INSERT INTO wanted_peers (url, invite) VALUES (:url, :invite)
ON CONFLICT (url) DO UPDATE SET invite = coalesce(excluded.invite, wanted_peers.invite), error = NULL;

-- name: all_wanted()
SELECT url, invite, error FROM wanted_peers ORDER BY url;

-- name: fail_wanted(url, error)!
UPDATE wanted_peers SET error = :error WHERE url = :url;

-- name: drop_wanted(url)!
DELETE FROM wanted_peers WHERE url = :url;

-- name: backlog(cursor, origin)$
SELECT count(*) FROM (
    SELECT DISTINCT entity, entity_id FROM changes
    WHERE seq > :cursor AND origin = :origin
      AND entity IN ('project', 'repo', 'contract', 'receipt', 'context', 'file', 'file_request')
    LIMIT 10000
) AS waiting;

-- name: oldest_waiting(cursor, origin)$
SELECT at FROM changes WHERE seq > :cursor AND origin = :origin
  AND entity IN ('project', 'repo', 'contract', 'receipt', 'context', 'file', 'file_request')
ORDER BY seq LIMIT 1;

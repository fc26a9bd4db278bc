-- name: insert_key(key_id, hash, agent_id, repo, trust, created_at, human, public_key)!
INSERT INTO keys (key_id, hash, agent_id, repo, trust, created_at, human, public_key)
VALUES (:key_id, :hash, :agent_id, :repo, :trust, :created_at, :human, :public_key)
ON CONFLICT (hash) DO NOTHING;

-- name: insert_key_project(key_id, project_id)!
INSERT INTO key_projects (key_id, project_id) VALUES (:key_id, :project_id);

-- name: key_by_hash(hash)^
SELECT agent_id, repo, trust, revoked_at,
       (SELECT json_group_array(project_id) FROM key_projects WHERE key_id = keys.key_id), human
FROM keys WHERE hash = :hash;

-- name: key_by_hash_postgresql(hash)^
SELECT agent_id, repo, trust, revoked_at,
       (SELECT coalesce(CAST(json_agg(project_id) AS TEXT), '[]') FROM key_projects WHERE key_id = keys.key_id), human
FROM keys WHERE hash = :hash;

-- name: all_keys()
SELECT key_id, agent_id, repo, trust, created_at, revoked_at,
       (SELECT json_group_array(project_id) FROM key_projects WHERE key_id = keys.key_id), human
FROM keys ORDER BY created_at, key_id;

-- name: all_keys_postgresql()
SELECT key_id, agent_id, repo, trust, created_at, revoked_at,
       (SELECT coalesce(CAST(json_agg(project_id) AS TEXT), '[]') FROM key_projects WHERE key_id = keys.key_id), human
FROM keys ORDER BY created_at, key_id;

-- name: runner_key(public_key)^
SELECT agent_id, repo, revoked_at,
       (SELECT json_group_array(project_id) FROM key_projects WHERE key_id = keys.key_id)
FROM keys WHERE public_key = :public_key;

-- name: runner_key_postgresql(public_key)^
SELECT agent_id, repo, revoked_at,
       (SELECT coalesce(CAST(json_agg(project_id) AS TEXT), '[]') FROM key_projects WHERE key_id = keys.key_id)
FROM keys WHERE public_key = :public_key;

-- name: revoke_key(revoked_at, key_id)!
UPDATE keys SET revoked_at = :revoked_at WHERE key_id = :key_id AND revoked_at IS NULL;

-- name: any_active_key()^
SELECT 1 FROM keys WHERE revoked_at IS NULL LIMIT 1;

-- A runner's key makes no agent of it: it signs what it ran, and nobody speaks for it.
-- name: agents_with_key(identity)
SELECT agent_id FROM keys
WHERE revoked_at IS NULL AND trust <> 'runner' AND substr(agent_id, 1, length(:identity)) = :identity;

-- name: operator_key()$
SELECT value FROM meta WHERE name = 'operator_key';

-- name: put_operator_key(hash)!
INSERT INTO meta (name, value) VALUES ('operator_key', :hash)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: drop_operator_key()!
DELETE FROM meta WHERE name = 'operator_key';

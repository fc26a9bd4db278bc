-- name: insert_token(token_id, project_id, agent_id, created_at, expires_at)!
INSERT INTO tokens (token_id, project_id, agent_id, created_at, expires_at)
VALUES (:token_id, :project_id, :agent_id, :created_at, :expires_at);

-- name: active_token(token_id)^
SELECT 1 FROM tokens WHERE token_id = :token_id AND revoked_at IS NULL;

-- name: all_tokens()
SELECT token_id, project_id, agent_id, created_at, expires_at, revoked_at
FROM tokens ORDER BY created_at, token_id;

-- name: revoke_token(revoked_at, token_id)!
UPDATE tokens SET revoked_at = :revoked_at WHERE token_id = :token_id AND revoked_at IS NULL;

-- name: insert_secret(value)!
INSERT INTO meta (name, value) VALUES ('secret', :value) ON CONFLICT (name) DO NOTHING;

-- name: node_secret()$
SELECT value FROM meta WHERE name = 'secret';

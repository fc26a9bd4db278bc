-- name: page_session(hash)^
SELECT session_id, key_hash, agent, token_hash, former_hash, confirmed, begun_at, renewed_at, used_at,
       expires_at
FROM page_sessions WHERE token_hash = :hash OR former_hash = :hash;

-- name: page_session_by_id(session_id)^
SELECT session_id, key_hash, agent, token_hash, former_hash, confirmed, begun_at, renewed_at, used_at,
       expires_at
FROM page_sessions WHERE session_id = :session_id;

-- name: put_page_session(session_id, key_hash, agent, token_hash, former_hash, confirmed, begun_at, renewed_at, used_at, expires_at)!
INSERT INTO page_sessions (session_id, key_hash, agent, token_hash, former_hash, confirmed, begun_at,
                           renewed_at, used_at, expires_at)
VALUES (:session_id, :key_hash, :agent, :token_hash, :former_hash, :confirmed, :begun_at, :renewed_at,
        :used_at, :expires_at)
ON CONFLICT (session_id) DO UPDATE SET token_hash = excluded.token_hash,
                                       former_hash = excluded.former_hash,
                                       confirmed = excluded.confirmed,
                                       renewed_at = excluded.renewed_at, used_at = excluded.used_at;

-- name: end_page_session(session_id)!
DELETE FROM page_sessions WHERE session_id = :session_id;

-- name: end_page_sessions_of(agent)!
DELETE FROM page_sessions WHERE agent = :agent;

-- name: sweep_page_sessions(sure)!
DELETE FROM page_sessions WHERE expires_at <= :sure;

-- name: end_older_page_sessions(agent, most)!
-- All but the sessions of an agent that were used last.
DELETE FROM page_sessions WHERE session_id IN (
    SELECT session_id FROM page_sessions WHERE agent = :agent
    ORDER BY used_at DESC, session_id LIMIT 1000000000 OFFSET :most);

-- name: put_page_link(code_hash, key_hash, made_at, expires_at)!
INSERT INTO page_links (code_hash, key_hash, made_at, expires_at)
VALUES (:code_hash, :key_hash, :made_at, :expires_at);

-- name: page_link(code_hash)^
SELECT key_hash, made_at, expires_at FROM page_links WHERE code_hash = :code_hash;

-- name: drop_page_link(code_hash)!
DELETE FROM page_links WHERE code_hash = :code_hash;

-- name: sweep_page_links(sure)!
DELETE FROM page_links WHERE expires_at <= :sure;

-- name: drop_older_page_links(key_hash, most)!
DELETE FROM page_links WHERE code_hash IN (
    SELECT code_hash FROM page_links WHERE key_hash = :key_hash
    ORDER BY made_at DESC, code_hash LIMIT 1000000000 OFFSET :most);

-- Sessions of people (or agents) who signed in to the page with a key, and the one-time links by which the
-- CLI signs a browser in. Of what the browser holds only hashes are kept. `former_hash` is the id before the
-- last renewal; `confirmed`: the browser has shown the current one. Times are stamps.
CREATE TABLE page_sessions (
    session_id  TEXT PRIMARY KEY,
    key_hash    TEXT NOT NULL,
    agent       TEXT NOT NULL,
    token_hash  TEXT NOT NULL UNIQUE,
    former_hash TEXT,
    confirmed   INTEGER NOT NULL,
    begun_at    BIGINT NOT NULL,
    renewed_at  BIGINT NOT NULL,
    used_at     BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX page_sessions_by_former ON page_sessions (former_hash);
CREATE INDEX page_sessions_by_agent ON page_sessions (agent, used_at);
CREATE TABLE page_links (
    code_hash  TEXT PRIMARY KEY,
    key_hash   TEXT NOT NULL,
    made_at    BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
) WITHOUT ROWID;

-- ACP (acp-canonical §9): mail between agents. Times are ISO 8601 UTC text with six digits.

-- `held` is NULL, or what keeps a message from its recipients: gate, quarantine.
-- `hop` counts the replies before it.
CREATE TABLE messages (
    id                 TEXT PRIMARY KEY,
    protocol           TEXT NOT NULL DEFAULT 'acp',
    version            TEXT NOT NULL DEFAULT '1.0.0',
    from_agent         TEXT NOT NULL,
    to_agents_json     TEXT NOT NULL,
    team               TEXT,
    reply_to           TEXT,
    thread_id          TEXT,
    type               TEXT NOT NULL,
    topic              TEXT,
    priority           TEXT NOT NULL DEFAULT 'normal',
    status             TEXT NOT NULL DEFAULT 'pending',
    payload_json       TEXT NOT NULL,
    policy_json        TEXT NOT NULL,
    context_json       TEXT,
    external_refs_json TEXT,
    sequence           BIGINT,
    expires_at         TEXT,
    payload_bytes      INTEGER NOT NULL,
    created_at         TEXT NOT NULL,
    updated_at         TEXT,
    hop                INTEGER NOT NULL DEFAULT 0,
    held               TEXT
);
CREATE INDEX idx_messages_from ON messages (from_agent, created_at DESC);
CREATE INDEX idx_messages_thread ON messages (thread_id, created_at);
CREATE INDEX idx_messages_type ON messages (type, created_at DESC);
CREATE INDEX idx_messages_status ON messages (status, created_at DESC);
CREATE INDEX messages_expiring ON messages (expires_at)
    WHERE expires_at IS NOT NULL AND status NOT IN ('read', 'expired', 'failed');

-- `recipient` is an agent's address: its id without a version. `box_seq` numbers what came into
-- the recipient's box, from 1 without gaps; it is NULL on other channels and while it is held.
CREATE TABLE delivery_log (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id   TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    recipient    TEXT NOT NULL,
    channel      TEXT NOT NULL,
    status       TEXT NOT NULL DEFAULT 'pending',
    delivered_at TEXT,
    read_at      TEXT,
    error        TEXT,
    box_seq      BIGINT,
    UNIQUE (message_id, recipient, channel)
);
CREATE INDEX delivery_box ON delivery_log (recipient, box_seq) WHERE box_seq IS NOT NULL;
CREATE INDEX delivery_unread ON delivery_log (recipient, box_seq)
    WHERE box_seq IS NOT NULL AND status IN ('pending', 'delivered');
CREATE INDEX delivery_dead ON delivery_log (id)
    WHERE channel = 'inbox' AND status IN ('failed', 'expired');

-- An agent's box: how much ever came in, and what became of it. The rest is unread.
CREATE TABLE mailboxes (
    address    TEXT PRIMARY KEY,
    high_water BIGINT NOT NULL DEFAULT 0,
    read_count BIGINT NOT NULL DEFAULT 0,
    expired    BIGINT NOT NULL DEFAULT 0,
    failed     BIGINT NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL
);

-- What each recipient has processed (§12.5); it outlives the message.
CREATE TABLE processed_messages (
    recipient    TEXT NOT NULL,
    message_id   TEXT NOT NULL,
    processed_at TEXT NOT NULL,
    PRIMARY KEY (recipient, message_id)
);

-- How far a thread is (§12.4, §12.5): its messages, and the last sequence that was taken.
CREATE TABLE threads (
    thread_id TEXT PRIMARY KEY,
    rounds    BIGINT NOT NULL DEFAULT 0,
    sequence  BIGINT NOT NULL DEFAULT 0
);

-- The message that a sender's own id stands for, and the hash of what it sent.
CREATE TABLE client_ids (
    sender     TEXT NOT NULL,
    client_id  TEXT NOT NULL,
    message_id TEXT NOT NULL,
    hash       TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (sender, client_id)
);
CREATE INDEX client_ids_by_time ON client_ids (created_at);

-- When a sender last sent, for its limits: JSON list of stamps (microseconds).
CREATE TABLE send_rates (
    sender TEXT NOT NULL,
    kind   TEXT NOT NULL,
    stamps TEXT NOT NULL,
    PRIMARY KEY (sender, kind)
);

-- Circuit breakers by name, such as sender:ADDRESS. Times are stamps; no row is a closed one.
CREATE TABLE breakers (
    name       TEXT PRIMARY KEY,
    failures   INTEGER NOT NULL,
    since      BIGINT NOT NULL,
    open_until BIGINT NOT NULL,
    trips      INTEGER NOT NULL
);

-- Append-only (§12.8).
CREATE TABLE acp_audit (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    at         TEXT NOT NULL,
    actor      TEXT NOT NULL,
    action     TEXT NOT NULL,
    outcome    TEXT NOT NULL,
    message_id TEXT,
    detail     TEXT
);

-- What was purged from `messages`, with its receipts, as a line of JSON (§12.7).
CREATE TABLE messages_archive (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL UNIQUE,
    archived_at TEXT NOT NULL,
    document    TEXT NOT NULL
);

CREATE TABLE acp_meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
INSERT INTO acp_meta (key, value) VALUES ('schema_version', '1');
INSERT INTO acp_meta (key, value) VALUES ('protocol_version', '1.0.0');

-- A human's key may let gated messages through.
ALTER TABLE keys ADD COLUMN human INTEGER NOT NULL DEFAULT 0;

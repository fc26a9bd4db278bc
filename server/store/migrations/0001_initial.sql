-- What the node keeps. Times are stamps: microseconds since 1970, UTC (schemas/base.py).

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- Project header: one register, the latest stamp wins (design §6).
CREATE TABLE projects (
    project_id       TEXT PRIMARY KEY,
    name             TEXT NOT NULL,
    objective        TEXT NOT NULL,
    status           TEXT NOT NULL,
    agreement_policy TEXT NOT NULL,
    created_at       BIGINT NOT NULL,
    stamp            BIGINT NOT NULL
);
CREATE INDEX projects_by_time ON projects (created_at, project_id);

-- A repo and its claim are registers of their own: of two claims the earlier wins.
CREATE TABLE repos (
    project_id     TEXT NOT NULL REFERENCES projects (project_id),
    repo_id        TEXT NOT NULL,
    name           TEXT NOT NULL,
    role           TEXT NOT NULL,
    language       TEXT NOT NULL,
    relevant_paths TEXT NOT NULL,
    url            TEXT,
    stamp          BIGINT NOT NULL,
    agent_id       TEXT,
    agent_endpoint TEXT,
    claimed_at     BIGINT,
    PRIMARY KEY (project_id, repo_id),
    UNIQUE (project_id, name)
);

-- Ids that peers of other makes gave to a repo of ours.
CREATE TABLE repo_aliases (
    project_id TEXT NOT NULL,
    alias      TEXT NOT NULL,
    repo_id    TEXT NOT NULL,
    PRIMARY KEY (project_id, alias),
    FOREIGN KEY (project_id, repo_id) REFERENCES repos (project_id, repo_id)
);

-- Claims of one repo made apart: the later one, kept (design §5, §6).
CREATE TABLE claim_conflicts (
    project_id     TEXT NOT NULL,
    repo_id        TEXT NOT NULL,
    agent_id       TEXT NOT NULL,
    agent_endpoint TEXT,
    claimed_at     BIGINT NOT NULL,
    PRIMARY KEY (project_id, repo_id, agent_id)
);

-- The materialised copy of a contract, for reading; `facts` is what it is made of.
CREATE TABLE contracts (
    project_id  TEXT NOT NULL REFERENCES projects (project_id),
    contract_id TEXT NOT NULL,
    type        TEXT NOT NULL,
    name        TEXT NOT NULL,
    version     BIGINT NOT NULL,
    status      TEXT NOT NULL,
    proposed_by TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    document    TEXT NOT NULL,
    history     TEXT NOT NULL,
    PRIMARY KEY (project_id, contract_id)
);

-- Single-author facts: one winner for each key (design §6).
CREATE TABLE facts (
    contract_id TEXT NOT NULL,
    kind        TEXT NOT NULL,
    key         TEXT NOT NULL,
    project_id  TEXT NOT NULL,
    stamp       BIGINT NOT NULL,
    body        TEXT NOT NULL,
    PRIMARY KEY (contract_id, kind, key)
);

CREATE TABLE packets (
    project_id TEXT NOT NULL REFERENCES projects (project_id),
    packet_id  TEXT NOT NULL,
    type       TEXT NOT NULL,
    reply_to   TEXT,
    stamp      BIGINT NOT NULL,
    document   TEXT NOT NULL,
    PRIMARY KEY (project_id, packet_id)
);
CREATE INDEX packets_by_time ON packets (project_id, stamp);
CREATE INDEX packets_by_parent ON packets (project_id, reply_to) WHERE reply_to IS NOT NULL;

CREATE TABLE packet_contracts (
    project_id  TEXT NOT NULL,
    contract_id TEXT NOT NULL,
    stamp       BIGINT NOT NULL,
    packet_id   TEXT NOT NULL,
    PRIMARY KEY (project_id, contract_id, stamp, packet_id)
) WITHOUT ROWID;

CREATE TABLE files (
    file_id           TEXT PRIMARY KEY,
    project_id        TEXT NOT NULL REFERENCES projects (project_id),
    name              TEXT NOT NULL,
    content_type      TEXT NOT NULL,
    size              BIGINT NOT NULL,
    sha256            TEXT NOT NULL,
    purpose           TEXT,
    related_contracts TEXT NOT NULL,
    from_repo         TEXT NOT NULL,
    from_agent        TEXT NOT NULL,
    stamp             BIGINT NOT NULL,
    content           BLOB NOT NULL
);
CREATE INDEX files_by_project ON files (project_id, file_id);

CREATE TABLE file_requests (
    request_id       TEXT PRIMARY KEY,
    project_id       TEXT NOT NULL REFERENCES projects (project_id),
    requested_by     TEXT NOT NULL,
    description      TEXT NOT NULL,
    suggested_format TEXT,
    stamp            BIGINT NOT NULL,
    fulfilled_by     TEXT REFERENCES files (file_id)
);
CREATE INDEX file_requests_open ON file_requests (project_id, request_id)
    WHERE fulfilled_by IS NULL;

-- The one append-only log: event stream, peers' cursors, audit (design §4).
CREATE TABLE changes (
    seq        INTEGER PRIMARY KEY,
    at         BIGINT NOT NULL,
    origin     TEXT NOT NULL,
    actor      TEXT NOT NULL,
    action     TEXT NOT NULL,
    entity     TEXT NOT NULL,
    entity_id  TEXT NOT NULL,
    project_id TEXT,
    outcome    TEXT NOT NULL
);

-- What a retried call is answered with (design §4).
CREATE TABLE idempotency (
    scope       TEXT PRIMARY KEY,
    params_hash TEXT NOT NULL,
    result      TEXT NOT NULL,
    at          BIGINT NOT NULL
);
CREATE INDEX idempotency_by_time ON idempotency (at);

-- Only the hash of a key is kept.
CREATE TABLE keys (
    key_id     TEXT PRIMARY KEY,
    hash       TEXT NOT NULL UNIQUE,
    agent_id   TEXT NOT NULL,
    repo       TEXT NOT NULL,
    trust      TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
);

CREATE TABLE tokens (
    token_id   TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    agent_id   TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT
);

CREATE TABLE peers (
    agent_id      TEXT PRIMARY KEY,
    endpoint      TEXT NOT NULL,
    repo_name     TEXT,
    trust         TEXT NOT NULL,
    registered_at BIGINT NOT NULL,
    last_seen     BIGINT NOT NULL
);

-- What was last exchanged with a peer of another make: later differences are its own doing.
CREATE TABLE exchanged (
    peer_id   TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    document  TEXT NOT NULL,
    PRIMARY KEY (peer_id, entity_id)
);

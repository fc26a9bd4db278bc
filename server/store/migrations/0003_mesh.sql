-- The mesh (design §6, §7): who the peers are, who may speak for whom, how far each was told.

-- `secret` is the key that we call the peer with, `key_id` names the last two that it calls us with;
-- both are NULL for a peer of another make. `cursor` is the last change that it has confirmed.
ALTER TABLE peers ADD COLUMN secret TEXT;
ALTER TABLE peers ADD COLUMN key_id TEXT;
ALTER TABLE peers ADD COLUMN cursor BIGINT NOT NULL DEFAULT 0;
ALTER TABLE peers ADD COLUMN retries BIGINT NOT NULL DEFAULT 0;

-- The public key that a node's agent id is pinned to. `introduced_by` is NULL when the node
-- itself has proved it, else the peer that passed it on.
CREATE TABLE node_keys (
    agent         TEXT PRIMARY KEY,
    public_key    TEXT NOT NULL,
    introduced_by TEXT
);

-- The node that speaks for an agent: the first that did.
CREATE TABLE homes (
    agent TEXT PRIMARY KEY,
    node  TEXT NOT NULL
);

-- One-time invites, of which only the id and the secret's text are kept until they are used.
CREATE TABLE invites (
    invite_id  TEXT PRIMARY KEY,
    secret     TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_by    TEXT,
    revoked_at BIGINT
);

-- Nodes that are to become peers: the operator's wish, until the handshake is done.
CREATE TABLE wanted_peers (
    url    TEXT PRIMARY KEY,
    invite TEXT,
    error  TEXT
);

-- Who vouches for a row: JSON of schemas.mesh.Signature; NULL while it is our own.
ALTER TABLE facts ADD COLUMN signature TEXT;
ALTER TABLE packets ADD COLUMN signature TEXT;
ALTER TABLE claim_conflicts ADD COLUMN signature TEXT;
ALTER TABLE repos ADD COLUMN claim_signature TEXT;
-- When the claim was last renewed, by joining again with another endpoint.
ALTER TABLE repos ADD COLUMN renewed_at BIGINT;
ALTER TABLE claim_conflicts ADD COLUMN renewed_at BIGINT;

-- Messages with a stamp from the future, until they are due.
CREATE TABLE set_aside (
    digest TEXT PRIMARY KEY,
    due    BIGINT NOT NULL,
    source TEXT NOT NULL,
    method TEXT NOT NULL,
    params TEXT NOT NULL
);
CREATE INDEX set_aside_by_time ON set_aside (due);

-- What this node holds, for comparing: a digest for each entity, and the sums of them by place.
CREATE TABLE digests (
    entity     TEXT NOT NULL,
    project_id TEXT NOT NULL,
    entity_id  TEXT NOT NULL,
    place      TEXT NOT NULL,
    digest     TEXT NOT NULL,
    PRIMARY KEY (entity, project_id, entity_id)
);
CREATE INDEX digests_by_place ON digests (place);
CREATE TABLE digest_sums (
    prefix TEXT PRIMARY KEY,
    digest TEXT NOT NULL
);

-- What a peer has not taken, though it answers, or what can't be sent to it, and why. It is tried
-- again after a restart too, and shown until it is taken or an operator drops it. What was dropped
-- stays as that: the peer asks for it again whenever it compares.
CREATE TABLE undelivered (
    peer       TEXT NOT NULL,
    entity     TEXT NOT NULL,
    project_id TEXT NOT NULL,
    entity_id  TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    tries      INTEGER NOT NULL,
    reason     TEXT NOT NULL,
    dropped    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (peer, entity, project_id, entity_id)
) WITHOUT ROWID;

-- Two different things that one node has signed where it could honestly sign one: both as they were
-- signed, as evidence. `ours_signature` and `theirs_signature` are JSON of schemas.mesh.Signature,
-- NULL for what this node itself had written. `noted_at` is when an operator has seen it.
CREATE TABLE equivocations (
    node             TEXT NOT NULL,
    kind             TEXT NOT NULL,
    place            TEXT NOT NULL,
    key              TEXT NOT NULL,
    ours             TEXT NOT NULL,
    ours_signature   TEXT,
    theirs           TEXT NOT NULL,
    theirs_signature TEXT NOT NULL,
    found_at         BIGINT NOT NULL,
    noted_at         BIGINT,
    PRIMARY KEY (node, kind, place, key)
);

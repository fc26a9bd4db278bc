-- Who registered here, when the node serves as an ADP exchange (CACP 2.0, ADP Integration).
-- An agent's entry is pinned to its registrar; words and protocols are what a search looks at.

CREATE TABLE directory (
    agent         TEXT PRIMARY KEY,
    aid           TEXT NOT NULL,
    manifest      TEXT NOT NULL,
    words         TEXT NOT NULL,
    protocols     TEXT NOT NULL,
    registrar     TEXT NOT NULL,
    verified      BIGINT NOT NULL,
    registered_at BIGINT NOT NULL,
    renewed_at    BIGINT NOT NULL
);
CREATE INDEX directory_by_time ON directory (renewed_at);

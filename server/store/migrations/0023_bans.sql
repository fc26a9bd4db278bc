-- Who is no peer any more, whoever lets him in: what each node has last said of an agent. `agent` and
-- `by_node` are without their versions, `public_key` is NULL where it was not known. A ban that was
-- lifted stays, with `banned` 0: it is what the others are still to hear.
CREATE TABLE bans (
    by_node    TEXT NOT NULL,
    agent      TEXT NOT NULL,
    public_key TEXT,
    banned     BIGINT NOT NULL,
    stamp      BIGINT NOT NULL,
    reason     TEXT NOT NULL,
    signature  TEXT,
    PRIMARY KEY (by_node, agent)
);
CREATE INDEX bans_by_agent ON bans (agent);
CREATE INDEX bans_by_key ON bans (public_key);

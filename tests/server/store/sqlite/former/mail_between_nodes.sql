-- Mail between nodes (acp-canonical §10, §12.1; design §6). Nodes and agents without a version.

-- The agents that each node says are at home there, this one's own list among them: what it
-- signed, as JSON of schemas.acp_mesh.SignedDirectory.
CREATE TABLE directories (
    node     TEXT PRIMARY KEY,
    stamp    BIGINT NOT NULL,
    document TEXT NOT NULL
);
-- The same by agent, in the order in which it was heard. Of two nodes that name one agent, `homes`
-- holds the one that was heard first.
CREATE TABLE listed_agents (
    seq   INTEGER PRIMARY KEY AUTOINCREMENT,
    agent TEXT NOT NULL,
    node  TEXT NOT NULL,
    UNIQUE (agent, node)
);
CREATE INDEX listed_agents_by_node ON listed_agents (node);

-- Where a message goes for a recipient whose home is another node. `offered` is 1 from just before
-- it is sent for the first time: from then on only that node says what becomes of it.
CREATE TABLE mail_routes (
    message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    recipient  TEXT NOT NULL,
    node       TEXT NOT NULL,
    offered    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (message_id, recipient)
);

-- The node that vouched for a message from elsewhere, which is told how far it is.
CREATE TABLE mail_sources (
    message_id TEXT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    node       TEXT NOT NULL
);

-- What is still to be said to each node, in order: a message, or the receipts of one. A row goes
-- once the node has confirmed it.
CREATE TABLE mail_out (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    node       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    UNIQUE (node, kind, message_id)
);

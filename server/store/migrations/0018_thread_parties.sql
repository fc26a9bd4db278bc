-- The bounds of a thread (acp-canonical §12.4) are each party's own: the hop of its last message, the
-- highest of what others have sent it since (NULL: nothing), and how many messages it has sent.
CREATE TABLE thread_parties (
    thread_id TEXT NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
    address   TEXT NOT NULL,
    said      BIGINT,
    heard     BIGINT,
    sent      BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (thread_id, address)
) WITHOUT ROWID;
-- Others may have driven a thread from before as deep as it is; nobody's own answers are more than
-- two hops each.
INSERT INTO thread_parties (thread_id, address, said, sent)
SELECT m.thread,
       CASE WHEN m.from_agent LIKE 'aid://%' AND instr(m.from_agent, '@') > 0
            THEN substr(m.from_agent, 1, instr(m.from_agent, '@') - 1) ELSE m.from_agent END,
       min(max(m.hop), 2 * count(*)), count(*)
FROM messages AS m JOIN threads AS t ON t.thread_id = m.thread GROUP BY 1, 2;

-- The address of whose notes to itself a thread is; NULL when it is between parties. The columns
-- `rounds`, `hop` and `speaker` have no use any more; a database from before the record of migrations
-- is known by them.
ALTER TABLE threads ADD COLUMN alone TEXT;

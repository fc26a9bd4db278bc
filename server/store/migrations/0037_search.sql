-- Full-text search. What is indexed of each document, and what is still to be indexed. The index itself
-- is the virtual table `search_index`, which server/store/search.py makes: it is derived, and a database
-- can be without it.

-- `indexed` is the text that is in the index (server/store/search.py), compressed: the index keeps no
-- text, and what is removed from it must be given to it once more. `project_id` is empty for mail.
CREATE TABLE search_docs (
    id         INTEGER PRIMARY KEY,
    kind       TEXT NOT NULL,
    project_id TEXT NOT NULL,
    entity_id  TEXT NOT NULL,
    indexed    BLOB NOT NULL
);
CREATE UNIQUE INDEX search_docs_by_entity ON search_docs (entity_id, project_id, kind);

-- Each write of a document adds a row, in its own transaction; a worker indexes what it names. For new
-- and expired mail the store does it (server/store/messages.py): a trigger makes SQLite keep a copy of
-- each page that the statement changes, and a message has many indexes.
CREATE TABLE search_queue (
    seq        INTEGER PRIMARY KEY,
    kind       TEXT NOT NULL,
    project_id TEXT NOT NULL,
    entity_id  TEXT NOT NULL
);
CREATE TRIGGER search_message_removed AFTER DELETE ON messages BEGIN
    INSERT INTO search_queue (kind, project_id, entity_id) VALUES ('mail', '', OLD.id);
END;
CREATE TRIGGER search_packet_added AFTER INSERT ON packets BEGIN
    INSERT INTO search_queue (kind, project_id, entity_id)
    VALUES ('context', NEW.project_id, NEW.packet_id);
END;
CREATE TRIGGER search_packet_removed AFTER DELETE ON packets BEGIN
    INSERT INTO search_queue (kind, project_id, entity_id)
    VALUES ('context', OLD.project_id, OLD.packet_id);
END;
CREATE TRIGGER search_contract_added AFTER INSERT ON contracts BEGIN
    INSERT INTO search_queue (kind, project_id, entity_id)
    VALUES ('contract', NEW.project_id, NEW.contract_id);
END;
CREATE TRIGGER search_contract_changed AFTER UPDATE OF document ON contracts BEGIN
    INSERT INTO search_queue (kind, project_id, entity_id)
    VALUES ('contract', NEW.project_id, NEW.contract_id);
END;
CREATE TRIGGER search_contract_removed AFTER DELETE ON contracts BEGIN
    INSERT INTO search_queue (kind, project_id, entity_id)
    VALUES ('contract', OLD.project_id, OLD.contract_id);
END;

-- Lists of threads, the newest first: of each party, the last message that it sent or got; of all, the
-- last message that is open to humans (acp-canonical §10.2).
CREATE INDEX messages_by_thread ON messages (thread, id);
ALTER TABLE thread_parties ADD COLUMN last TEXT;
UPDATE thread_parties SET last = (
    SELECT max(m.id) FROM messages AS m
    WHERE m.thread = thread_parties.thread_id
      AND (m.from_agent = thread_parties.address
           OR (m.from_agent >= thread_parties.address || '@'
               AND m.from_agent < thread_parties.address || 'A')
           OR EXISTS (SELECT 1 FROM delivery_log AS d
                      WHERE d.message_id = m.id AND d.recipient = thread_parties.address
                        AND d.channel = 'inbox' AND d.box_seq IS NOT NULL)));
CREATE INDEX thread_parties_by_last ON thread_parties (address, last);
ALTER TABLE threads ADD COLUMN last_open TEXT;
UPDATE threads SET last_open = (
    SELECT max(m.id) FROM messages AS m
    WHERE m.thread = threads.thread_id
      AND (m.priority = 'critical' OR m.policy_json LIKE '%"human-audit"%'
           OR m.policy_json LIKE '%"required"%'));
CREATE INDEX threads_by_last_open ON threads (last_open) WHERE last_open IS NOT NULL;

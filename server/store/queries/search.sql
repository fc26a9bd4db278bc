-- The full-text index: FTS5 on SQLite, vectors of words on PostgreSQL. `parts` has the parts of words such
-- as `createUser`; `scope` has words that say of what kind a document is and who may read it
-- (server/store/search.py).

-- name: make_search_index()!
-- Without content: the text is in the documents. Without column sizes: hits are ordered by age.
CREATE VIRTUAL TABLE search_index USING fts5(
    title, body, parts, scope,
    content = '', columnsize = 0, tokenize = 'unicode61 remove_diacritics 2'
);

-- name: make_search_index_postgresql()!
INSERT INTO search_index (id, words) VALUES (0, '');

-- name: drop_search_index()!
DROP TABLE IF EXISTS search_index;

-- name: drop_search_index_postgresql()!
DELETE FROM search_index;

-- name: has_search_index()$
SELECT 1 FROM sqlite_master WHERE name = 'search_index';

-- name: has_search_index_postgresql()$
SELECT 1 FROM search_index WHERE id = 0;

-- name: add_to_search_index(id, title, body, parts, scope)!
INSERT INTO search_index (rowid, title, body, parts, scope) VALUES (:id, :title, :body, :parts, :scope);

-- name: remove_from_search_index(id, title, body, parts, scope)!
INSERT INTO search_index (search_index, rowid, title, body, parts, scope)
VALUES ('delete', :id, :title, :body, :parts, :scope);

-- name: add_search_words(id, words)!
INSERT INTO search_index (id, words) VALUES (:id, CAST(:words AS TSVECTOR));

-- name: remove_search_words(id)!
DELETE FROM search_index WHERE id = :id;

-- name: add_search_doc(kind, project_id, entity_id, indexed)$
INSERT INTO search_docs (kind, project_id, entity_id, indexed)
VALUES (:kind, :project_id, :entity_id, :indexed) RETURNING id;

-- name: search_doc(kind, project_id, entity_id)^
SELECT id, indexed FROM search_docs
WHERE entity_id = :entity_id AND project_id = :project_id AND kind = :kind;

-- name: drop_search_doc(id)!
DELETE FROM search_docs WHERE id = :id;

-- name: drop_search_docs()!
DELETE FROM search_docs;

-- name: drop_search_queue()!
DELETE FROM search_queue;

-- name: queue_all_for_search()!
-- The oldest first: hits are shown in the order in which they were indexed.
INSERT INTO search_queue (kind, project_id, entity_id)
SELECT kind, project_id, entity_id FROM (
    SELECT 'contract' AS kind, project_id, contract_id AS entity_id, updated_at AS stamp FROM contracts
    UNION ALL
    SELECT 'context', project_id, packet_id, stamp FROM packets
    UNION ALL
    SELECT 'mail', '', id, CAST((julianday(created_at) - 2440587.5) * 86400000 AS INTEGER) * 1000 FROM messages
) AS stored ORDER BY stamp;

-- name: queue_all_for_search_postgresql()!
INSERT INTO search_queue (kind, project_id, entity_id)
SELECT kind, project_id, entity_id FROM (
    SELECT 'contract' AS kind, project_id, contract_id AS entity_id, updated_at AS stamp FROM contracts
    UNION ALL
    SELECT 'context', project_id, packet_id, stamp FROM packets
    UNION ALL
    SELECT 'mail', '', id, CAST(extract(epoch FROM CAST(created_at AS TIMESTAMPTZ)) * 1000000 AS BIGINT) FROM messages
) AS stored ORDER BY stamp;

-- name: queue_message_for_search(id)!
INSERT INTO search_queue (kind, project_id, entity_id) VALUES ('mail', '', :id);

-- name: search_queue_head(limit)
SELECT seq, kind, project_id, entity_id FROM search_queue ORDER BY seq LIMIT :limit;

-- name: drop_from_search_queue(seq)!
DELETE FROM search_queue WHERE seq <= :seq;

-- name: search_queue_length()$
-- Two reads of the index: one with both would read every row.
SELECT coalesce((SELECT max(seq) FROM search_queue) - (SELECT min(seq) FROM search_queue) + 1, 0);

-- name: message_to_index(id)^
SELECT topic, payload_json, from_agent, priority, policy_json FROM messages
WHERE id = :id AND status <> 'expired';

-- name: recipients_to_index(id)
SELECT recipient FROM delivery_log WHERE message_id = :id AND channel = 'inbox';

-- name: packet_to_index(project_id, id)$
SELECT document FROM packets WHERE project_id = :project_id AND packet_id = :id;

-- name: contract_to_index(project_id, id)$
SELECT document FROM contracts WHERE project_id = :project_id AND contract_id = :id;

-- name: notes_to_index(id)
SELECT coalesce(json_extract(body, '$.note'), json_extract(body, '$.comment'),
                json_extract(body, '$.notes'))
FROM facts WHERE contract_id = :id ORDER BY stamp, kind, key;

-- name: search_hits(match, before, address, human, limit)
-- The index has who may read a document; for mail, what counts is checked here.
SELECT d.id, d.kind, d.project_id, d.entity_id, d.indexed
FROM search_index AS s JOIN search_docs AS d ON d.id = s.rowid
WHERE s.search_index MATCH :match AND s.rowid < :before
  AND CASE d.kind
      WHEN 'context' THEN EXISTS (
          SELECT 1 FROM packets AS p
          WHERE p.project_id = d.project_id AND p.packet_id = d.entity_id)
      WHEN 'contract' THEN EXISTS (
          SELECT 1 FROM contracts AS c
          WHERE c.project_id = d.project_id AND c.contract_id = d.entity_id)
      ELSE EXISTS (
          SELECT 1 FROM messages AS m
          WHERE m.id = d.entity_id AND m.status <> 'expired'
            AND (m.from_agent = :address
                 OR (m.from_agent >= :address || '@' AND m.from_agent < :address || 'A')
                 OR EXISTS (SELECT 1 FROM delivery_log AS r
                            WHERE r.message_id = m.id AND r.recipient = :address
                              AND r.channel = 'inbox' AND r.box_seq IS NOT NULL)
                 OR (:human AND (m.priority = 'critical'
                                 OR m.policy_json LIKE '%"human-audit"%'
                                 OR m.policy_json LIKE '%"required"%'))))
      END
ORDER BY s.rowid DESC LIMIT :limit;

-- name: search_hits_postgresql(match, before, address, human, limit)
SELECT d.id, d.kind, d.project_id, d.entity_id, d.indexed
FROM search_index AS s JOIN search_docs AS d ON d.id = s.id
WHERE s.words @@ CAST(:match AS TSQUERY) AND s.id < :before
  AND CASE d.kind
      WHEN 'context' THEN EXISTS (
          SELECT 1 FROM packets AS p
          WHERE p.project_id = d.project_id AND p.packet_id = d.entity_id)
      WHEN 'contract' THEN EXISTS (
          SELECT 1 FROM contracts AS c
          WHERE c.project_id = d.project_id AND c.contract_id = d.entity_id)
      ELSE EXISTS (
          SELECT 1 FROM messages AS m
          WHERE m.id = d.entity_id AND m.status <> 'expired'
            AND (m.from_agent = :address
                 OR (m.from_agent >= :address || '@' AND m.from_agent < :address || 'A')
                 OR EXISTS (SELECT 1 FROM delivery_log AS r
                            WHERE r.message_id = m.id AND r.recipient = :address
                              AND r.channel = 'inbox' AND r.box_seq IS NOT NULL)
                 OR (:human AND (m.priority = 'critical'
                                 OR m.policy_json LIKE '%"human-audit"%'
                                 OR m.policy_json LIKE '%"required"%'))))
      END
ORDER BY s.id DESC LIMIT :limit;

-- name: contract_hit(project_id, contract_id)^
SELECT c.name, c.type, c.status, c.updated_at, r.name
FROM contracts AS c
LEFT JOIN repos AS r ON r.project_id = c.project_id AND r.repo_id = c.proposed_by
WHERE c.project_id = :project_id AND c.contract_id = :contract_id;

-- name: make_search_vocabulary()!
CREATE VIRTUAL TABLE temp.search_vocabulary USING fts5vocab(main, search_index, 'col');

-- name: drop_search_vocabulary()!
DROP TABLE temp.search_vocabulary;

-- name: search_vocabulary()
SELECT term, col, doc FROM temp.search_vocabulary;

-- name: search_words_counts()
SELECT d.kind, count(*) FROM search_index AS s LEFT JOIN search_docs AS d ON d.id = s.id
WHERE s.id > 0 GROUP BY d.kind;

-- name: search_doc_counts()
SELECT kind, count(*) FROM search_docs GROUP BY kind;

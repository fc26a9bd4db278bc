-- name: insert_message(id, version, from_agent, to_agents_json, team, reply_to, thread_id, type, topic, priority, status, payload_json, policy_json, context_json, external_refs_json, sequence, expires_at, created_at, updated_at, hop, held, payload_bytes, thread)!
INSERT INTO messages (id, version, from_agent, to_agents_json, team, reply_to, thread_id, type, topic,
                      priority, status, payload_json, policy_json, context_json,
                      external_refs_json, sequence, expires_at, created_at, updated_at, hop, held,
                      payload_bytes, thread)
VALUES (:id, :version, :from_agent, :to_agents_json, :team, :reply_to, :thread_id, :type, :topic,
        :priority, :status, :payload_json, :policy_json, :context_json,
        :external_refs_json, :sequence, :expires_at, :created_at, :updated_at, :hop, :held,
        :payload_bytes, :thread);

-- name: message(id)^
SELECT id, version, from_agent, to_agents_json, team, reply_to, thread_id, type, topic, priority,
       status, payload_json, policy_json, context_json, external_refs_json, sequence, expires_at,
       created_at, updated_at, hop, held
FROM messages WHERE id = :id;

-- name: put_message_status(id, status, updated_at)!
UPDATE messages SET status = :status, updated_at = :updated_at WHERE id = :id;

-- name: put_sequence(id, sequence, updated_at)!
UPDATE messages SET sequence = :sequence, updated_at = :updated_at WHERE id = :id;

-- name: put_held(id, held, updated_at)!
UPDATE messages SET held = :held, updated_at = :updated_at WHERE id = :id;

-- name: pending_messages(thread, sequence)
SELECT id, from_agent, sequence, held FROM messages AS m
WHERE thread = :thread AND sequence IS NOT NULL
  AND (held IS NOT NULL OR (sequence > :sequence AND status IN ('expired', 'failed')))
ORDER BY id;

-- name: expiring_messages(now, limit)
SELECT id FROM messages AS m
WHERE expires_at IS NOT NULL AND status NOT IN ('read', 'expired', 'failed') AND expires_at <= :now
  AND EXISTS (SELECT 1 FROM delivery_log AS d
              WHERE d.message_id = m.id AND d.channel = 'inbox'
                AND d.status IN ('pending', 'delivered')
                AND NOT EXISTS (SELECT 1 FROM mail_routes AS r
                                WHERE r.message_id = m.id AND r.recipient = d.recipient
                                  AND r.offered = 1))
ORDER BY expires_at LIMIT :limit;

-- name: next_expiry()$
SELECT min(expires_at) FROM messages
WHERE expires_at IS NOT NULL AND status NOT IN ('read', 'expired', 'failed');

-- name: thread_of(message_id)$
SELECT thread FROM messages WHERE id = :message_id;

-- name: thread(id)^
SELECT sequence, alone FROM threads WHERE thread_id = :id;

-- name: threads_named(name)
SELECT thread_id, sequence, alone FROM threads WHERE name = :name
ORDER BY thread_id;

-- name: put_thread(id, name, sequence, alone)!
INSERT INTO threads (thread_id, name, sequence, alone) VALUES (:id, :name, :sequence, :alone)
ON CONFLICT (thread_id) DO UPDATE SET sequence = excluded.sequence;

-- name: insert_thread(id, name, sequence, alone)!
INSERT INTO threads (thread_id, name, sequence, alone) VALUES (:id, :name, :sequence, :alone);

-- name: insert_thread_party(thread, address, said, heard, sent, last)!
INSERT INTO thread_parties (thread_id, address, said, heard, sent, last)
VALUES (:thread, :address, :said, :heard, :sent, :last);

-- name: thread_party(thread, address)^
SELECT said, heard, sent FROM thread_parties WHERE thread_id = :thread AND address = :address;

-- name: put_thread_party(thread, address, said, heard, sent, last)!
INSERT INTO thread_parties (thread_id, address, said, heard, sent, last)
VALUES (:thread, :address, :said, :heard, :sent, :last)
ON CONFLICT (thread_id, address) DO UPDATE SET said = excluded.said, heard = excluded.heard,
                                               sent = excluded.sent,
                                               last = max(coalesce(thread_parties.last, ''),
                                                          excluded.last);

-- name: put_heard_in_thread(thread, address, hop, last)!
INSERT INTO thread_parties (thread_id, address, heard, last) VALUES (:thread, :address, :hop, :last)
ON CONFLICT (thread_id, address) DO UPDATE SET heard = max(coalesce(thread_parties.heard, 0),
                                                           excluded.heard),
                                               last = max(coalesce(thread_parties.last, ''),
                                                          excluded.last);

-- name: put_open_in_thread(last_open, thread)!
UPDATE threads SET last_open = max(coalesce(last_open, ''), :last_open) WHERE thread_id = :thread;

-- name: spoke_in_thread(thread, address)$
SELECT 1 FROM messages AS m
WHERE m.thread = :thread
  AND (m.from_agent = :address
       OR (m.from_agent >= :address || '@' AND m.from_agent < :address || 'A'))
LIMIT 1;

-- name: sent_to_in_thread(thread, address)$
SELECT 1 FROM messages AS m
WHERE m.thread = :thread
  AND (EXISTS (SELECT 1 FROM delivery_log AS d
               WHERE d.message_id = m.id AND d.recipient = :address AND d.channel = 'inbox'
                 AND d.box_seq IS NOT NULL)
       OR EXISTS (SELECT 1 FROM mail_routes AS r
                  WHERE r.message_id = m.id AND r.recipient = :address AND r.offered = 1)
       OR EXISTS (SELECT 1 FROM mail_sources AS s
                  WHERE s.message_id = m.id
                    AND (m.to_agents_json = '["*"]'
                         OR replace(m.to_agents_json, '"' || :address || '"', '')
                            <> m.to_agents_json
                         OR replace(m.to_agents_json, '"' || :address || '@', '')
                            <> m.to_agents_json)))
LIMIT 1;

-- name: client_id(sender, client_id)^
SELECT message_id, hash FROM client_ids WHERE sender = :sender AND client_id = :client_id;

-- name: put_client_id(sender, client_id, message_id, hash, created_at)!
INSERT INTO client_ids (sender, client_id, message_id, hash, created_at)
VALUES (:sender, :client_id, :message_id, :hash, :created_at);

-- name: messages_found(address, human, before, id, thread_id, type, status, topic, team, held, agent, since, until, urgent, limit)
SELECT m.id, version, from_agent, to_agents_json, team, reply_to, thread_id, type, topic, priority,
       m.status, payload_json, policy_json, context_json, external_refs_json, sequence, expires_at,
       created_at, updated_at, hop, held
FROM messages AS m
WHERE m.id < :before
  AND (CAST(:id AS TEXT) IS NULL OR m.id = :id)
  AND (CAST(:thread_id AS TEXT) IS NULL OR thread_id = :thread_id)
  AND (CAST(:type AS TEXT) IS NULL OR type = :type)
  AND (CAST(:status AS TEXT) IS NULL OR m.status = :status)
  AND (CAST(:topic AS TEXT) IS NULL OR topic = :topic)
  AND (CAST(:team AS TEXT) IS NULL OR team = :team)
  AND (CAST(:held AS TEXT) IS NULL OR held = :held)
  AND (NOT :urgent OR priority IN ('high', 'critical'))
  AND (CAST(:since AS TEXT) IS NULL OR created_at >= :since)
  AND (CAST(:until AS TEXT) IS NULL OR created_at < :until)
  AND (CAST(:agent AS TEXT) IS NULL
       OR from_agent = :agent
       OR (from_agent >= :agent || '@' AND from_agent < :agent || 'A')
       OR EXISTS (SELECT 1 FROM delivery_log AS d
                  WHERE d.message_id = m.id AND d.recipient = :agent AND d.channel = 'inbox'))
  AND (from_agent = :address
       OR (from_agent >= :address || '@' AND from_agent < :address || 'A')
       OR EXISTS (SELECT 1 FROM delivery_log AS d
                  WHERE d.message_id = m.id AND d.recipient = :address
                    AND d.channel = 'inbox' AND d.box_seq IS NOT NULL)
       OR (:human AND (priority = 'critical'
                       OR policy_json LIKE '%"human-audit"%'
                       OR policy_json LIKE '%"required"%')))
ORDER BY m.id DESC LIMIT :limit;

-- name: gated_messages(after, limit)
SELECT id, version, from_agent, to_agents_json, team, reply_to, thread_id, type, topic, priority,
       status, payload_json, policy_json, context_json, external_refs_json, sequence, expires_at,
       created_at, updated_at, hop, held
FROM messages WHERE held = 'gate' AND id > :after ORDER BY id LIMIT :limit;

-- name: gated_count(sender)$
SELECT count(*) FROM messages INDEXED BY messages_gated
WHERE held = 'gate'
  AND (from_agent = :sender OR (from_agent >= :sender || '@' AND from_agent < :sender || 'A'));

-- name: old_messages(before, limit)
SELECT id FROM (SELECT id, created_at FROM messages ORDER BY id LIMIT :limit) AS oldest
WHERE created_at < :before;

-- name: unread_messages(before, limit)
SELECT id FROM messages
WHERE status IN ('pending', 'delivered') AND created_at < :before
ORDER BY created_at LIMIT :limit;

-- name: archive_message(id, archived_at, document)!
INSERT INTO messages_archive (id, archived_at, document) VALUES (:id, :archived_at, :document)
ON CONFLICT (id) DO NOTHING;

-- name: archived_document(id)$
SELECT document FROM messages_archive WHERE id = :id;

-- name: archive_dead_letters(message_id, sender, open_to_humans)!
INSERT INTO archived_dead_letters (id, message_id, recipient, sender, open_to_humans)
SELECT id, message_id, recipient, :sender, :open_to_humans FROM delivery_log
WHERE message_id = :message_id AND channel = 'inbox' AND status IN ('expired', 'failed');

-- name: purge_message(id)!
DELETE FROM messages WHERE id = :id;

-- name: forget_thread(id)!
DELETE FROM threads
WHERE thread_id = :id
  AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.thread = threads.thread_id);

-- name: forget_client_ids(before)!
DELETE FROM client_ids WHERE created_at < :before;

-- name: forget_processed(before)!
DELETE FROM processed_messages
WHERE processed_at < :before
  AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.id = processed_messages.message_id);

-- name: insert_message(id, version, from_agent, to_agents_json, team, reply_to, thread_id, type, topic, priority, status, payload_json, policy_json, context_json, external_refs_json, sequence, expires_at, created_at, updated_at, hop, held, payload_bytes)!
INSERT INTO messages (id, version, from_agent, to_agents_json, team, reply_to, thread_id, type, topic,
                      priority, status, payload_json, policy_json, context_json,
                      external_refs_json, sequence, expires_at, created_at, updated_at, hop, held,
                      payload_bytes)
VALUES (:id, :version, :from_agent, :to_agents_json, :team, :reply_to, :thread_id, :type, :topic,
        :priority, :status, :payload_json, :policy_json, :context_json,
        :external_refs_json, :sequence, :expires_at, :created_at, :updated_at, :hop, :held,
        :payload_bytes);

-- name: message(id)^
SELECT id, version, from_agent, to_agents_json, team, reply_to, thread_id, type, topic, priority,
       status, payload_json, policy_json, context_json, external_refs_json, sequence, expires_at,
       created_at, updated_at, hop, held
FROM messages WHERE id = :id;

-- name: put_message_status(id, status, updated_at)!
UPDATE messages SET status = :status, updated_at = :updated_at WHERE id = :id;

-- name: put_held(id, held, updated_at)!
UPDATE messages SET held = :held, updated_at = :updated_at WHERE id = :id;

-- name: held_message(thread_id, sequence)^
SELECT id, held FROM messages
WHERE held IS NOT NULL AND thread_id = :thread_id AND sequence = :sequence;

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

-- name: thread(thread_id)^
SELECT rounds, sequence, hop, speaker FROM threads WHERE thread_id = :thread_id;

-- name: put_thread(thread_id, rounds, sequence, hop, speaker)!
INSERT INTO threads (thread_id, rounds, sequence, hop, speaker)
VALUES (:thread_id, :rounds, :sequence, :hop, :speaker)
ON CONFLICT (thread_id) DO UPDATE SET rounds = excluded.rounds, sequence = excluded.sequence,
                                      hop = excluded.hop, speaker = excluded.speaker;

-- name: in_thread(thread_id, address)$
SELECT 1 FROM messages AS m
WHERE m.thread_id = :thread_id
  AND (m.from_agent = :address
       OR (m.from_agent >= :address || '@' AND m.from_agent < :address || 'A')
       OR EXISTS (SELECT 1 FROM delivery_log AS d
                  WHERE d.message_id = m.id AND d.recipient = :address AND d.channel = 'inbox'
                    AND d.box_seq IS NOT NULL))
LIMIT 1;

-- name: called_into_thread(thread_id, address)$
SELECT 1 FROM messages AS m
WHERE m.thread_id = :thread_id
  AND (EXISTS (SELECT 1 FROM delivery_log AS d
               WHERE d.message_id = m.id AND d.recipient = :address AND d.channel = 'inbox'
                 AND d.box_seq IS NOT NULL)
       OR EXISTS (SELECT 1 FROM mail_routes AS r
                  WHERE r.message_id = m.id AND r.recipient = :address AND r.offered = 1)
       OR ((m.from_agent = :address
            OR (m.from_agent >= :address || '@' AND m.from_agent < :address || 'A'))
           AND (m.id = :thread_id
                OR NOT EXISTS (SELECT 1 FROM messages AS o
                               WHERE o.thread_id = :thread_id AND o.from_agent <> :address
                                 AND NOT (o.from_agent >= :address || '@'
                                          AND o.from_agent < :address || 'A')))))
LIMIT 1;

-- name: client_id(sender, client_id)^
SELECT message_id, hash FROM client_ids WHERE sender = :sender AND client_id = :client_id;

-- name: put_client_id(sender, client_id, message_id, hash, created_at)!
INSERT INTO client_ids (sender, client_id, message_id, hash, created_at)
VALUES (:sender, :client_id, :message_id, :hash, :created_at);

-- name: messages_found(address, human, before, id, thread_id, type, status, topic, team, held, agent, since, until, limit)
SELECT m.id, version, from_agent, to_agents_json, team, reply_to, thread_id, type, topic, priority,
       m.status, payload_json, policy_json, context_json, external_refs_json, sequence, expires_at,
       created_at, updated_at, hop, held
FROM messages AS m
WHERE m.id < :before
  AND (:id IS NULL OR m.id = :id)
  AND (:thread_id IS NULL OR thread_id = :thread_id)
  AND (:type IS NULL OR type = :type)
  AND (:status IS NULL OR m.status = :status)
  AND (:topic IS NULL OR topic = :topic)
  AND (:team IS NULL OR team = :team)
  AND (:held IS NULL OR held = :held)
  AND (:since IS NULL OR created_at >= :since)
  AND (:until IS NULL OR created_at < :until)
  AND (:agent IS NULL
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

-- name: old_messages(before, limit)
SELECT id FROM (SELECT id, created_at FROM messages ORDER BY id LIMIT :limit) AS oldest
WHERE created_at < :before;

-- name: archive_message(id, archived_at, document)!
INSERT INTO messages_archive (id, archived_at, document) VALUES (:id, :archived_at, :document)
ON CONFLICT (id) DO NOTHING;

-- name: purge_message(id)!
DELETE FROM messages WHERE id = :id;

-- name: forget_client_ids(before)!
DELETE FROM client_ids WHERE created_at < :before;

-- name: forget_processed(before)!
DELETE FROM processed_messages
WHERE processed_at < :before
  AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.id = processed_messages.message_id);

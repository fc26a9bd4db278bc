-- name: mailbox(address)^
SELECT high_water, read_count, expired, failed FROM mailboxes WHERE address = :address;

-- name: high_water(address)$
SELECT high_water FROM mailboxes WHERE address = :address;

-- name: put_high_water(high_water, address)!
UPDATE mailboxes SET high_water = :high_water WHERE address = :address;

-- name: open_box(address, created_at)!
INSERT INTO mailboxes (address, high_water, created_at) VALUES (:address, 1, :created_at);

-- name: count_in_box(address, read_count, expired, failed)!
UPDATE mailboxes SET read_count = read_count + :read_count, expired = expired + :expired,
                     failed = failed + :failed
WHERE address = :address;

-- name: insert_delivery(message_id, recipient, channel, box_seq)!
INSERT INTO delivery_log (message_id, recipient, channel, box_seq)
VALUES (:message_id, :recipient, :channel, :box_seq);

-- name: put_box_seq(message_id, recipient, box_seq)!
UPDATE delivery_log SET box_seq = :box_seq
WHERE message_id = :message_id AND recipient = :recipient AND channel = 'inbox';

-- name: deliveries(message_id)
SELECT recipient, status, delivered_at, read_at, error, box_seq
FROM delivery_log WHERE message_id = :message_id AND channel = 'inbox' ORDER BY id;

-- name: delivery(message_id, recipient)^
SELECT recipient, status, delivered_at, read_at, error, box_seq
FROM delivery_log
WHERE message_id = :message_id AND recipient = :recipient AND channel = 'inbox';

-- name: put_delivery(message_id, recipient, status, delivered_at, read_at, error)!
UPDATE delivery_log SET status = :status, delivered_at = coalesce(delivered_at, :delivered_at),
                        read_at = :read_at, error = :error
WHERE message_id = :message_id AND recipient = :recipient AND channel = 'inbox';

-- name: unread_box(address, after, now, urgent, limit)
SELECT d.box_seq, d.status, (SELECT node FROM mail_sources WHERE message_id = m.id), m.id, version,
       from_agent, to_agents_json, team, reply_to, thread_id, type, topic, priority, m.status,
       payload_json, policy_json, context_json, external_refs_json, sequence, expires_at,
       created_at, updated_at, hop, held
FROM delivery_log AS d JOIN messages AS m ON m.id = d.message_id
WHERE d.recipient = :address AND d.box_seq > :after AND d.status IN ('pending', 'delivered')
  AND (m.expires_at IS NULL OR m.expires_at > :now)
  AND (NOT :urgent OR m.priority IN ('high', 'critical'))
ORDER BY d.box_seq LIMIT :limit;

-- name: unread_heads(address, now, limit)
SELECT m.id, priority
FROM delivery_log AS d JOIN messages AS m ON m.id = d.message_id
WHERE d.recipient = :address AND d.box_seq > 0 AND d.status IN ('pending', 'delivered')
  AND (m.expires_at IS NULL OR m.expires_at > :now)
ORDER BY d.box_seq LIMIT :limit;

-- name: whole_box(address, after, urgent, limit)
SELECT d.box_seq, d.status, (SELECT node FROM mail_sources WHERE message_id = m.id), m.id, version,
       from_agent, to_agents_json, team, reply_to, thread_id, type, topic, priority, m.status,
       payload_json, policy_json, context_json, external_refs_json, sequence, expires_at,
       created_at, updated_at, hop, held
FROM delivery_log AS d JOIN messages AS m ON m.id = d.message_id
WHERE d.recipient = :address AND d.box_seq > :after
  AND (NOT :urgent OR m.priority IN ('high', 'critical'))
ORDER BY d.box_seq LIMIT :limit;

-- name: is_processed(recipient, message_id)$
SELECT 1 FROM processed_messages WHERE recipient = :recipient AND message_id = :message_id;

-- name: put_processed(recipient, message_id, processed_at)!
INSERT INTO processed_messages (recipient, message_id, processed_at)
VALUES (:recipient, :message_id, :processed_at)
ON CONFLICT (recipient, message_id) DO NOTHING;

-- name: dead_letters(address, human, after, limit)
SELECT d.id, d.channel, d.recipient, d.status, d.delivered_at, d.read_at, d.error, d.box_seq,
       m.id, version, from_agent, to_agents_json, team, reply_to, thread_id, type, topic, priority,
       m.status, payload_json, policy_json, context_json, external_refs_json, sequence, expires_at,
       created_at, updated_at, hop, held
FROM delivery_log AS d JOIN messages AS m ON m.id = d.message_id
WHERE d.status IN ('failed', 'expired') AND (d.channel = 'inbox' OR d.status = 'failed')
  AND d.id > :after
  AND (from_agent = :address
       OR (from_agent >= :address || '@' AND from_agent < :address || 'A')
       OR (:human AND (priority = 'critical'
                       OR policy_json LIKE '%"human-audit"%'
                       OR policy_json LIKE '%"required"%')))
ORDER BY d.id LIMIT :limit;

-- name: archived_dead_letters(address, human, after, limit)
SELECT d.id, d.recipient, a.document
FROM archived_dead_letters AS d JOIN messages_archive AS a ON a.id = d.message_id
WHERE d.id > :after AND (d.sender = :address OR (:human AND d.open_to_humans = 1))
ORDER BY d.id LIMIT :limit;

-- name: count_dead_letters()
SELECT status, count(*) FROM delivery_log
WHERE status IN ('failed', 'expired') AND channel = 'inbox' GROUP BY status
UNION ALL SELECT 'archived', count(*) FROM archived_dead_letters;

-- name: known_agents()
SELECT agent_id FROM keys WHERE revoked_at IS NULL AND trust = 'verified'
UNION SELECT agent_id FROM repos WHERE agent_id IS NOT NULL
ORDER BY 1;

-- name: agents_like(identity)
SELECT agent_id FROM keys
WHERE revoked_at IS NULL AND trust = 'verified'
  AND substr(agent_id, 1, length(:identity)) = :identity
UNION SELECT agent_id FROM repos WHERE substr(agent_id, 1, length(:identity)) = :identity
UNION SELECT agent FROM homes WHERE substr(agent, 1, length(:identity)) = :identity;

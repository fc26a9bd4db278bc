-- name: insert_push(message_id, recipient, channel, due_at)!
INSERT INTO delivery_log (message_id, recipient, channel, due_at)
VALUES (:message_id, :recipient, :channel, :due_at)
ON CONFLICT (message_id, recipient, channel) DO NOTHING;

-- name: due_recipients(channel, now, limit)
SELECT recipient, min(due_at) FROM delivery_log
WHERE due_at IS NOT NULL AND channel IN ('channel', 'wake') AND channel = :channel AND due_at <= :now
GROUP BY recipient ORDER BY 2 LIMIT :limit;

-- name: next_due(channel, now)$
SELECT min(due_at) FROM delivery_log
WHERE due_at IS NOT NULL AND channel IN ('channel', 'wake') AND channel = :channel
  AND due_at > :now;

-- name: next_due_to(recipient, channel)$
SELECT min(due_at) FROM delivery_log
WHERE due_at IS NOT NULL AND recipient = :recipient AND channel = :channel;

-- name: due_pushes(recipient, channel, now, urgent, limit)
SELECT d.id, d.status, d.pushes, d.failures, d.due_at, i.box_seq, i.status,
       m.id, version, from_agent, to_agents_json, team, reply_to, thread_id, type, topic, priority,
       m.status, payload_json, policy_json, context_json, external_refs_json, sequence, expires_at,
       created_at, updated_at, hop, held
FROM delivery_log AS d
     JOIN delivery_log AS i ON i.message_id = d.message_id AND i.recipient = d.recipient
                           AND i.channel = 'inbox'
     JOIN messages AS m ON m.id = d.message_id
WHERE d.due_at IS NOT NULL AND d.recipient = :recipient AND d.channel = :channel
  AND d.due_at <= :now AND (NOT :urgent OR m.priority IN ('high', 'critical'))
ORDER BY d.id LIMIT :limit;

-- name: put_push(id, status, pushes, failures, due_at, delivered_at, error, holder)!
UPDATE delivery_log SET status = :status, pushes = :pushes, failures = :failures, due_at = :due_at,
                        delivered_at = coalesce(delivered_at, :delivered_at), error = :error,
                        holder = :holder
WHERE id = :id AND due_at IS NOT NULL;

-- name: end_pushes(message_id, recipient, status)!
UPDATE delivery_log SET status = :status, due_at = NULL
WHERE message_id = :message_id AND recipient = :recipient AND channel <> 'inbox';

-- name: put_off(recipient, channel, now, due_at)!
UPDATE delivery_log SET due_at = :due_at
WHERE due_at IS NOT NULL AND recipient = :recipient AND channel = :channel AND due_at <= :now;

-- name: release(recipient, holder, after, now)!
UPDATE delivery_log SET due_at = :now
WHERE due_at IS NOT NULL AND recipient = :recipient AND channel = 'session' AND due_at > :now
  AND holder = :holder
  AND EXISTS (SELECT 1 FROM delivery_log AS i
              WHERE i.message_id = delivery_log.message_id AND i.recipient = delivery_log.recipient
                AND i.channel = 'inbox' AND i.box_seq > :after);

-- name: rearm_message(message_id, now)!
UPDATE delivery_log SET status = 'pending', failures = 0, error = NULL, due_at = :now
WHERE message_id = :message_id AND channel <> 'inbox' AND status = 'failed'
  AND EXISTS (SELECT 1 FROM delivery_log AS i
              WHERE i.message_id = delivery_log.message_id AND i.recipient = delivery_log.recipient
                AND i.channel = 'inbox' AND i.status IN ('pending', 'delivered'));

-- name: rearm_channel(recipient, channel, now)!
UPDATE delivery_log SET status = 'pending', failures = 0, error = NULL, due_at = :now
WHERE recipient = :recipient AND channel = :channel AND status = 'failed'
  AND EXISTS (SELECT 1 FROM delivery_log AS i
              WHERE i.message_id = delivery_log.message_id AND i.recipient = delivery_log.recipient
                AND i.channel = 'inbox' AND i.status IN ('pending', 'delivered'));

-- name: drop_pushes(recipient, channel)!
UPDATE delivery_log SET due_at = NULL
WHERE due_at IS NOT NULL AND recipient = :recipient AND channel = :channel;

-- name: waiting_pushes(recipient, channel)$
SELECT count(*) FROM delivery_log
WHERE due_at IS NOT NULL AND recipient = :recipient AND channel = :channel AND status = 'pending';

-- name: failed_pushes(recipient, channel)$
SELECT count(*) FROM delivery_log
WHERE status = 'failed' AND recipient = :recipient
  AND channel = :channel;

-- name: webhook(address)^
SELECT webhook_id, url, created_at FROM webhooks WHERE address = :address;

-- name: put_webhook(address, webhook_id, url, created_at)!
INSERT INTO webhooks (address, webhook_id, url, created_at)
VALUES (:address, :webhook_id, :url, :created_at)
ON CONFLICT (address) DO UPDATE SET webhook_id = excluded.webhook_id, url = excluded.url,
                                    created_at = excluded.created_at;

-- name: drop_webhook(address)!
DELETE FROM webhooks WHERE address = :address;

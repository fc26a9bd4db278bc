-- Lists of threads. What a reader may see of a thread is as in `messages_found`.

-- name: threads_of_party(address, human, before, limit)
-- Of a human, those whose last message is its own; the others follow in `threads_open_to_humans`.
SELECT p.thread_id, p.last FROM thread_parties AS p
WHERE p.address = :address AND p.last < :before
  AND NOT (:human AND EXISTS (SELECT 1 FROM threads AS t
                              WHERE t.thread_id = p.thread_id AND t.last_open > p.last))
ORDER BY p.last DESC LIMIT :limit;

-- name: threads_open_to_humans(address, before, limit)
SELECT t.thread_id, t.last_open FROM threads AS t
WHERE t.last_open IS NOT NULL AND t.last_open < :before
  AND NOT EXISTS (SELECT 1 FROM thread_parties AS p
                  WHERE p.thread_id = t.thread_id AND p.address = :address
                    AND p.last >= t.last_open)
ORDER BY t.last_open DESC LIMIT :limit;

-- name: thread_counts(thread, address, human, most)^
SELECT count(*), coalesce(sum(unread), 0) FROM (
    SELECT CASE WHEN EXISTS (
               SELECT 1 FROM delivery_log AS d
               WHERE d.message_id = m.id AND d.recipient = :address AND d.channel = 'inbox'
                 AND d.box_seq IS NOT NULL AND d.status IN ('pending', 'delivered'))
           THEN 1 ELSE 0 END AS unread
    FROM messages AS m
    WHERE m.thread = :thread
      AND (m.from_agent = :address
           OR (m.from_agent >= :address || '@' AND m.from_agent < :address || 'A')
           OR EXISTS (SELECT 1 FROM delivery_log AS d
                      WHERE d.message_id = m.id AND d.recipient = :address
                        AND d.channel = 'inbox' AND d.box_seq IS NOT NULL)
           OR (:human AND (m.priority = 'critical'
                           OR m.policy_json LIKE '%"human-audit"%'
                           OR m.policy_json LIKE '%"required"%')))
    ORDER BY m.id DESC LIMIT :most) AS seen;

-- name: first_seen_of_thread(thread, address, human)^
SELECT topic, payload_json FROM messages AS m
WHERE m.thread = :thread
  AND (from_agent = :address
       OR (from_agent >= :address || '@' AND from_agent < :address || 'A')
       OR EXISTS (SELECT 1 FROM delivery_log AS d
                  WHERE d.message_id = m.id AND d.recipient = :address
                    AND d.channel = 'inbox' AND d.box_seq IS NOT NULL)
       OR (:human AND (priority = 'critical'
                       OR policy_json LIKE '%"human-audit"%'
                       OR policy_json LIKE '%"required"%')))
ORDER BY m.id LIMIT 1;

-- name: messages_seen_of_thread(thread, address, human, before, limit)
SELECT m.id, version, from_agent, to_agents_json, team, reply_to, thread_id, type, topic, priority,
       m.status, payload_json, policy_json, context_json, external_refs_json, sequence, expires_at,
       created_at, updated_at, hop, held
FROM messages AS m
WHERE m.thread = :thread AND m.id < :before
  AND (from_agent = :address
       OR (from_agent >= :address || '@' AND from_agent < :address || 'A')
       OR EXISTS (SELECT 1 FROM delivery_log AS d
                  WHERE d.message_id = m.id AND d.recipient = :address
                    AND d.channel = 'inbox' AND d.box_seq IS NOT NULL)
       OR (:human AND (priority = 'critical'
                       OR policy_json LIKE '%"human-audit"%'
                       OR policy_json LIKE '%"required"%')))
ORDER BY m.id DESC LIMIT :limit;

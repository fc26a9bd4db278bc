-- name: mail_messages(changed, id)
SELECT id, version, from_agent, to_agents_json, team, reply_to, thread_id, type, topic, priority,
       status, payload_json, policy_json, context_json, external_refs_json, sequence, expires_at,
       created_at, updated_at, hop, held, coalesce(updated_at, created_at) AS changed
FROM messages
WHERE coalesce(updated_at, created_at) > :changed
   OR (coalesce(updated_at, created_at) = :changed AND id > :id)
ORDER BY changed, id;

-- name: mail_archive(seq)
SELECT seq, document FROM messages_archive WHERE seq > :seq ORDER BY seq;

-- name: mail_audit(seq)
SELECT seq, at, actor, action, outcome, message_id, detail
FROM acp_audit WHERE seq > :seq ORDER BY seq;

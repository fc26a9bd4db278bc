-- name: open_items_of_agents()
-- The openings on contracts and questions, for each holder of a repo. Whom one does not concern is
-- decided by `server.domain.agents.same_agent`.
SELECT r.agent_id, o.not_agent, count(DISTINCT o.item_id),
       count(DISTINCT CASE WHEN o.urgency = 'urgent' THEN o.item_id END), min(o.since)
FROM attention_openings AS o JOIN repos AS r
  ON r.project_id = o.project_id AND o.repo_id IN (r.repo_id, '') AND o.not_repo <> r.repo_id
WHERE r.agent_id IS NOT NULL
  AND o.project_id NOT IN (SELECT project_id FROM project_lifecycle WHERE state = 'archived')
GROUP BY r.agent_id, o.not_agent;

-- name: open_handoffs_of_agents()
SELECT to_agent, count(*) FROM handoffs WHERE status IN ('proposed', 'accepted', 'activated')
GROUP BY to_agent
UNION ALL
SELECT from_agent, count(*) FROM handoffs WHERE status IN ('draft', 'completed')
GROUP BY from_agent;

-- name: unread_of_agents()
SELECT address, high_water - read_count - expired - failed FROM mailboxes
WHERE high_water > read_count + expired + failed;

-- name: active_keys()
SELECT agent_id, trust, created_at, human,
       (SELECT count(*) FROM key_projects AS p WHERE p.key_id = keys.key_id)
FROM keys WHERE revoked_at IS NULL ORDER BY created_at, key_id;

-- name: webhook_addresses()
SELECT address FROM webhooks;

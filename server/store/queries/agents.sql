-- name: open_items_of_repos()
-- The openings on contracts and questions, counted by whom they are for (`Opening.concerns`).
SELECT project_id, repo_id, not_repo, not_agent, count(*), sum(CASE urgency WHEN 'urgent' THEN 1 ELSE 0 END), min(since)
FROM attention_openings
WHERE project_id NOT IN (SELECT project_id FROM project_lifecycle WHERE state = 'archived')
GROUP BY project_id, repo_id, not_repo, not_agent;

-- name: holders_of_repos()
SELECT project_id, repo_id, agent_id FROM repos WHERE agent_id IS NOT NULL;

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

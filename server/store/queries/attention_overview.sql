-- name: openings_everywhere(projects)
-- In the order of the primary key, in which the openings of one kind on a subject stand together.
SELECT subject_id, revision,
       item_id, kind, urgency, since, project_id, repo_id, not_repo, not_agent
FROM attention_openings
WHERE (CAST(:projects AS TEXT) IS NULL OR project_id IN (SELECT value FROM json_each(:projects)))
  AND project_id NOT IN (SELECT project_id FROM project_lifecycle WHERE state = 'archived')
ORDER BY project_id, subject_id, item_id;

-- name: contract_notes(keys)
SELECT c.project_id, c.contract_id, c.name, c.proposed_by, c.version,
       (SELECT json_extract(f.body, '$.parties', '$.agent_id') FROM facts AS f
        WHERE f.contract_id = c.contract_id AND f.kind = 'version'
          AND f.key >= c.version || '/' AND f.key < c.version || '0'
        ORDER BY f.stamp DESC, f.key DESC LIMIT 1)
FROM json_each(:keys) AS j
JOIN contracts AS c ON c.project_id = json_extract(j.value, '$[0]')
                   AND c.contract_id = json_extract(j.value, '$[1]');

-- name: contract_notes_postgresql(keys)
SELECT c.project_id, c.contract_id, c.name, c.proposed_by, c.version,
       (SELECT CAST(json_build_array(CAST(json_extract(f.body, '$.parties') AS JSON),
                                     json_extract(f.body, '$.agent_id')) AS TEXT)
        FROM facts AS f
        WHERE f.contract_id = c.contract_id AND f.kind = 'version'
          AND f.key >= c.version || '/' AND f.key < c.version || '0'
        ORDER BY f.stamp DESC, f.key DESC LIMIT 1)
FROM json_each(:keys) AS j
JOIN contracts AS c ON c.project_id = json_extract(j.value, '$[0]')
                   AND c.contract_id = json_extract(j.value, '$[1]');

-- name: question_notes(keys)
SELECT p.project_id, p.packet_id, json_extract(p.document, '$.from_repo'),
       json_extract(p.document, '$.from_agent'), json_extract(p.document, '$.content')
FROM json_each(:keys) AS j
JOIN packets AS p ON p.project_id = json_extract(j.value, '$[0]')
                 AND p.packet_id = json_extract(j.value, '$[1]');

-- name: repos_of_projects(ids)
SELECT p.project_id, p.name, p.created_by, r.repo_id, r.name, r.agent_id
FROM json_each(:ids) AS j JOIN projects AS p ON p.project_id = j.value
LEFT JOIN repos AS r ON r.project_id = p.project_id
ORDER BY p.project_id, r.stamp, r.repo_id;

-- name: vacant_repos(projects, limit)
SELECT r.project_id, r.repo_id, max(r.stamp, p.created_at)
FROM repos AS r JOIN projects AS p ON p.project_id = r.project_id
WHERE r.agent_id IS NULL AND p.status <> 'complete'
  AND (CAST(:projects AS TEXT) IS NULL OR r.project_id IN (SELECT value FROM json_each(:projects)))
  AND r.project_id NOT IN (SELECT project_id FROM project_lifecycle WHERE state <> 'active')
ORDER BY p.created_at DESC LIMIT :limit;

-- name: lost_claims_everywhere(projects, limit)
SELECT l.project_id, l.repo_id, l.agent_id, r.agent_id, l.claimed_at
FROM claim_conflicts AS l JOIN repos AS r ON r.project_id = l.project_id AND r.repo_id = l.repo_id
WHERE r.agent_id IS NOT NULL
  AND (CAST(:projects AS TEXT) IS NULL OR l.project_id IN (SELECT value FROM json_each(:projects)))
  AND l.project_id NOT IN (SELECT project_id FROM project_lifecycle WHERE state = 'archived')
  AND NOT EXISTS (SELECT 1 FROM claim_releases AS e
                  WHERE e.project_id = l.project_id AND e.repo_id = l.repo_id
                    AND (l.agent_id = e.agent_id
                         OR (l.agent_id >= e.agent_id || '@' AND l.agent_id < e.agent_id || 'A'))
                    AND l.claimed_at <= e.released_at)
ORDER BY l.claimed_at DESC LIMIT :limit;

-- name: queries_everywhere(now, limit)
SELECT m.id, m.from_agent, d.recipient, m.created_at, m.priority,
       json_extract(m.payload_json, '$.question'),
       m.priority = 'critical' OR m.policy_json LIKE '%"human-audit"%'
           OR m.policy_json LIKE '%"required"%'
FROM unanswered_queries AS q
-- CROSS JOIN: few queries are unanswered, and the boxes may be large.
CROSS JOIN delivery_log AS d
JOIN messages AS m ON m.id = q.message_id
WHERE d.message_id = q.message_id AND d.channel = 'inbox' AND d.box_seq IS NOT NULL AND d.status IN ('pending', 'delivered', 'read')
  AND (m.expires_at IS NULL OR m.expires_at > :now)
ORDER BY q.message_id LIMIT :limit;

-- name: unread_mailboxes(limit)
SELECT b.address, b.high_water - b.read_count - b.expired - b.failed,
       (SELECT m.created_at FROM delivery_log AS d JOIN messages AS m ON m.id = d.message_id
        WHERE d.recipient = b.address AND d.box_seq IS NOT NULL
          AND d.status IN ('pending', 'delivered')
        ORDER BY d.box_seq LIMIT 1)
FROM mailboxes AS b WHERE b.high_water > b.read_count + b.expired + b.failed
ORDER BY b.address LIMIT :limit;

-- name: open_handoffs(limit)
SELECT h.id, h.title, h.status, h.from_agent, h.to_agent, h.initiated_at,
       json_extract(h.package_json, '$.task.priority'),
       json_extract(h.package_json, '$.policy.classification'),
       c.human_approval IS NULL AND h.package_json LIKE '%"requires_human_approval":true%',
       c.due_at, c.escalated_at,
       (SELECT max(at) FROM handoff_history AS s WHERE s.handoff_id = h.id)
FROM handoffs AS h JOIN handoff_control AS c ON c.handoff_id = h.id
WHERE h.status IN ('proposed', 'validating', 'accepted', 'activated', 'completed')
ORDER BY h.id LIMIT :limit;

-- name: newest_dead_letters(limit)
-- Without those that were sent again.
SELECT m.id, m.from_agent, d.recipient, m.created_at,
       m.priority = 'critical' OR m.policy_json LIKE '%"human-audit"%'
           OR m.policy_json LIKE '%"required"%'
FROM delivery_log AS d JOIN messages AS m ON m.id = d.message_id
WHERE d.channel = 'inbox' AND d.status IN ('failed', 'expired')
  AND NOT EXISTS (SELECT 1 FROM client_ids AS c
                  WHERE c.sender = m.from_agent AND c.client_id >= 'replay:' || m.id || ':'
                    AND c.client_id < 'replay:' || m.id || ';')
ORDER BY d.id DESC LIMIT :limit;

-- name: agents_with_keys()
SELECT DISTINCT agent_id, human FROM keys WHERE revoked_at IS NULL AND trust = 'verified';

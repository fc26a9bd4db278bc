-- name: openings_of_subject(project_id, subject_id)
SELECT item_id, kind, urgency, since, project_id, repo_id, not_repo, not_agent
FROM attention_openings WHERE project_id = :project_id AND subject_id = :subject_id;

-- name: insert_opening(subject_id, item_id, kind, urgency, since, project_id, repo_id, not_repo, not_agent)!
INSERT INTO attention_openings
    (subject_id, item_id, kind, urgency, since, project_id, repo_id, not_repo, not_agent, revision)
VALUES (:subject_id, :item_id, :kind, :urgency, :since, :project_id, :repo_id, :not_repo, :not_agent,
        (SELECT coalesce(max(seq), 0) FROM changes));

-- name: insert_first_opening(subject_id, item_id, kind, urgency, since, project_id, repo_id, not_repo, not_agent, revision)!
-- Of a new subject: any revision will do.
INSERT INTO attention_openings
    (subject_id, item_id, kind, urgency, since, project_id, repo_id, not_repo, not_agent, revision)
VALUES (:subject_id, :item_id, :kind, :urgency, :since, :project_id, :repo_id, :not_repo, :not_agent,
        :revision);

-- name: drop_opening(project_id, subject_id, item_id)!
DELETE FROM attention_openings
WHERE project_id = :project_id AND subject_id = :subject_id AND item_id = :item_id;

-- name: revise_openings(project_id, subject_id)!
UPDATE attention_openings SET revision = (SELECT coalesce(max(seq), 0) FROM changes)
WHERE project_id = :project_id AND subject_id = :subject_id;

-- name: add_to_opening_count(project_id, kind, change)!
INSERT INTO attention_counts (project_id, kind, open) VALUES (:project_id, :kind, :change)
ON CONFLICT (project_id, kind) DO UPDATE SET open = attention_counts.open + excluded.open;

-- name: drop_openings()!
DELETE FROM attention_openings;

-- name: drop_opening_counts()!
DELETE FROM attention_counts;

-- name: all_openings()
SELECT subject_id, item_id, kind, urgency, since, project_id, repo_id, not_repo, not_agent
FROM attention_openings;

-- name: opening_counts()
SELECT kind, sum(open) FROM attention_counts
WHERE open > 0
  AND project_id NOT IN (SELECT project_id FROM project_lifecycle WHERE state = 'archived')
GROUP BY kind;

-- name: all_opening_counts()
SELECT project_id, kind, open FROM attention_counts WHERE open > 0;

-- name: waiting_of_agents()
SELECT 'join', count(*) FROM repos AS r JOIN keys AS k ON k.repo = r.name
WHERE r.agent_id IS NULL AND k.revoked_at IS NULL AND k.trust = 'verified'
UNION ALL
SELECT 'answer', count(*) FROM unanswered_queries
UNION ALL
SELECT 'handoff', count(*) FROM handoffs
WHERE status IN ('proposed', 'accepted', 'activated', 'completed')
UNION ALL
SELECT 'approve', count(*) FROM messages WHERE held = 'gate'
UNION ALL
SELECT 'approve', count(*) FROM handoffs AS h JOIN handoff_control AS c ON c.handoff_id = h.id
WHERE h.status IN ('proposed', 'validating') AND c.human_approval IS NULL
  AND h.package_json LIKE '%"requires_human_approval":true%'
UNION ALL
SELECT 'mail', count(*) FROM mailboxes WHERE high_water > read_count + expired + failed;

-- name: repos_held_by(identity)
SELECT r.project_id, r.repo_id, r.name, r.agent_id, r.stamp FROM repos AS r
WHERE r.agent_id = :identity OR (r.agent_id >= :identity || '@' AND r.agent_id < :identity || 'A')
ORDER BY r.project_id, r.stamp, r.repo_id;

-- name: openings_for(identity)
SELECT o.subject_id, o.revision, o.item_id, o.kind, o.urgency, o.since, o.project_id,
       o.repo_id, o.not_repo, o.not_agent
FROM repos AS r JOIN attention_openings AS o
  ON o.project_id = r.project_id AND o.repo_id IN (r.repo_id, '')
WHERE (r.agent_id = :identity
       OR (r.agent_id >= :identity || '@' AND r.agent_id < :identity || 'A'))
  AND o.project_id NOT IN (SELECT project_id FROM project_lifecycle WHERE state = 'archived');

-- name: names_of_projects(ids)
SELECT p.project_id, p.name, r.repo_id, r.name
FROM json_each(:ids) AS j JOIN projects AS p ON p.project_id = j.value
LEFT JOIN repos AS r ON r.project_id = p.project_id;

-- name: contract_keys()
SELECT project_id, contract_id FROM contracts;

-- name: question_keys()
SELECT project_id, packet_id FROM packets WHERE type = 'question';

-- name: question_packet(project_id, packet_id)$
SELECT document FROM packets
WHERE project_id = :project_id AND packet_id = :packet_id AND type = 'question';

-- name: replies_to_packet(project_id, packet_id)
SELECT json_extract(document, '$.from_repo'), type FROM packets
WHERE project_id = :project_id AND reply_to = :packet_id;

-- name: lost_claims_of(identity)
SELECT l.project_id, l.repo_id, l.agent_id, r.agent_id, l.claimed_at
FROM claim_conflicts AS l JOIN repos AS r ON r.project_id = l.project_id AND r.repo_id = l.repo_id
WHERE r.agent_id IS NOT NULL
  AND (l.agent_id = :identity
       OR (l.agent_id >= :identity || '@' AND l.agent_id < :identity || 'A'))
  AND l.project_id NOT IN (SELECT project_id FROM project_lifecycle WHERE state = 'archived')
  AND NOT EXISTS (SELECT 1 FROM claim_releases AS e
                  WHERE e.project_id = l.project_id AND e.repo_id = l.repo_id
                    AND e.agent_id = :identity AND l.claimed_at <= e.released_at);

-- name: free_repos(repo, identity, limit)
SELECT r.project_id, r.repo_id, p.objective, max(r.stamp, p.created_at)
FROM repos AS r JOIN projects AS p ON p.project_id = r.project_id
WHERE r.name = :repo AND r.agent_id IS NULL AND p.status <> 'complete'
  AND r.project_id NOT IN (SELECT project_id FROM project_lifecycle WHERE state <> 'active')
  AND NOT EXISTS (SELECT 1 FROM claim_releases AS e
                  WHERE e.project_id = r.project_id AND e.repo_id = r.repo_id
                    AND e.agent_id = :identity)
ORDER BY p.created_at DESC LIMIT :limit;

-- name: has_written_about(identity, topic, holder)$
SELECT 1 FROM messages
WHERE (from_agent = :identity OR (from_agent >= :identity || '@' AND from_agent < :identity || 'A'))
  AND topic = :topic AND instr(to_agents_json, '"' || :holder) > 0
LIMIT 1;

-- name: insert_unanswered_query(message_id)!
INSERT INTO unanswered_queries (message_id) VALUES (:message_id) ON CONFLICT DO NOTHING;

-- name: repliers_to(message_id)
SELECT from_agent FROM messages WHERE reply_to = :message_id AND type <> 'knowledge.query';

-- name: asker_of_query(message_id)$
SELECT m.from_agent FROM unanswered_queries AS q JOIN messages AS m ON m.id = q.message_id
WHERE q.message_id = :message_id;

-- name: drop_unanswered_query(message_id)!
DELETE FROM unanswered_queries WHERE message_id = :message_id;

-- name: queries_to(address, now)
SELECT m.id, m.from_agent, m.created_at, m.priority, m.topic, m.payload_json
FROM unanswered_queries AS q
JOIN delivery_log AS d ON d.message_id = q.message_id AND d.recipient = :address
                      AND d.channel = 'inbox'
JOIN messages AS m ON m.id = q.message_id
WHERE d.box_seq IS NOT NULL AND d.status IN ('pending', 'delivered', 'read')
  AND (m.expires_at IS NULL OR m.expires_at > :now);

-- name: unread_by_priority(address, now)
SELECT m.priority, count(*), min(m.created_at), max(d.box_seq)
FROM delivery_log AS d JOIN messages AS m ON m.id = d.message_id
WHERE d.recipient = :address AND d.box_seq IS NOT NULL AND d.status IN ('pending', 'delivered')
  AND (m.expires_at IS NULL OR m.expires_at > :now)
GROUP BY m.priority;

-- name: handoffs_waiting_for(address)
SELECT id FROM handoffs WHERE to_agent = :address
  AND status IN ('proposed', 'validating', 'accepted', 'activated')
UNION
SELECT id FROM handoffs WHERE from_agent = :address AND status IN ('draft', 'completed')
UNION
SELECT h.id FROM team_members AS t JOIN handoff_control AS c ON c.team = t.team
JOIN handoffs AS h ON h.id = c.handoff_id
WHERE t.agent_id = :address AND h.status IN ('proposed', 'validating', 'completed');

-- name: handoffs_elsewhere_waiting_for(address)
SELECT e.handoff_id, e.status, m.from_agent, m.priority, m.payload_json, m.created_at
FROM handoffs_elsewhere AS e JOIN messages AS m ON m.id = e.offer
WHERE e.recipient = :address AND e.ended = 0 AND e.status IN ('proposed', 'accepted', 'activated')
  AND NOT EXISTS (SELECT 1 FROM handoffs AS h WHERE h.id = e.handoff_id);

-- name: last_step_of(handoff_id)$
SELECT max(at) FROM handoff_history WHERE handoff_id = :handoff_id;

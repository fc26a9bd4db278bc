-- name: export_projects()
SELECT project_id, name, objective, status, agreement_policy, verification_policy, created_at, stamp
FROM projects ORDER BY created_at, project_id;

-- name: export_repos()
SELECT project_id, repo_id, name, role, language, relevant_paths, url, stamp, agent_id,
       agent_endpoint, claimed_at
FROM repos ORDER BY project_id, repo_id;

-- name: export_aliases()
SELECT project_id, alias, repo_id FROM repo_aliases ORDER BY project_id, alias;

-- name: export_claim_conflicts()
SELECT project_id, repo_id, agent_id, agent_endpoint, claimed_at
FROM claim_conflicts ORDER BY project_id, repo_id, agent_id;

-- name: export_stated_releases()
SELECT project_id, repo_id, agent_id, node, by_agent, released_at
FROM stated_releases ORDER BY project_id, repo_id, agent_id, node;

-- name: export_project_lifecycle()
SELECT project_id, state, name, by_agent, stamp
FROM project_lifecycle ORDER BY project_id;

-- name: export_contracts()
SELECT project_id, document, history FROM contracts ORDER BY project_id, contract_id;

-- name: export_facts()
SELECT project_id, contract_id, kind, key, stamp, body
FROM facts ORDER BY contract_id, kind, key;

-- name: export_packets()
SELECT project_id, document FROM packets ORDER BY project_id, stamp, packet_id;

-- The content of another node's file is NULL unless a copy is here.
-- name: export_files()
SELECT f.project_id, f.file_id, f.name, f.content_type, f.size, f.sha256, f.purpose,
       f.related_contracts, f.from_repo, f.from_agent, f.fulfils, f.stamp, c.content
FROM files f LEFT JOIN file_contents c
  ON c.project_id = f.project_id AND c.file_id = f.file_id AND c.sha256 = f.sha256
ORDER BY f.project_id, f.file_id;

-- name: export_file_requests()
SELECT r.project_id, r.request_id, r.requested_by, r.from_agent, r.description,
       r.suggested_format, r.stamp,
       (SELECT f.file_id FROM files f INDEXED BY files_by_request
        WHERE f.project_id = r.project_id AND f.fulfils = r.request_id
        ORDER BY f.stamp, f.file_id LIMIT 1) AS fulfilled_by
FROM file_requests r ORDER BY r.project_id, r.request_id;

-- name: export_changes()
SELECT seq, at, origin, actor, action, entity, entity_id, project_id, outcome
FROM changes ORDER BY seq;

-- name: export_peers()
SELECT agent_id, endpoint, repo_name, trust, registered_at, last_seen
FROM peers ORDER BY registered_at, agent_id;

-- name: export_directory()
SELECT aid, manifest, registrar, verified, registered_at, renewed_at
FROM directory ORDER BY registered_at, agent;

-- name: export_messages()
SELECT id, protocol, version, from_agent, to_agents_json, team, reply_to, thread_id, type, topic,
       priority, status, payload_json, policy_json, context_json, external_refs_json, sequence,
       expires_at, created_at, updated_at, held
FROM messages ORDER BY id;

-- name: export_deliveries()
SELECT message_id, recipient, channel, status, delivered_at, read_at, error, box_seq
FROM delivery_log ORDER BY id;

-- name: export_messages_archive()
SELECT id, archived_at, document FROM messages_archive ORDER BY seq;

-- name: export_acp_audit()
SELECT seq, at, actor, action, outcome, message_id, detail FROM acp_audit ORDER BY seq;

-- name: export_handoffs()
SELECT id, thread_id, task_id, from_agent, to_agent, title, reason, package_json, status,
       provenance_json, verification_json, initiated_at, resolved_at, resolution_notes
FROM handoffs ORDER BY id;

-- name: export_handoff_history()
SELECT seq, handoff_id, step, before_status, after_status, actor, role, code, detail, at
FROM handoff_history ORDER BY seq;

-- name: export_handoff_checks()
SELECT handoff_id, checked_by, package_hash, commands_json, at
FROM handoff_checks ORDER BY handoff_id, checked_by;

-- name: export_teamspaces()
SELECT team, name, purpose, status, created_by, created_at, closed_at
FROM teamspaces ORDER BY created_at, team;

-- name: export_team_members()
SELECT team, agent_id, role FROM team_members ORDER BY team, agent_id;

-- name: export_tasks()
SELECT task_id, team, title, kind, high_risk, status, chain, block_code, block_detail, created_by,
       created_at
FROM tasks ORDER BY created_at, task_id;

-- name: export_team_log()
SELECT seq, team, log, line FROM team_log ORDER BY seq;

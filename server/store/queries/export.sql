-- name: export_projects()
SELECT project_id, name, objective, status, agreement_policy, created_at, stamp
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

-- name: export_contracts()
SELECT project_id, document, history FROM contracts ORDER BY project_id, contract_id;

-- name: export_facts()
SELECT project_id, contract_id, kind, key, stamp, body
FROM facts ORDER BY contract_id, kind, key;

-- name: export_packets()
SELECT project_id, document FROM packets ORDER BY project_id, stamp, packet_id;

-- name: export_files()
SELECT project_id, file_id, name, content_type, size, sha256, purpose, related_contracts,
       from_repo, from_agent, stamp, content
FROM files ORDER BY project_id, file_id;

-- name: export_file_requests()
SELECT project_id, request_id, requested_by, description, suggested_format, stamp, fulfilled_by
FROM file_requests ORDER BY project_id, request_id;

-- name: export_changes()
SELECT seq, at, origin, actor, action, entity, entity_id, project_id, outcome
FROM changes ORDER BY seq;

-- name: export_peers()
SELECT agent_id, endpoint, repo_name, trust, registered_at, last_seen
FROM peers ORDER BY registered_at, agent_id;

-- name: export_directory()
SELECT aid, manifest, registrar, verified, registered_at, renewed_at
FROM directory ORDER BY registered_at, agent;

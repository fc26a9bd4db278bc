-- name: digest_of(entity, project_id, entity_id)$
SELECT digest FROM digests
WHERE entity = :entity AND project_id = :project_id AND entity_id = :entity_id;

-- name: put_digest(entity, project_id, entity_id, place, digest)!
INSERT INTO digests (entity, project_id, entity_id, place, digest)
VALUES (:entity, :project_id, :entity_id, :place, :digest)
ON CONFLICT (entity, project_id, entity_id) DO UPDATE SET digest = excluded.digest;

-- name: digests_at(place)
SELECT entity, project_id, entity_id, digest FROM digests WHERE place = :place;

-- name: sum_of(prefix)$
SELECT digest FROM digest_sums WHERE prefix = :prefix;

-- name: sums_below(low, high, length)
SELECT prefix, digest FROM digest_sums
WHERE prefix >= :low AND prefix < :high AND length(prefix) = :length;

-- name: put_sum(prefix, digest)!
INSERT INTO digest_sums (prefix, digest) VALUES (:prefix, :digest)
ON CONFLICT (prefix) DO UPDATE SET digest = excluded.digest;

-- name: project_state(project_id)
SELECT 'project', name, objective, status, agreement_policy, created_at, stamp
FROM projects WHERE project_id = :project_id;

-- name: repo_states(project_id)
SELECT 'repo', repo_id, name, role, language, relevant_paths, url, stamp, agent_id, agent_endpoint,
       claimed_at, coalesce(renewed_at, claimed_at)
FROM repos WHERE project_id = :project_id;

-- name: lost_claim_states(project_id)
SELECT 'lost', repo_id, agent_id, agent_endpoint, claimed_at, coalesce(renewed_at, claimed_at)
FROM claim_conflicts WHERE project_id = :project_id;

-- When a contract was made is told by its first version, but where a foreign peer says otherwise.
-- name: fact_states(project_id, entity_id)
SELECT kind, key, body FROM facts WHERE contract_id = :entity_id
UNION ALL
SELECT 'created', '', created_at FROM contracts
WHERE project_id = :project_id AND contract_id = :entity_id AND created_at <> (
    SELECT min(stamp) FROM facts WHERE contract_id = :entity_id AND kind = 'version');

-- name: file_state(project_id, entity_id)
SELECT 'file', name, content_type, size, sha256, purpose, related_contracts, from_repo, from_agent,
       fulfils, stamp
FROM files WHERE project_id = :project_id AND file_id = :entity_id;

-- name: file_request_state(project_id, entity_id)
SELECT 'request', requested_by, from_agent, description, suggested_format, stamp
FROM file_requests WHERE project_id = :project_id AND request_id = :entity_id;

-- name: held_counts()^
SELECT (SELECT count(*) FROM projects), (SELECT count(*) FROM contracts),
       (SELECT count(*) FROM packets), (SELECT count(*) FROM files),
       (SELECT count(*) FROM changes WHERE entity = 'conflict'),
       (SELECT count(*) FROM set_aside);

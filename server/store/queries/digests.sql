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

-- name: fact_states(contract_id)
SELECT kind, key, body FROM facts WHERE contract_id = :contract_id;

-- name: held_counts()^
SELECT (SELECT count(*) FROM projects), (SELECT count(*) FROM contracts),
       (SELECT count(*) FROM packets), (SELECT count(*) FROM changes WHERE entity = 'conflict'),
       (SELECT count(*) FROM set_aside);

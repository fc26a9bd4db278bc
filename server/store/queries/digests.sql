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

-- A policy of which older releases know nothing counts only where it is not theirs.
-- name: verification_policy_state(project_id)
SELECT 'verification', verification_policy
FROM projects WHERE project_id = :project_id AND verification_policy <> 'word';

-- name: repo_states(project_id)
SELECT 'repo', repo_id, name, role, language, relevant_paths, url, stamp, agent_id, agent_endpoint,
       claimed_at, coalesce(renewed_at, claimed_at)
FROM repos WHERE project_id = :project_id;

-- name: lost_claim_states(project_id)
SELECT 'lost', repo_id, agent_id, agent_endpoint, claimed_at, coalesce(renewed_at, claimed_at)
FROM claim_conflicts WHERE project_id = :project_id;

-- The parties in a version's key are left out, as its body has them. So nodes of older releases, whose
-- keys had no parties, count the same.
-- Receipts are an entity of their own, which older releases don't know.
-- The last is the contract's own: its type, its name, and when it was made.
-- name: fact_states(project_id, entity_id)
SELECT kind, CASE kind WHEN 'version' THEN substr(key, 1, length(key) - 65) ELSE key END, body, NULL
FROM facts WHERE contract_id = :entity_id AND kind <> 'receipt'
UNION ALL
SELECT 'contract', type, name, created_at FROM contracts
WHERE project_id = :project_id AND contract_id = :entity_id;

-- name: receipt_states(entity_id)
SELECT body FROM facts WHERE contract_id = :entity_id AND kind = 'receipt';

-- name: file_state(project_id, entity_id)
SELECT 'file', name, content_type, size, sha256, purpose, related_contracts, from_repo, from_agent,
       fulfils, stamp
FROM files WHERE project_id = :project_id AND file_id = :entity_id;

-- name: file_request_state(project_id, entity_id)
SELECT 'request', requested_by, from_agent, description, suggested_format, stamp
FROM file_requests WHERE project_id = :project_id AND request_id = :entity_id;

-- Conflicts follow from the facts, so that nodes with the same facts count the same: versions that
-- are neither current nor an ancestor of it (server.domain.contract.conflicts_of), and lost claims.
-- Of versions with the same content the earliest counts (versions_of).
-- name: held_counts()^
WITH RECURSIVE
versions AS (
    SELECT contract_id, key, stamp, CAST(json_extract(body, '$.version') AS BIGINT) AS version,
           json_extract(body, '$.digest') AS digest, json_extract(body, '$.parent') AS parent
    FROM facts WHERE kind = 'version' AND contract_id IN (
        SELECT contract_id FROM facts WHERE kind = 'version'
        GROUP BY contract_id HAVING count(*) > 1)
),
shown AS MATERIALIZED (
    SELECT contract_id, version, stamp, digest, parent FROM (
        SELECT *, row_number() OVER (
            PARTITION BY contract_id, version, digest ORDER BY stamp, key) AS place
        FROM versions) AS placed
    WHERE place = 1
),
links AS MATERIALIZED (
    -- The nearest version below with the digest of the parent: of one digest each is looked at once.
    SELECT contract_id, version, digest, before, parent FROM (
        SELECT *, max(older) OVER (
            PARTITION BY contract_id, place ORDER BY version, older IS NULL DESC
            ROWS UNBOUNDED PRECEDING) AS before
        FROM (SELECT *, parent AS place, NULL AS older FROM shown WHERE parent IS NOT NULL
              UNION ALL
              SELECT *, digest, version FROM shown) AS each) AS sought
    WHERE older IS NULL AND before IS NOT NULL
),
line AS (
    SELECT contract_id, version, digest FROM (
        SELECT *, row_number() OVER (
            PARTITION BY contract_id ORDER BY version DESC, stamp DESC, digest DESC) AS place
        FROM shown) AS placed
    WHERE place = 1
    UNION ALL
    SELECT line.contract_id, links.before, links.parent
    FROM line JOIN links USING (contract_id, version, digest)
)
SELECT (SELECT count(*) FROM projects), (SELECT count(*) FROM contracts),
       (SELECT count(*) FROM packets), (SELECT count(*) FROM files),
       (SELECT count(*) FROM versions) - (SELECT count(*) FROM line)
         + (SELECT count(*) FROM claim_conflicts c WHERE NOT EXISTS (
                SELECT 1 FROM claim_releases r
                WHERE r.project_id = c.project_id AND r.repo_id = c.repo_id
                  AND (r.agent_id = c.agent_id
                       OR substr(c.agent_id, 1, length(r.agent_id) + 1) = r.agent_id || '@')
                  AND c.claimed_at <= r.released_at)),
       (SELECT count(*) FROM set_aside);

-- name: claim_of(project_id, repo_id)^
SELECT agent_id, agent_endpoint, claimed_at, coalesce(renewed_at, claimed_at), claim_signature
FROM repos WHERE project_id = :project_id AND repo_id = :repo_id AND agent_id IS NOT NULL;

-- name: lost_claims(project_id, repo_id)
SELECT agent_id, agent_endpoint, claimed_at, coalesce(renewed_at, claimed_at), signature
FROM claim_conflicts WHERE project_id = :project_id AND repo_id = :repo_id ORDER BY agent_id;

-- name: put_claim(project_id, repo_id, agent_id, agent_endpoint, claimed_at, renewed_at, signature)!
UPDATE repos SET agent_id = :agent_id, agent_endpoint = :agent_endpoint, claimed_at = :claimed_at,
                 renewed_at = :renewed_at, claim_signature = :signature
WHERE project_id = :project_id AND repo_id = :repo_id;

-- name: put_lost_claim(project_id, repo_id, agent_id, agent_endpoint, claimed_at, renewed_at, signature)!
INSERT INTO claim_conflicts
    (project_id, repo_id, agent_id, agent_endpoint, claimed_at, renewed_at, signature)
VALUES (:project_id, :repo_id, :agent_id, :agent_endpoint, :claimed_at, :renewed_at, :signature);

-- name: drop_lost_claims(project_id, repo_id)!
DELETE FROM claim_conflicts WHERE project_id = :project_id AND repo_id = :repo_id;

-- name: claim_signatures(project_id)
SELECT claim_signature FROM repos WHERE project_id = :project_id AND agent_id IS NOT NULL
UNION ALL
SELECT signature FROM claim_conflicts WHERE project_id = :project_id;

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

-- name: clear_claim(project_id, repo_id)!
UPDATE repos SET agent_id = NULL, agent_endpoint = NULL, claimed_at = NULL, renewed_at = NULL,
                 claim_signature = NULL
WHERE project_id = :project_id AND repo_id = :repo_id;

-- name: releases_of_repo(project_id, repo_id)
SELECT agent_id, by_agent, released_at, signature FROM claim_releases
WHERE project_id = :project_id AND repo_id = :repo_id;

-- name: stated_releases_of_repo(project_id, repo_id)
SELECT node, agent_id, by_agent, released_at, signature FROM stated_releases
WHERE project_id = :project_id AND repo_id = :repo_id;

-- name: stated_releases_of_project(project_id)
SELECT repo_id, node, agent_id, by_agent, released_at, signature FROM stated_releases
WHERE project_id = :project_id ORDER BY repo_id, agent_id, node;

-- name: release_states(project_id)
SELECT 'released', repo_id, agent_id, node, by_agent, released_at FROM stated_releases
WHERE project_id = :project_id;

-- name: put_stated_release(project_id, repo_id, node, agent_id, by, released_at, signature)!
INSERT INTO stated_releases (project_id, repo_id, agent_id, node, by_agent, released_at, signature)
VALUES (:project_id, :repo_id, :agent_id, :node, :by, :released_at, :signature)
ON CONFLICT (project_id, repo_id, agent_id, node) DO UPDATE SET by_agent = excluded.by_agent,
    released_at = excluded.released_at, signature = excluded.signature;

-- name: drop_releases_of_repo(project_id, repo_id)!
DELETE FROM claim_releases WHERE project_id = :project_id AND repo_id = :repo_id;

-- name: put_release(project_id, repo_id, agent_id, by, released_at, signature)!
INSERT INTO claim_releases (project_id, repo_id, agent_id, by_agent, released_at, signature)
VALUES (:project_id, :repo_id, :agent_id, :by, :released_at, :signature);

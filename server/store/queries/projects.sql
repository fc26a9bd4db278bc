-- name: insert_project(project_id, name, objective, status, agreement_policy, created_at, stamp, signature, verification_policy, created_by)!
INSERT INTO projects (project_id, name, objective, status, agreement_policy, created_at, stamp,
                      signature, verification_policy, created_by)
VALUES (:project_id, :name, :objective, :status, :agreement_policy, :created_at, :stamp,
        :signature, :verification_policy, :created_by);

-- name: update_project_header(name, objective, status, agreement_policy, created_at, stamp, signature, verification_policy, project_id)!
UPDATE projects SET name = :name, objective = :objective, status = :status,
                    agreement_policy = :agreement_policy, created_at = :created_at, stamp = :stamp,
                    signature = :signature, verification_policy = :verification_policy
WHERE project_id = :project_id;

-- name: project_header(project_id)^
SELECT project_id, name, objective, status, agreement_policy, created_at, stamp, signature,
       verification_policy
FROM projects WHERE project_id = :project_id;

-- name: is_known_project(project_id)$
SELECT 1 FROM projects WHERE project_id = :project_id
UNION SELECT 1 FROM project_lifecycle WHERE project_id = :project_id;

-- name: project_headers_before(created_at, project_id, with_archived, limit)
SELECT project_id, name, objective, status, agreement_policy, created_at, stamp, signature,
       verification_policy
FROM projects
WHERE (created_at, project_id) < (:created_at, :project_id)
  AND (:with_archived OR project_id NOT IN (
      SELECT project_id FROM project_lifecycle WHERE state = 'archived'))
ORDER BY created_at DESC, project_id DESC
LIMIT :limit;

-- name: project_names()
SELECT project_id, name FROM projects ORDER BY created_at, project_id;

-- name: project_count(with_archived)$
SELECT count(*) FROM projects
WHERE :with_archived OR project_id NOT IN (
    SELECT project_id FROM project_lifecycle WHERE state = 'archived');

-- name: project_counts(project_id)^
SELECT count(*), max(updated_at), coalesce(sum(CASE status WHEN 'verified' THEN 1 ELSE 0 END), 0)
FROM contracts WHERE project_id = :project_id;

-- name: project_waiting(project_id)$
SELECT coalesce(sum(open), 0) FROM attention_counts WHERE project_id = :project_id;

-- name: project_packet_count(project_id)$
SELECT count(*) FROM packets WHERE project_id = :project_id;

-- name: project_packet_time(project_id)$
SELECT max(stamp) FROM packets WHERE project_id = :project_id;

-- name: project_repos(project_id)
SELECT repo_id, name, role, language, relevant_paths, url, stamp, agent_id, agent_endpoint, claimed_at,
       signature
FROM repos WHERE project_id = :project_id ORDER BY stamp, repo_id;

-- name: held_repos(project_id)
SELECT r.agent_id, p.project_id, p.name, r.name
FROM repos r JOIN projects p ON p.project_id = r.project_id
WHERE r.agent_id IS NOT NULL AND (CAST(:project_id AS TEXT) IS NULL OR p.project_id = :project_id);

-- name: projects_held_by(agent_id)
SELECT DISTINCT project_id FROM repos WHERE agent_id = :agent_id ORDER BY project_id;

-- name: membership(project_id)
SELECT p.name, p.agreement_policy, p.verification_policy, l.state, r.repo_id, r.name, r.agent_id,
       r.role
FROM projects p LEFT JOIN repos r ON r.project_id = p.project_id
     LEFT JOIN project_lifecycle l ON l.project_id = p.project_id
WHERE p.project_id = :project_id
ORDER BY r.stamp, r.repo_id;

-- name: insert_repo(project_id, repo_id, name, role, language, relevant_paths, url, stamp, agent_id, agent_endpoint, claimed_at, signature)!
INSERT INTO repos (project_id, repo_id, name, role, language, relevant_paths, url, stamp,
                   agent_id, agent_endpoint, claimed_at, renewed_at, signature)
VALUES (:project_id, :repo_id, :name, :role, :language, :relevant_paths, :url, :stamp,
        :agent_id, :agent_endpoint, :claimed_at, :claimed_at, :signature);

-- name: update_repo(name, role, language, relevant_paths, url, stamp, signature, project_id, repo_id)!
UPDATE repos SET name = :name, role = :role, language = :language, url = :url, stamp = :stamp,
                 relevant_paths = :relevant_paths, signature = :signature
WHERE project_id = :project_id AND repo_id = :repo_id;

-- name: update_claim(agent_id, agent_endpoint, claimed_at, project_id, repo_id)!
UPDATE repos SET agent_id = :agent_id, agent_endpoint = coalesce(:agent_endpoint, agent_endpoint),
                 claimed_at = coalesce(claimed_at, :claimed_at),
                 renewed_at = CASE WHEN renewed_at >= :claimed_at THEN renewed_at + 1
                                   ELSE :claimed_at END,
                 claim_signature = NULL
WHERE project_id = :project_id AND repo_id = :repo_id;

-- name: insert_claim_conflict(project_id, repo_id, agent_id, agent_endpoint, claimed_at)!
INSERT INTO claim_conflicts (project_id, repo_id, agent_id, agent_endpoint, claimed_at, renewed_at)
VALUES (:project_id, :repo_id, :agent_id, :agent_endpoint, :claimed_at, :claimed_at)
ON CONFLICT DO NOTHING;

-- name: insert_alias(project_id, alias, repo_id, most)!
INSERT INTO repo_aliases (project_id, alias, repo_id)
SELECT :project_id, :alias, :repo_id
WHERE (SELECT count(*) FROM repo_aliases
       WHERE project_id = :project_id AND repo_id = :repo_id) < :most
ON CONFLICT DO NOTHING;

-- name: alias_repo(project_id, alias)$
SELECT repo_id FROM repo_aliases WHERE project_id = :project_id AND alias = :alias;

-- name: lifecycle(project_id)^
SELECT state, name, by_agent, stamp, signature FROM project_lifecycle WHERE project_id = :project_id;

-- name: is_deleted(project_id)$
SELECT 1 FROM project_lifecycle WHERE project_id = :project_id AND state = 'deleted';

-- name: put_lifecycle(project_id, state, name, by, stamp, signature)!
INSERT INTO project_lifecycle (project_id, state, name, by_agent, stamp, signature)
VALUES (:project_id, :state, :name, :by, :stamp, :signature)
ON CONFLICT (project_id) DO UPDATE SET state = excluded.state, name = excluded.name,
    by_agent = excluded.by_agent, stamp = excluded.stamp, signature = excluded.signature;

-- name: lifecycle_state(project_id)
SELECT 'lifecycle', state, name, by_agent, stamp FROM project_lifecycle
WHERE project_id = :project_id;

-- name: project_creator(project_id)$
SELECT created_by FROM projects WHERE project_id = :project_id;

-- name: content_counts(project_id)^
SELECT (SELECT count(*) FROM contracts WHERE project_id = :project_id),
       (SELECT count(*) FROM packets WHERE project_id = :project_id),
       (SELECT count(*) FROM files WHERE project_id = :project_id),
       (SELECT coalesce(sum(size), 0) FROM file_contents WHERE project_id = :project_id);

-- name: drop_exchanged(project_id)!
DELETE FROM exchanged WHERE entity_id = :project_id OR entity_id IN
    (SELECT contract_id FROM contracts WHERE project_id = :project_id);

-- name: drop_facts(project_id)!
DELETE FROM facts WHERE contract_id IN
    (SELECT contract_id FROM contracts WHERE project_id = :project_id);

-- name: drop_contract_packets(project_id)!
DELETE FROM packet_contracts WHERE project_id = :project_id;

-- name: drop_packets(project_id)!
DELETE FROM packets WHERE project_id = :project_id;

-- name: drop_contracts(project_id)!
DELETE FROM contracts WHERE project_id = :project_id;

-- name: drop_file_contents(project_id)!
DELETE FROM file_contents WHERE project_id = :project_id;

-- name: drop_files(project_id)!
DELETE FROM files WHERE project_id = :project_id;

-- name: drop_file_requests(project_id)!
DELETE FROM file_requests WHERE project_id = :project_id;

-- name: drop_openings_of_project(project_id)!
DELETE FROM attention_openings WHERE project_id = :project_id;

-- name: drop_opening_counts_of_project(project_id)!
DELETE FROM attention_counts WHERE project_id = :project_id;

-- name: drop_aliases(project_id)!
DELETE FROM repo_aliases WHERE project_id = :project_id;

-- name: drop_releases(project_id)!
DELETE FROM claim_releases WHERE project_id = :project_id;

-- name: drop_stated_releases(project_id)!
DELETE FROM stated_releases WHERE project_id = :project_id;

-- name: drop_claim_conflicts(project_id)!
DELETE FROM claim_conflicts WHERE project_id = :project_id;

-- name: drop_repos(project_id)!
DELETE FROM repos WHERE project_id = :project_id;

-- name: drop_project(project_id)!
DELETE FROM projects WHERE project_id = :project_id;

-- name: content_digests(project_id)
SELECT place, digest FROM digests
WHERE entity IN ('contract', 'receipt', 'context', 'file', 'file_request') AND project_id = :project_id;

-- name: drop_content_digests(project_id)!
DELETE FROM digests
WHERE entity IN ('contract', 'receipt', 'context', 'file', 'file_request') AND project_id = :project_id;

-- name: end_alarms_of_project(project_id)!
DELETE FROM alarms
WHERE reason = 'content_corrupt' AND instr(about, ' ' || :project_id || '/') > 0;

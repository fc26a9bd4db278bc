-- name: put_thread_run(project_id, agent, run_id, agent_id, status, started_at, reported_at, body)!
INSERT INTO thread_runs (project_id, agent, run_id, agent_id, status, started_at, reported_at, body)
VALUES (:project_id, :agent, :run_id, :agent_id, :status, :started_at, :reported_at, :body)
ON CONFLICT (project_id, agent, run_id) DO UPDATE SET agent_id = excluded.agent_id,
    status = excluded.status, started_at = excluded.started_at, reported_at = excluded.reported_at,
    body = excluded.body;

-- name: drop_older_thread_runs(project_id, most)!
DELETE FROM thread_runs WHERE project_id = :project_id AND (agent, run_id) IN (
    SELECT agent, run_id FROM thread_runs WHERE project_id = :project_id
    ORDER BY reported_at DESC, run_id DESC LIMIT 1000000000 OFFSET :most);

-- name: drop_thread_runs(project_id)!
DELETE FROM thread_runs WHERE project_id = :project_id;

-- name: thread_runs(project_id, before, before_run, limit)
SELECT project_id, run_id, agent_id, status, started_at, reported_at, body FROM thread_runs
WHERE (CAST(:project_id AS TEXT) IS NULL OR project_id = :project_id)
  AND (reported_at, run_id) < (:before, :before_run)
ORDER BY reported_at DESC, run_id DESC LIMIT :limit;

-- name: thread_runs_named(project_id, run_id)
SELECT project_id, run_id, agent_id, status, started_at, reported_at, body FROM thread_runs
WHERE project_id = :project_id AND run_id = :run_id ORDER BY reported_at DESC, agent;

-- name: insert_team(team, name, purpose, created_by, created_at)!
INSERT INTO teamspaces (team, name, purpose, status, created_by, created_at)
VALUES (:team, :name, :purpose, 'active', :created_by, :created_at);

-- name: team(team)^
SELECT team, name, purpose, status, created_by, created_at, closed_at
FROM teamspaces WHERE team = :team;

-- name: close_team(team, at)!
UPDATE teamspaces SET status = 'closed', closed_at = :at WHERE team = :team;

-- name: team_members(team)
SELECT agent_id, role FROM team_members WHERE team = :team ORDER BY agent_id;

-- name: put_team_member(team, agent_id, role)!
INSERT INTO team_members (team, agent_id, role) VALUES (:team, :agent_id, :role)
ON CONFLICT (team, agent_id) DO UPDATE SET role = excluded.role;

-- name: drop_team_member(team, agent_id)!
DELETE FROM team_members WHERE team = :team AND agent_id = :agent_id;

-- name: teams_of(agent_id)
SELECT t.team, t.name, t.status, m.role
FROM team_members m JOIN teamspaces t ON t.team = m.team
WHERE m.agent_id = :agent_id ORDER BY t.team LIMIT 1000;

-- name: teams_of_everyone()
SELECT team FROM teamspaces ORDER BY team LIMIT 1000;

-- name: coordinates_any(agent_id)$
SELECT count(*) FROM team_members m JOIN teamspaces t ON t.team = m.team
WHERE m.agent_id = :agent_id AND m.role = 'coordinator' AND t.status = 'active';

-- name: task(task_id)^
SELECT task_id, team, title, kind, high_risk, status, chain, block_code, block_detail, assigned
FROM tasks WHERE task_id = :task_id;

-- name: tasks_of(team)
SELECT task_id, team, title, kind, high_risk, status, chain, block_code, block_detail, assigned
FROM tasks WHERE team = :team ORDER BY created_at, task_id LIMIT 1000;

-- name: insert_task(task_id, team, title, kind, high_risk, created_by, created_at)!
INSERT INTO tasks (task_id, team, title, kind, high_risk, status, chain, created_by, created_at)
VALUES (:task_id, :team, :title, :kind, :high_risk, 'open', '[]', :created_by, :created_at);

-- name: drop_task(task_id)!
DELETE FROM tasks WHERE task_id = :task_id;

-- name: assign_task(task_id, agent, at)!
UPDATE tasks SET assigned = :agent, assigned_at = :at WHERE task_id = :task_id;

-- name: put_task_chain(task_id, chain)!
UPDATE tasks SET chain = :chain WHERE task_id = :task_id;

-- name: put_task_status(task_id, status, block_code, block_detail)!
UPDATE tasks SET status = :status, block_code = :block_code, block_detail = :block_detail
WHERE task_id = :task_id;

-- name: append_team_log(team, log, line)!
INSERT INTO team_log (team, log, line) VALUES (:team, :log, :line);

-- name: team_log_after(team, log, seq, limit)
SELECT seq, line FROM team_log
WHERE team = :team AND log = :log AND seq > :seq ORDER BY seq LIMIT :limit;

-- name: team_log_heads()
SELECT team, log, max(seq) FROM team_log GROUP BY team, log;

-- name: put_task_team(task_id, team)!
UPDATE tasks SET team = :team WHERE task_id = :task_id AND team IS NULL;

-- name: team_log_newest()$
SELECT coalesce(max(seq), 0) FROM team_log;

-- name: append_change(at, origin, actor, action, entity, entity_id, project_id, outcome)!
INSERT INTO changes (at, origin, actor, action, entity, entity_id, project_id, outcome)
VALUES (:at, :origin, :actor, :action, :entity, :entity_id, :project_id, :outcome);

-- name: changes_after(seq, limit)
SELECT seq, at, origin, actor, action, entity, entity_id, project_id, outcome
FROM changes WHERE seq > :seq ORDER BY seq LIMIT :limit;

-- name: newest_change()$
SELECT coalesce(max(seq), 0) FROM changes;

-- name: forget_answers(before)!
DELETE FROM idempotency WHERE at < :before;

-- name: answer_for(scope)^
SELECT params_hash, result, at FROM idempotency WHERE scope = :scope;

-- name: put_answer(scope, params_hash, result, at)!
INSERT INTO idempotency (scope, params_hash, result, at)
VALUES (:scope, :params_hash, :result, :at)
ON CONFLICT (scope) DO UPDATE SET params_hash = excluded.params_hash, result = excluded.result,
                                  at = excluded.at;

-- name: meta_value(name)$
SELECT value FROM meta WHERE name = :name;

-- name: can_read()$
SELECT count(*) FROM meta;

-- name: put_meta(name, value)!
INSERT INTO meta (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: conflicts_by_origin()
SELECT origin, count(*) FROM changes WHERE entity = 'conflict'
GROUP BY origin ORDER BY origin;

-- name: reach_of_unreceived(given, origin, now)^
SELECT max(CASE WHEN at > :now THEN at END), max(CASE WHEN at <= :now THEN at END)
FROM changes WHERE seq > :given AND origin = :origin;

-- name: unreceived_ahead(given, origin, now)
SELECT DISTINCT entity, entity_id, project_id FROM changes
WHERE seq > :given AND origin = :origin AND at > :now AND project_id IS NOT NULL
  AND entity IN ('project', 'repo', 'contract', 'receipt', 'context', 'file', 'file_request');

-- name: received_ahead(given, origin, now)
SELECT DISTINCT entity, entity_id, project_id FROM changes
WHERE (seq <= :given OR origin <> :origin) AND at > :now AND project_id IS NOT NULL
  AND entity IN ('project', 'repo', 'contract', 'receipt', 'context', 'file', 'file_request');

-- name: put_back_changes(given, origin, now)!
UPDATE changes SET at = :now WHERE seq > :given AND origin = :origin AND at > :now;

-- name: has_unreceived(given, origin)$
SELECT EXISTS (
    SELECT 1 FROM changes WHERE seq > :given AND origin = :origin AND project_id IS NOT NULL
      AND entity IN ('project', 'repo', 'contract', 'receipt', 'context', 'file', 'file_request')
);

-- name: changes_before(before, floor, projects, project_id, kinds, agent, repo, limit)
-- The newest first. A repo's changes are its own, and those of its present holder in the project.
SELECT seq, at, origin, actor, action, entity, entity_id, project_id, outcome FROM changes AS c
WHERE seq < :before AND seq >= :floor
  AND (CAST(:project_id AS TEXT) IS NULL OR project_id = :project_id)
  AND (CAST(:projects AS TEXT) IS NULL OR project_id IN (SELECT value FROM json_each(:projects)))
  AND entity IN (SELECT value FROM json_each(:kinds))
  AND (CAST(:agent AS TEXT) IS NULL OR actor = :agent OR (actor >= :agent || '@' AND actor < :agent || 'A'))
  AND (CAST(:repo AS TEXT) IS NULL OR EXISTS (
      SELECT 1 FROM repos AS r WHERE r.project_id = c.project_id AND r.name = :repo
        AND (r.agent_id = c.actor OR (c.entity = 'repo' AND c.entity_id = r.repo_id))))
ORDER BY seq DESC LIMIT :limit;

-- name: time_of_change(seq)$
SELECT at FROM changes WHERE seq >= :seq ORDER BY seq LIMIT 1;

-- name: board_contracts(project_id)
SELECT contract_id, type, name, version, status, proposed_by, updated_at
FROM contracts WHERE project_id = :project_id;

-- name: board_steps(project_id)
SELECT subject_id, kind, repo_id, since FROM attention_openings
WHERE project_id = :project_id AND kind <> 'answer';

-- name: open_questions(project_id, limit)
-- Counted before the documents are read.
SELECT p.document, o.total FROM (
    SELECT project_id, subject_id, since, count(*) OVER () AS total FROM attention_openings
    WHERE project_id = :project_id AND kind = 'answer'
    ORDER BY since, subject_id LIMIT :limit) AS o
JOIN packets AS p ON p.project_id = o.project_id AND p.packet_id = o.subject_id
ORDER BY o.since, o.subject_id;

-- name: facts_changed_after(project_id, at)
-- Of contracts that have changed after a time, without the contents of their versions.
SELECT f.contract_id,
       CASE f.kind WHEN 'version' THEN json_set(f.body, '$.content', json_object()) ELSE f.body END
FROM contracts AS c JOIN facts AS f ON f.contract_id = c.contract_id
WHERE c.project_id = :project_id AND c.updated_at > :at;

-- name: facts_changed_after_postgresql(project_id, at)
SELECT f.contract_id, CASE f.kind WHEN 'version' THEN json_without_content(f.body) ELSE f.body END
FROM contracts AS c JOIN facts AS f ON f.contract_id = c.contract_id
WHERE c.project_id = :project_id AND c.updated_at > :at;

-- name: packet_counts_until(project_id, at)^
-- `+`: the replies to a packet are few, unlike those before a time.
SELECT count(*), coalesce(sum(CASE type WHEN 'decision' THEN 1 ELSE 0 END), 0),
       coalesce(sum(CASE WHEN type = 'question' AND NOT EXISTS (
           SELECT 1 FROM packets AS r
           WHERE r.project_id = p.project_id AND r.reply_to = p.packet_id AND r.type <> 'question'
             AND +r.stamp <= :at
             AND json_extract(r.document, '$.from_repo') <> json_extract(p.document, '$.from_repo'))
           THEN 1 ELSE 0 END), 0)
FROM packets AS p WHERE p.project_id = :project_id AND p.stamp <= :at;

-- name: recent_contract_time(project_id, at, place)$
SELECT updated_at FROM contracts WHERE project_id = :project_id AND updated_at < :at
ORDER BY updated_at DESC LIMIT 1 OFFSET :place;

-- name: project_moments(project_id, at, subject, id, floor, limit)
-- The times at which something was done in a project and to what, the newest first: those before
-- (at, subject, id), down to the time `floor`.
WITH moments (at, subject, id) AS (
    SELECT f.stamp, 'contract', c.contract_id
    FROM contracts AS c JOIN facts AS f ON f.contract_id = c.contract_id
    WHERE c.project_id = :project_id AND c.updated_at >= :floor AND f.stamp >= :floor
      AND f.kind <> 'round'
      AND (f.kind <> 'implementation' OR json_extract(f.body, '$.status') <> 'in_progress')
    UNION
    SELECT CAST(json_extract(f.body, '$.started_at') AS BIGINT), 'contract', c.contract_id
    FROM contracts AS c JOIN facts AS f ON f.contract_id = c.contract_id
    WHERE c.project_id = :project_id AND c.updated_at >= :floor AND f.stamp >= :floor
      AND f.kind = 'implementation'
      AND json_extract(f.body, '$.started_at')
          <> coalesce(json_extract(f.body, '$.completed_at'), '')
    UNION
    SELECT stamp, 'context', packet_id FROM packets WHERE project_id = :project_id
    UNION
    SELECT claimed_at, 'repo', repo_id FROM repos
    WHERE project_id = :project_id AND claimed_at IS NOT NULL
    UNION
    SELECT claimed_at, 'repo', repo_id FROM claim_conflicts WHERE project_id = :project_id
    UNION
    SELECT released_at, 'repo', repo_id FROM claim_releases WHERE project_id = :project_id
    UNION
    SELECT created_at, 'project', project_id FROM projects WHERE project_id = :project_id
    UNION
    SELECT stamp, 'project', project_id FROM project_lifecycle WHERE project_id = :project_id
)
SELECT at, subject, id FROM moments WHERE (at, subject, id) < (:at, :subject, :id) AND at >= :floor
ORDER BY at DESC, subject DESC, id DESC LIMIT :limit;

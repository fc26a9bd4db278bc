-- name: contract_lines(project_id)
-- The facts of a contract's current version number: their keys begin with it. Several are a race.
SELECT c.contract_id, c.type, c.name, c.version, c.status, json_extract(f.body, '$.digest'), f.stamp,
       json_extract(f.body, '$.repo_id'),
       CASE WHEN c.version > 1 THEN (
           SELECT json_extract(o.body, '$.repo_id') FROM facts AS o
           WHERE o.contract_id = c.contract_id AND o.kind = 'version'
           ORDER BY CAST(json_extract(o.body, '$.version') AS BIGINT), o.stamp LIMIT 1) END,
       json_extract(f.body, '$.parties'), json_extract(f.body, '$.roles'),
       json_extract(f.body, '$.verification'), f.key
FROM contracts AS c JOIN facts AS f
  ON f.contract_id = c.contract_id AND f.kind = 'version'
 AND f.key >= c.version || '/' AND f.key < c.version || '0'
WHERE c.project_id = :project_id
ORDER BY c.contract_id;

-- name: party_steps(project_id, ids)
SELECT f.contract_id, f.kind, CAST(json_extract(f.body, '$.version') AS BIGINT),
       json_extract(f.body, '$.digest'), coalesce(json_extract(f.body, '$.repo_id'), ''),
       CAST(coalesce(json_extract(f.body, '$.round'), json_extract(f.body, '$.number'), '0')
            AS BIGINT),
       coalesce(json_extract(f.body, '$.action'), json_extract(f.body, '$.status'),
                json_extract(f.body, '$.result'), ''),
       f.stamp
FROM json_each(:ids) AS j JOIN facts AS f ON f.contract_id = j.value
WHERE f.project_id = :project_id AND f.kind IN ('implementation', 'response', 'round', 'verification');

-- name: awaited_steps(project_id)
SELECT subject_id, repo_id, kind, since FROM attention_openings
WHERE project_id = :project_id
  AND kind IN ('respond', 'revise', 'implement', 'repair', 'verify');

-- name: contract_document(project_id, contract_id)^
-- Without its history, which may be megabytes.
SELECT document FROM contracts WHERE project_id = :project_id AND contract_id = :contract_id;

-- name: contract_with_history(project_id, contract_id)^
SELECT document, history FROM contracts
WHERE project_id = :project_id AND contract_id = :contract_id;

-- name: contract_header(project_id, contract_id)^
SELECT type, name, created_at, signature FROM contracts
WHERE project_id = :project_id AND contract_id = :contract_id;

-- name: contract_history_size(project_id, contract_id)$
SELECT length(history) FROM contracts
WHERE project_id = :project_id AND contract_id = :contract_id;

-- name: contract_documents(project_id)
SELECT document, history FROM contracts WHERE project_id = :project_id ORDER BY contract_id;

-- name: contract_rows_after(project_id, after, status, type, limit)
SELECT contract_id, type, name, version, status, proposed_by,
       (SELECT name FROM repos
        WHERE repos.project_id = contracts.project_id AND repos.repo_id = contracts.proposed_by)
FROM contracts
WHERE project_id = :project_id AND contract_id > :after
  AND (CAST(:status AS TEXT) IS NULL OR status = :status) AND (CAST(:type AS TEXT) IS NULL OR type = :type)
ORDER BY contract_id
LIMIT :limit;

-- name: contract_project(contract_id)$
SELECT project_id FROM facts WHERE contract_id = :contract_id LIMIT 1;

-- name: new_contracts(ids)
SELECT j.value FROM json_each(:ids) AS j
WHERE NOT EXISTS (SELECT 1 FROM facts WHERE facts.contract_id = j.value)
  AND NOT EXISTS (SELECT 1 FROM set_aside
                  WHERE set_aside.about = j.value AND set_aside.reason = 'predecessor');

-- name: contract_facts(contract_id)
SELECT body FROM facts WHERE contract_id = :contract_id;

-- name: updated_contracts(project_id)
SELECT contract_id FROM contracts WHERE project_id = :project_id AND (version > 1 OR (
    SELECT count(*) FROM facts
    WHERE facts.contract_id = contracts.contract_id AND kind = 'version') > 1)
ORDER BY contract_id;

-- name: contract_versions(contract_id)
SELECT json_set(body, '$.content', json_object()) FROM facts
WHERE contract_id = :contract_id AND kind = 'version';

-- name: contract_versions_postgresql(contract_id)
SELECT json_without_content(body) FROM facts
WHERE contract_id = :contract_id AND kind = 'version';

-- name: contract_fact(contract_id, kind, key)$
SELECT body FROM facts WHERE contract_id = :contract_id AND kind = :kind AND key = :key;

-- name: insert_contract(project_id, contract_id, type, name, version, status, proposed_by, created_at, updated_at, document, history, signature)!
INSERT INTO contracts (project_id, contract_id, type, name, version, status, proposed_by,
                       created_at, updated_at, document, history, signature)
VALUES (:project_id, :contract_id, :type, :name, :version, :status, :proposed_by,
        :created_at, :updated_at, :document, :history, :signature);

-- name: update_contract(type, name, version, status, proposed_by, created_at, updated_at, document, signature, project_id, contract_id)!
UPDATE contracts SET type = :type, name = :name, version = :version, status = :status, proposed_by = :proposed_by,
                     created_at = :created_at, updated_at = :updated_at, document = :document,
                     signature = :signature
WHERE project_id = :project_id AND contract_id = :contract_id;

-- name: update_history(history, project_id, contract_id)!
UPDATE contracts SET history = :history
WHERE project_id = :project_id AND contract_id = :contract_id;

-- name: insert_fact(contract_id, kind, key, project_id, stamp, body, signature)!
INSERT INTO facts (contract_id, kind, key, project_id, stamp, body, signature)
VALUES (:contract_id, :kind, :key, :project_id, :stamp, :body, :signature);

-- name: put_fact(contract_id, kind, key, project_id, stamp, body, signature)!
INSERT INTO facts (contract_id, kind, key, project_id, stamp, body, signature)
VALUES (:contract_id, :kind, :key, :project_id, :stamp, :body, :signature)
ON CONFLICT (contract_id, kind, key) DO UPDATE SET stamp = excluded.stamp, body = excluded.body,
                                                   signature = excluded.signature;

-- name: signed_facts(contract_id)
SELECT body, signature FROM facts WHERE contract_id = :contract_id ORDER BY stamp, kind, key;

-- name: signature_of_fact(contract_id, kind, key)$
SELECT signature FROM facts WHERE contract_id = :contract_id AND kind = :kind AND key = :key;

-- name: integrity()
SELECT integrity_check FROM pragma_integrity_check(20);

-- name: broken_references()
SELECT "table" FROM pragma_foreign_key_check;

-- name: has_meta()^
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta';

-- name: newest_stamp()$
SELECT at FROM changes ORDER BY seq DESC LIMIT 1;

-- name: integrity()
SELECT integrity_check FROM pragma_integrity_check(20);

-- name: broken_references()
SELECT "table" FROM pragma_foreign_key_check;

-- name: newest_stamp()$
SELECT coalesce(max(stamp), 0) FROM (
    SELECT max(stamp) AS stamp FROM projects
    UNION ALL SELECT max(max(stamp, coalesce(renewed_at, 0))) FROM repos
    UNION ALL SELECT max(stamp) FROM facts
    UNION ALL SELECT max(stamp) FROM packets
    UNION ALL SELECT max(stamp) FROM files
    UNION ALL SELECT max(stamp) FROM file_requests
    UNION ALL SELECT max(stamp) FROM project_lifecycle
    UNION ALL SELECT max(released_at) FROM stated_releases
) AS stamps;

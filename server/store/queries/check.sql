-- name: integrity()
SELECT integrity_check FROM pragma_integrity_check(20);

-- name: broken_references()
SELECT "table" FROM pragma_foreign_key_check;

-- name: newest_stamp()$
SELECT max(
    (SELECT coalesce(max(stamp), 0) FROM projects),
    (SELECT coalesce(max(max(stamp, coalesce(renewed_at, 0))), 0) FROM repos),
    (SELECT coalesce(max(stamp), 0) FROM facts),
    (SELECT coalesce(max(stamp), 0) FROM packets),
    (SELECT coalesce(max(stamp), 0) FROM files),
    (SELECT coalesce(max(stamp), 0) FROM file_requests),
    (SELECT coalesce(max(stamp), 0) FROM project_lifecycle),
    (SELECT coalesce(max(released_at), 0) FROM stated_releases)
);

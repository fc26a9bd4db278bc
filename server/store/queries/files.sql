-- name: put_file(project_id, file_id, name, content_type, size, sha256, purpose, related_contracts, from_repo, from_agent, fulfils, stamp, signature)!
INSERT INTO files (project_id, file_id, name, content_type, size, sha256, purpose,
                   related_contracts, from_repo, from_agent, fulfils, stamp, signature)
VALUES (:project_id, :file_id, :name, :content_type, :size, :sha256, :purpose,
        :related_contracts, :from_repo, :from_agent, :fulfils, :stamp, :signature)
ON CONFLICT (project_id, file_id) DO UPDATE SET
    name = excluded.name, content_type = excluded.content_type, size = excluded.size,
    sha256 = excluded.sha256, purpose = excluded.purpose,
    related_contracts = excluded.related_contracts, from_repo = excluded.from_repo,
    from_agent = excluded.from_agent, fulfils = excluded.fulfils, stamp = excluded.stamp,
    signature = excluded.signature;

-- name: file_of(project_id, file_id)^
SELECT file_id, name, content_type, size, sha256, purpose, related_contracts, from_repo,
       from_agent, fulfils, stamp, signature
FROM files WHERE project_id = :project_id AND file_id = :file_id;

-- name: files_after(project_id, stamp, file_id, limit)
SELECT file_id, name, content_type, size, sha256, purpose, related_contracts, from_repo,
       from_agent, fulfils, stamp, signature
FROM files WHERE project_id = :project_id AND (stamp, file_id) > (:stamp, :file_id)
ORDER BY stamp, file_id LIMIT :limit;

-- name: fulfilling_file(project_id, request_id)$
SELECT file_id FROM files INDEXED BY files_by_request
WHERE project_id = :project_id AND fulfils = :request_id
ORDER BY stamp, file_id LIMIT 1;

-- name: put_file_content(project_id, file_id, sha256, size, used_at, content)!
INSERT INTO file_contents (project_id, file_id, sha256, size, used_at, content)
VALUES (:project_id, :file_id, :sha256, :size, :used_at, :content)
ON CONFLICT (project_id, file_id, sha256) DO UPDATE SET used_at = excluded.used_at,
                                                        content = excluded.content;

-- name: file_content(project_id, file_id, sha256)^
SELECT content, used_at FROM file_contents
WHERE project_id = :project_id AND file_id = :file_id AND sha256 = :sha256;

-- name: touch_file_content(used_at, project_id, file_id, sha256)!
UPDATE file_contents SET used_at = :used_at
WHERE project_id = :project_id AND file_id = :file_id AND sha256 = :sha256
  AND used_at IS NOT NULL;

-- name: copied_file_bytes()$
SELECT coalesce(sum(size), 0) FROM file_contents WHERE used_at IS NOT NULL;

-- name: copies_by_use()
SELECT project_id, file_id, sha256, size FROM file_contents WHERE used_at IS NOT NULL
ORDER BY used_at, project_id, file_id, sha256;

-- name: drop_file_content(project_id, file_id, sha256)!
DELETE FROM file_contents
WHERE project_id = :project_id AND file_id = :file_id AND sha256 = :sha256;

-- name: put_file_request(project_id, request_id, requested_by, from_agent, description, suggested_format, stamp, signature)!
INSERT INTO file_requests (project_id, request_id, requested_by, from_agent, description,
                           suggested_format, stamp, signature)
VALUES (:project_id, :request_id, :requested_by, :from_agent, :description, :suggested_format,
        :stamp, :signature)
ON CONFLICT (request_id, project_id) DO UPDATE SET
    requested_by = excluded.requested_by, from_agent = excluded.from_agent,
    description = excluded.description, suggested_format = excluded.suggested_format,
    stamp = excluded.stamp, signature = excluded.signature;

-- name: file_request(project_id, request_id)^
SELECT request_id, requested_by, from_agent, description, suggested_format, stamp, signature
FROM file_requests WHERE project_id = :project_id AND request_id = :request_id;

-- name: project_of_file_request(request_id)$
SELECT project_id FROM file_requests WHERE request_id = :request_id
ORDER BY stamp, project_id LIMIT 1;

-- name: open_file_requests(project_id, stamp, request_id, limit)
SELECT request_id, requested_by, from_agent, description, suggested_format, stamp, signature
FROM file_requests AS r
WHERE project_id = :project_id AND (stamp, request_id) > (:stamp, :request_id)
  AND NOT EXISTS (SELECT 1 FROM files AS f
                  WHERE f.project_id = r.project_id AND f.fulfils = r.request_id)
ORDER BY stamp, request_id LIMIT :limit;

-- name: insert_file(file_id, project_id, name, content_type, size, sha256, purpose, related_contracts, from_repo, from_agent, stamp, content)!
INSERT INTO files (file_id, project_id, name, content_type, size, sha256, purpose,
                   related_contracts, from_repo, from_agent, stamp, content)
VALUES (:file_id, :project_id, :name, :content_type, :size, :sha256, :purpose,
        :related_contracts, :from_repo, :from_agent, :stamp, :content);

-- name: files_after(project_id, after, limit)
SELECT file_id, name, content_type, size, sha256, purpose, related_contracts, from_repo,
       from_agent, stamp
FROM files WHERE project_id = :project_id AND file_id > :after
ORDER BY file_id LIMIT :limit;

-- name: file_whole(project_id, file_id)^
SELECT file_id, name, content_type, size, sha256, purpose, related_contracts, from_repo,
       from_agent, stamp, content
FROM files WHERE project_id = :project_id AND file_id = :file_id;

-- name: insert_file_request(request_id, project_id, requested_by, description, suggested_format, stamp)!
INSERT INTO file_requests (request_id, project_id, requested_by, description, suggested_format,
                           stamp)
VALUES (:request_id, :project_id, :requested_by, :description, :suggested_format, :stamp);

-- name: open_file_requests(project_id)
SELECT request_id, project_id, requested_by, description, suggested_format, stamp
FROM file_requests WHERE project_id = :project_id AND fulfilled_by IS NULL
ORDER BY request_id LIMIT 1000;

-- name: file_request(request_id)^
SELECT project_id, description, fulfilled_by FROM file_requests WHERE request_id = :request_id;

-- name: fulfil_file_request(file_id, request_id)!
UPDATE file_requests SET fulfilled_by = :file_id WHERE request_id = :request_id;

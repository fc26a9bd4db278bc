-- Files between nodes (design §6): what a file is, and who asks for one, are facts that every node
-- holds. The content stands apart: the node that signed the file has it, others while there is room.

-- `fulfils` is the request that the file answers. `signature` is that of the node that holds the
-- content (JSON of schemas.mesh.Signature), NULL when it is this one; of a request, that of the node
-- that vouches for it.
CREATE TABLE shared_files (
    file_id           TEXT NOT NULL,
    project_id        TEXT NOT NULL REFERENCES projects (project_id),
    name              TEXT NOT NULL,
    content_type      TEXT NOT NULL,
    size              BIGINT NOT NULL,
    sha256            TEXT NOT NULL,
    purpose           TEXT,
    related_contracts TEXT NOT NULL,
    from_repo         TEXT NOT NULL,
    from_agent        TEXT NOT NULL,
    fulfils           TEXT,
    stamp             BIGINT NOT NULL,
    signature         TEXT,
    PRIMARY KEY (project_id, file_id)
);
INSERT INTO shared_files
SELECT file_id, project_id, name, content_type, size, sha256, substr(purpose, 1, 20000),
       related_contracts, from_repo, from_agent,
       (SELECT min(r.request_id) FROM file_requests r WHERE r.fulfilled_by = files.file_id),
       stamp, NULL
FROM files;

-- `used_at` is when a copy of another node's file was last asked for; it is NULL for our own, which
-- stay. A digest that no longer is the file's is never served.
CREATE TABLE file_contents (
    project_id TEXT NOT NULL,
    file_id    TEXT NOT NULL,
    sha256     TEXT NOT NULL,
    size       BIGINT NOT NULL,
    used_at    BIGINT,
    content    BLOB NOT NULL,
    PRIMARY KEY (project_id, file_id, sha256)
);
INSERT INTO file_contents
SELECT project_id, file_id, sha256, size, NULL, content FROM files;
CREATE INDEX file_contents_by_use ON file_contents (used_at, size)
    WHERE used_at IS NOT NULL;

CREATE TABLE asked_files (
    request_id       TEXT NOT NULL,
    project_id       TEXT NOT NULL REFERENCES projects (project_id),
    requested_by     TEXT NOT NULL,
    from_agent       TEXT NOT NULL,
    description      TEXT NOT NULL,
    suggested_format TEXT,
    stamp            BIGINT NOT NULL,
    signature        TEXT,
    PRIMARY KEY (request_id, project_id)
);
-- Who asked stood in the log of changes only.
INSERT INTO asked_files
SELECT request_id, project_id, requested_by,
       coalesce((SELECT c.actor FROM changes c
                 WHERE c.entity = 'file_request' AND c.entity_id = file_requests.request_id
                 ORDER BY c.seq LIMIT 1), requested_by),
       description, suggested_format, stamp, NULL
FROM file_requests;

DROP TABLE file_requests;
DROP TABLE files;
ALTER TABLE shared_files RENAME TO files;
ALTER TABLE asked_files RENAME TO file_requests;
CREATE INDEX files_by_time ON files (project_id, stamp, file_id);
CREATE INDEX files_by_request ON files (project_id, fulfils, stamp) WHERE fulfils IS NOT NULL;
CREATE INDEX file_requests_by_time ON file_requests (project_id, stamp, request_id);

-- The digests cover files from now on: they are counted from the first change of one.
UPDATE meta SET value = CAST(min(CAST(value AS INTEGER),
    (SELECT min(seq) - 1 FROM changes WHERE entity IN ('file', 'file_request'))) AS TEXT)
WHERE name = 'digest_cursor'
  AND EXISTS (SELECT 1 FROM changes WHERE entity IN ('file', 'file_request'));

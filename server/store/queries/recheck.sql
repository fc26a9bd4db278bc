-- name: content_after(project_id, file_id, sha256)^
SELECT project_id, file_id, sha256, content FROM file_contents
WHERE (project_id, file_id, sha256) > (:project_id, :file_id, :sha256)
ORDER BY project_id, file_id, sha256 LIMIT 1;

-- name: digests_after(entity, project_id, entity_id, limit)
SELECT entity, project_id, entity_id, digest FROM digests
WHERE (entity, project_id, entity_id) > (:entity, :project_id, :entity_id)
ORDER BY entity, project_id, entity_id LIMIT :limit;

-- name: every_digest()
SELECT place, digest FROM digests;

-- name: every_sum()
SELECT prefix, digest FROM digest_sums;

-- name: put_directory(agent, aid, manifest, words, protocols, registrar, verified, at)!
INSERT INTO directory
    (agent, aid, manifest, words, protocols, registrar, verified, registered_at, renewed_at)
VALUES (:agent, :aid, :manifest, :words, :protocols, :registrar, :verified, :at, :at)
ON CONFLICT (agent) DO UPDATE SET
    aid = excluded.aid, manifest = excluded.manifest, words = excluded.words,
    protocols = excluded.protocols, registrar = excluded.registrar,
    verified = excluded.verified, renewed_at = excluded.renewed_at;

-- name: directory_entries(after)
SELECT agent, words, protocols FROM directory WHERE renewed_at > :after ORDER BY renewed_at, agent;

-- name: directory_listing(agent, after)^
SELECT manifest, registrar, verified FROM directory
WHERE agent = :agent AND renewed_at > :after;

-- name: directory_count(after)$
SELECT count(*) FROM directory WHERE renewed_at > :after;

-- name: forget_directory(before)!
DELETE FROM directory WHERE renewed_at <= :before;

-- name: directory_agents()
SELECT agent FROM directory;

-- Whether a project is archived or deleted: a register, signed like a project's header. Of a deleted
-- project only this row stays, so that nobody brings it back.
CREATE TABLE project_lifecycle (
    project_id TEXT PRIMARY KEY,
    state      TEXT NOT NULL,
    name       TEXT NOT NULL,
    by_agent   TEXT NOT NULL,
    stamp      BIGINT NOT NULL,
    signature  TEXT
);

-- What nodes have stated: an agent's claims on a repo end that were made up to `released_at`.
-- `agent_id` has no version, `node` signed.
CREATE TABLE stated_releases (
    project_id  TEXT NOT NULL,
    repo_id     TEXT NOT NULL,
    agent_id    TEXT NOT NULL,
    node        TEXT NOT NULL,
    by_agent    TEXT NOT NULL,
    released_at BIGINT NOT NULL,
    signature   TEXT,
    PRIMARY KEY (project_id, repo_id, agent_id, node)
);

-- The statement that counts for each agent, derived from those and from the claims.
CREATE TABLE claim_releases (
    project_id  TEXT NOT NULL,
    repo_id     TEXT NOT NULL,
    agent_id    TEXT NOT NULL,
    by_agent    TEXT NOT NULL,
    released_at BIGINT NOT NULL,
    signature   TEXT,
    PRIMARY KEY (project_id, repo_id, agent_id)
);

-- The agent that created the project at this node; other nodes don't know it.
ALTER TABLE projects ADD COLUMN created_by TEXT;
UPDATE projects SET created_by = created.actor
FROM (SELECT project_id, actor FROM changes
      WHERE entity = 'project' AND outcome = 'created' AND action = 'cacp/project/create') AS created
WHERE created.project_id = projects.project_id;

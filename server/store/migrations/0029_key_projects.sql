-- The only projects that a key is for; a key that has none here is for all.
CREATE TABLE key_projects (
    key_id TEXT NOT NULL REFERENCES keys (key_id),
    project_id TEXT NOT NULL,
    PRIMARY KEY (key_id, project_id)
) WITHOUT ROWID;
INSERT INTO key_projects (key_id, project_id)
SELECT key_id, project_id FROM keys WHERE project_id IS NOT NULL;
ALTER TABLE keys DROP COLUMN project_id;

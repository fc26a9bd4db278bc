-- Who has signed a project's header: JSON of schemas.mesh.Signature, NULL for what this node says, ''
-- for what nobody has signed. What was known before, each node signs as it holds it: only that of one
-- which has a claim in the project, or has made it, counts.
ALTER TABLE projects ADD COLUMN signature TEXT;

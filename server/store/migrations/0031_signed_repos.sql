-- Who has signed what a repo is, and what a contract is called: JSON of schemas.mesh.Signature, NULL for
-- what this node says, '' for what nobody has signed. What was known before, each node signs as it holds
-- it: that of a project's founder or a repo's holder, and of who began a contract, counts for more.
ALTER TABLE repos ADD COLUMN signature TEXT;
ALTER TABLE contracts ADD COLUMN signature TEXT;

-- What verifies the contracts of a project: an agent's word, or receipts of runners.
ALTER TABLE projects ADD COLUMN verification_policy TEXT NOT NULL DEFAULT 'word';

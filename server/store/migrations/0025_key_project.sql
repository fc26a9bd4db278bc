-- The one project that a key is for; NULL for all.
ALTER TABLE keys ADD COLUMN project_id TEXT;

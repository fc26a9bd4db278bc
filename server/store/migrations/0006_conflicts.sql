-- Conflicts are few among the changes, and counted for each peer whenever metrics are read.
CREATE INDEX changes_conflicts ON changes (origin) WHERE entity = 'conflict';

-- What is deferred says why, and for whom it waits; it is bounded for each peer, and expires.
ALTER TABLE set_aside ADD COLUMN reason TEXT NOT NULL DEFAULT 'project';
ALTER TABLE set_aside ADD COLUMN about TEXT NOT NULL DEFAULT '';
ALTER TABLE set_aside ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE set_aside ADD COLUMN deferred_at BIGINT NOT NULL DEFAULT 0;
UPDATE set_aside SET
    bytes = length(CAST(params AS BLOB)),
    deferred_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000000,
    reason = CASE WHEN due > (CAST(strftime('%s', 'now') AS INTEGER) + 60) * 1000000
                  THEN 'stamp' ELSE 'project' END;
CREATE INDEX set_aside_by_source ON set_aside (source, bytes);
CREATE INDEX set_aside_by_what_it_waits_for ON set_aside (about);

-- What a message that joins a thread by its name answers (acp-canonical §12.4): the thread's highest
-- hop, and who spoke last in it; the address is absent for threads from before.
ALTER TABLE threads ADD COLUMN hop BIGINT NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN speaker TEXT;
UPDATE threads SET hop = coalesce(
    (SELECT max(m.hop) FROM messages AS m WHERE m.thread_id = threads.thread_id), 0);

-- Pushes (acp-canonical §10): what the channels beside the inbox have still to do with a message.

-- `due_at` is when something is to be done: the push, or what follows when its lease or the wait
-- after a failure ends. It is NULL for the inbox, and when there is nothing more to do. `pushes`
-- counts those that were taken, `failures` those in a row that were not. `holder` is the session
-- that was shown the message last.
ALTER TABLE delivery_log ADD COLUMN due_at TEXT;
ALTER TABLE delivery_log ADD COLUMN pushes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE delivery_log ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE delivery_log ADD COLUMN holder TEXT;
CREATE INDEX delivery_due ON delivery_log (channel, due_at)
    WHERE due_at IS NOT NULL AND channel IN ('channel', 'wake');
CREATE INDEX delivery_due_to ON delivery_log (recipient, channel, due_at) WHERE due_at IS NOT NULL;
DROP INDEX delivery_dead;
CREATE INDEX delivery_dead ON delivery_log (id) WHERE status IN ('failed', 'expired');

-- Where an agent's mail is announced. The secret that signs is made from `webhook_id` and the
-- node's own secret, and stands nowhere.
CREATE TABLE webhooks (
    address    TEXT PRIMARY KEY,
    webhook_id TEXT NOT NULL,
    url        TEXT NOT NULL,
    created_at TEXT NOT NULL
);

-- A thread is its parties', whatever others call theirs. `name` is what they call it, which is
-- `thread_id` in their messages; here `thread_id` tells one from another of that name: it is the id
-- of the message that began it. A thread from before that an agent named, and not the message that
-- began it, goes by its name with a hyphen before it, which no message's id begins with.
ALTER TABLE threads ADD COLUMN name TEXT;
UPDATE threads SET name = thread_id;
UPDATE threads SET thread_id = '-' || name
WHERE NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.id = threads.name)
  AND NOT EXISTS (SELECT 1 FROM messages_archive AS a WHERE a.id = threads.name);
CREATE INDEX threads_by_name ON threads (name);

-- The `thread_id` in `threads` that a message is of.
ALTER TABLE messages ADD COLUMN thread TEXT;
UPDATE messages SET thread = (SELECT t.thread_id FROM threads AS t WHERE t.name = messages.thread_id);
CREATE INDEX messages_of_thread ON messages (thread, sequence);
CREATE INDEX messages_gated ON messages (id) WHERE held = 'gate';

-- What never arrived, and is in the archive since: dead letters of `sender` still, an address.
-- `id` is that of the delivery, in whose order they are listed.
CREATE TABLE archived_dead_letters (
    id             BIGINT PRIMARY KEY,
    message_id     TEXT NOT NULL REFERENCES messages_archive (id),
    recipient      TEXT NOT NULL,
    sender         TEXT NOT NULL,
    open_to_humans INTEGER NOT NULL
);
CREATE INDEX archived_dead_letters_by_sender ON archived_dead_letters (sender, id);
CREATE INDEX archived_dead_letters_for_humans ON archived_dead_letters (id)
    WHERE open_to_humans = 1;

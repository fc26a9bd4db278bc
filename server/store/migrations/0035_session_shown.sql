-- What each session of an agent was shown of what waits for it, so that it is shown once. `entry` is the
-- id of an attention item or a message, `shown_at` the stamp of the claim that showed it; `held`: it has
-- kept the session from stopping; `lost`: the session doesn't have it any more.
CREATE TABLE session_shown (
    address  TEXT NOT NULL,
    session  TEXT NOT NULL,
    entry    TEXT NOT NULL,
    shown_at BIGINT NOT NULL,
    held     INTEGER NOT NULL,
    lost     INTEGER NOT NULL,
    PRIMARY KEY (address, session, entry)
) WITHOUT ROWID;
CREATE INDEX session_shown_at ON session_shown (shown_at);

-- name: session_entries(address, session)
SELECT entry, shown_at, held, lost FROM session_shown WHERE address = :address AND session = :session;

-- name: put_session_entry(address, session, entry, shown_at, held, lost)!
INSERT INTO session_shown (address, session, entry, shown_at, held, lost)
VALUES (:address, :session, :entry, :shown_at, :held, :lost)
ON CONFLICT (address, session, entry) DO UPDATE SET shown_at = excluded.shown_at,
                                                    held = excluded.held, lost = excluded.lost;

-- name: drop_session_entry(address, session, entry)!
DELETE FROM session_shown WHERE address = :address AND session = :session AND entry = :entry;

-- name: expire_session_entries(before)!
DELETE FROM session_shown WHERE shown_at < :before;

-- name: drop_older_sessions(address, most)!
-- All but the sessions of an agent that were shown something last.
DELETE FROM session_shown WHERE address = :address AND session IN (
    SELECT session FROM session_shown WHERE address = :address GROUP BY session
    ORDER BY max(shown_at) DESC, session LIMIT 1000000000 OFFSET :most);

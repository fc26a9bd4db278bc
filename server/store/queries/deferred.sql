-- name: deferred_due(digest)$
SELECT due FROM set_aside WHERE digest = :digest;

-- name: deferred_usage(source)^
SELECT count(*), coalesce(sum(bytes), 0) FROM set_aside WHERE source = :source;

-- name: put_deferred(digest, due, source, method, params, reason, about, bytes, deferred_at)!
INSERT INTO set_aside (digest, due, source, method, params, reason, about, bytes, deferred_at)
VALUES (:digest, :due, :source, :method, :params, :reason, :about, :bytes, :deferred_at);

-- name: due_messages(now, limit)
SELECT digest, due, source, method, params FROM set_aside WHERE due <= :now
ORDER BY due LIMIT :limit;

-- name: postpone_deferred(digest, due)!
UPDATE set_aside SET due = :due WHERE digest = :digest;

-- name: wake_deferred(about, now)!
UPDATE set_aside SET due = :now WHERE about = :about AND reason = 'predecessor' AND due > :now;

-- name: drop_deferred(digest, due)!
DELETE FROM set_aside WHERE digest = :digest AND due = :due;

-- name: expired_deferred(before)
SELECT source, count(*) FROM set_aside WHERE deferred_at <= :before
GROUP BY source ORDER BY source;

-- name: drop_expired_deferred(before)!
DELETE FROM set_aside WHERE deferred_at <= :before;

-- name: deferred_ahead(now)^
SELECT count(*), coalesce(max(due), 0) FROM set_aside WHERE reason = 'stamp' AND due > :now;

-- name: deferred_waiting(before)
SELECT source, count(*) FROM set_aside WHERE reason <> 'stamp' AND deferred_at <= :before
GROUP BY source ORDER BY count(*) DESC, source;

-- name: deferred_by_source()
SELECT source, count(*), sum(bytes), min(deferred_at) FROM set_aside
GROUP BY source ORDER BY count(*) DESC, source;

-- name: deferred_of(source, limit)
SELECT method, reason, about, bytes, deferred_at, due FROM set_aside WHERE source = :source
ORDER BY deferred_at, digest LIMIT :limit;

-- name: drop_deferred_of(source)!
DELETE FROM set_aside WHERE source = :source;

-- name: each_deferred(now, limit)
SELECT digest, due, source, method, params FROM set_aside WHERE reason = 'stamp' AND due > :now
ORDER BY due, digest LIMIT :limit;

-- name: accept_deferred(now)!
UPDATE set_aside SET due = 0 WHERE reason = 'stamp' AND due > :now;

-- name: deferred_subjects()
SELECT DISTINCT about FROM set_aside;

-- name: count_deferred()$
SELECT count(*) FROM set_aside;

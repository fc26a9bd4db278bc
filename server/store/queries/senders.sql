-- name: send_stamps(sender, kind)$
SELECT stamps FROM send_rates WHERE sender = :sender AND kind = :kind;

-- name: put_send_stamps(sender, kind, stamps)!
INSERT INTO send_rates (sender, kind, stamps) VALUES (:sender, :kind, :stamps)
ON CONFLICT (sender, kind) DO UPDATE SET stamps = excluded.stamps;

-- name: breaker(name)^
SELECT failures, since, open_until, trips, reason FROM breakers WHERE name = :name;

-- name: put_breaker(name, failures, since, open_until, trips, reason)!
INSERT INTO breakers (name, failures, since, open_until, trips, reason)
VALUES (:name, :failures, :since, :open_until, :trips, :reason)
ON CONFLICT (name) DO UPDATE SET failures = excluded.failures, since = excluded.since,
                                 open_until = excluded.open_until, trips = excluded.trips,
                                 reason = excluded.reason;

-- name: drop_breaker(name)!
DELETE FROM breakers WHERE name = :name;

-- name: append_audit(at, actor, action, outcome, message_id, detail)!
INSERT INTO acp_audit (at, actor, action, outcome, message_id, detail)
VALUES (:at, :actor, :action, :outcome, :message_id, :detail);

-- name: raise_alarm(reason, about, detail, raised_at, sound, damaged)!
INSERT INTO alarms (reason, about, detail, raised_at, sound, damaged)
VALUES (:reason, :about, :detail, :raised_at, :sound, :damaged)
ON CONFLICT DO NOTHING;

-- name: end_alarm(reason, about)!
DELETE FROM alarms WHERE reason = :reason AND about = :about;

-- name: find_alarm(reason, about)^
SELECT reason, about, detail, raised_at, sound, damaged FROM alarms
WHERE reason = :reason AND about = :about;

-- name: every_alarm()
SELECT reason, about, detail, raised_at, sound, damaged FROM alarms ORDER BY raised_at, reason, about LIMIT 1000;

-- name: count_alarms()
SELECT reason, count(*) FROM alarms GROUP BY reason ORDER BY reason;

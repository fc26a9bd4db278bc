-- name: put_ban(by_node, agent, public_key, banned, stamp, reason, signature)!
INSERT INTO bans (by_node, agent, public_key, banned, stamp, reason, signature)
VALUES (:by_node, :agent, :public_key, :banned, :stamp, :reason, :signature)
ON CONFLICT (by_node, agent) DO UPDATE SET
    public_key = excluded.public_key, banned = excluded.banned, stamp = excluded.stamp,
    reason = excluded.reason, signature = excluded.signature;

-- name: bans_about(agent, public_key)
SELECT by_node, agent, public_key, banned, stamp, reason, signature FROM bans
WHERE agent = :agent OR public_key = :public_key;

-- name: bans_said_by(by_node)
SELECT by_node, agent, public_key, banned, stamp, reason, signature FROM bans
WHERE by_node = :by_node ORDER BY agent;

-- name: every_ban()
SELECT by_node, agent, public_key, banned, stamp, reason, signature FROM bans
ORDER BY agent, by_node;

-- name: directory_of(node)^
SELECT stamp, epoch, document FROM directories WHERE node = :node;

-- name: put_directory_of(node, stamp, epoch, document)!
INSERT INTO directories (node, stamp, epoch, document) VALUES (:node, :stamp, :epoch, :document)
ON CONFLICT (node) DO UPDATE SET stamp = excluded.stamp, epoch = excluded.epoch,
                                 document = excluded.document;

-- name: drop_directory_of(node)!
DELETE FROM directories WHERE node = :node;

-- name: agents_listed_by(node)
SELECT agent FROM listed_agents WHERE node = :node ORDER BY agent;

-- name: list_agent(agent, node)!
INSERT INTO listed_agents (agent, node) VALUES (:agent, :node) ON CONFLICT DO NOTHING;

-- name: unlist_agent(agent, node)!
DELETE FROM listed_agents WHERE agent = :agent AND node = :node;

-- name: unlist_agents(node)!
DELETE FROM listed_agents WHERE node = :node;

-- name: first_to_list(agent)$
SELECT node FROM listed_agents WHERE agent = :agent ORDER BY seq LIMIT 1;

-- name: agents_at_home_elsewhere(own)
SELECT l.agent, l.node FROM listed_agents AS l JOIN homes AS h ON h.agent = l.agent
WHERE h.node = l.node AND l.node <> :own
UNION SELECT node, node FROM directories WHERE node <> :own
ORDER BY 1;

-- name: speaker_for(agent)$
SELECT coalesce((SELECT agent FROM node_keys WHERE agent = :agent),
                (SELECT node FROM homes WHERE agent = :agent));

-- name: keyed_agents()
SELECT DISTINCT agent_id FROM keys WHERE revoked_at IS NULL AND trust = 'verified';

-- name: move_home(agent, node)!
UPDATE homes SET node = :node WHERE agent = :agent;

-- name: insert_route(message_id, recipient, node)!
INSERT INTO mail_routes (message_id, recipient, node) VALUES (:message_id, :recipient, :node);

-- name: route_of(message_id, recipient)^
SELECT node, offered FROM mail_routes WHERE message_id = :message_id AND recipient = :recipient;

-- name: waiting_recipients(message_id, node)
SELECT r.recipient FROM mail_routes AS r
JOIN delivery_log AS d
  ON d.message_id = r.message_id AND d.recipient = r.recipient AND d.channel = 'inbox'
WHERE r.message_id = :message_id AND r.node = :node AND d.status IN ('pending', 'delivered')
ORDER BY r.recipient;

-- name: offer_routes(message_id, node)!
UPDATE mail_routes SET offered = 1
WHERE message_id = :message_id AND node = :node AND offered = 0;

-- name: withdraw_routes(message_id, node)!
UPDATE mail_routes SET offered = 0 WHERE message_id = :message_id AND node = :node;

-- name: put_mail_source(message_id, node)!
INSERT INTO mail_sources (message_id, node) VALUES (:message_id, :node);

-- name: mail_source(message_id)$
SELECT node FROM mail_sources WHERE message_id = :message_id;

-- name: drop_owed(node, kind, message_id)!
DELETE FROM mail_out WHERE node = :node AND kind = :kind AND message_id = :message_id;

-- name: owe(node, kind, message_id)!
INSERT INTO mail_out (node, kind, message_id) VALUES (:node, :kind, :message_id);

-- name: owe_messages_again(node)!
INSERT INTO mail_out (node, kind, message_id)
SELECT DISTINCT r.node, 'message', r.message_id FROM mail_routes AS r
JOIN delivery_log AS d
  ON d.message_id = r.message_id AND d.recipient = r.recipient AND d.channel = 'inbox'
WHERE r.node = :node AND r.offered = 1 AND d.status IN ('pending', 'delivered')
ORDER BY r.message_id
ON CONFLICT DO NOTHING;

-- name: owe_receipts_again(node)!
INSERT INTO mail_out (node, kind, message_id)
SELECT node, 'receipts', message_id FROM mail_sources WHERE node = :node ORDER BY message_id
ON CONFLICT DO NOTHING;

-- name: owed(node, limit)
SELECT seq, kind, message_id FROM mail_out WHERE node = :node ORDER BY seq LIMIT :limit;

-- name: count_owed(node)$
SELECT count(*) FROM mail_out WHERE node = :node;

-- name: drop_owed_row(seq)!
DELETE FROM mail_out WHERE seq = :seq;

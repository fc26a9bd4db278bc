-- name: insert_packet(project_id, packet_id, type, reply_to, stamp, document, signature)!
INSERT INTO packets (project_id, packet_id, type, reply_to, stamp, document, signature)
VALUES (:project_id, :packet_id, :type, :reply_to, :stamp, :document, :signature);

-- name: signed_packet(project_id, packet_id)^
SELECT document, signature FROM packets WHERE project_id = :project_id AND packet_id = :packet_id;

-- name: insert_packet_contract(project_id, contract_id, stamp, packet_id)!
INSERT INTO packet_contracts (project_id, contract_id, stamp, packet_id)
VALUES (:project_id, :contract_id, :stamp, :packet_id)
ON CONFLICT DO NOTHING;

-- name: drop_packet(project_id, packet_id)!
DELETE FROM packets WHERE project_id = :project_id AND packet_id = :packet_id;

-- name: drop_packet_contracts(project_id, packet_id)!
DELETE FROM packet_contracts WHERE project_id = :project_id AND packet_id = :packet_id;

-- name: restamp_packet(stamp, document, project_id, packet_id)!
UPDATE packets SET stamp = :stamp, document = :document
WHERE project_id = :project_id AND packet_id = :packet_id;

-- name: restamp_packet_contracts(stamp, project_id, packet_id)!
UPDATE packet_contracts SET stamp = :stamp
WHERE project_id = :project_id AND packet_id = :packet_id;

-- name: packet_exists(project_id, packet_id)$
SELECT 1 FROM packets WHERE project_id = :project_id AND packet_id = :packet_id;

-- name: packet_documents(project_id)
SELECT document FROM packets WHERE project_id = :project_id ORDER BY stamp, packet_id;

-- name: recent_packets(project_id, since, before, type, limit)
SELECT document FROM packets
WHERE project_id = :project_id AND stamp > :since AND (CAST(:type AS TEXT) IS NULL OR type = :type)
  AND (CAST(:before AS TEXT) IS NULL
       OR (stamp, packet_id) < (SELECT stamp, packet_id FROM packets
                                WHERE project_id = :project_id AND packet_id = :before))
ORDER BY stamp DESC, packet_id DESC
LIMIT :limit;

-- name: recent_packets_of_contract(project_id, contract_id, since, before, type, limit)
SELECT p.document FROM packet_contracts c
JOIN packets p ON p.project_id = c.project_id AND p.packet_id = c.packet_id
WHERE c.project_id = :project_id AND c.contract_id = :contract_id AND c.stamp > :since
  AND (CAST(:type AS TEXT) IS NULL OR p.type = :type)
  AND (CAST(:before AS TEXT) IS NULL
       OR (p.stamp, p.packet_id) < (SELECT stamp, packet_id FROM packets
                                    WHERE project_id = :project_id AND packet_id = :before))
ORDER BY c.stamp DESC, c.packet_id DESC
LIMIT :limit;

-- name: thread_documents(project_id, packet_id)
WITH RECURSIVE
    ancestors (packet_id, reply_to) AS (
        SELECT packet_id, reply_to FROM packets
        WHERE project_id = :project_id AND packet_id = :packet_id
        UNION
        SELECT p.packet_id, p.reply_to FROM packets p
        JOIN ancestors a ON p.packet_id = a.reply_to WHERE p.project_id = :project_id
    ),
    thread (packet_id) AS (
        SELECT packet_id FROM ancestors
        UNION
        SELECT p.packet_id FROM packets p
        JOIN thread t ON p.reply_to = t.packet_id WHERE p.project_id = :project_id
    )
SELECT p.document FROM packets p JOIN thread t ON t.packet_id = p.packet_id
WHERE p.project_id = :project_id
ORDER BY p.stamp, p.packet_id;

-- Dead letters of messages that were archived before `archived_dead_letters` was kept: their receipts
-- are in the archive. They take numbers of deliveries that are gone, the lowest, for they are old.
CREATE TEMP TABLE lost AS
SELECT row_number() OVER (ORDER BY a.seq, r.key) AS place, a.id AS message_id,
       json_extract(r.value, '$.recipient') AS recipient,
       CASE WHEN f.sender LIKE 'aid://%' AND instr(f.sender, '@') > 0
            THEN substr(f.sender, 1, instr(f.sender, '@') - 1) ELSE f.sender END AS sender,
       coalesce(json_extract(a.document, '$.message.priority') = 'critical'
                OR json_extract(a.document, '$.message.policy.visibility') = 'human-audit'
                OR json_extract(a.document, '$.message.policy.human_gate') = 'required', 0)
           AS open_to_humans
FROM messages_archive AS a
     JOIN (SELECT id, json_extract(document, '$.message.from') AS sender
           FROM messages_archive WHERE json_valid(document)) AS f ON f.id = a.id
     JOIN json_each(CASE WHEN json_valid(a.document) THEN a.document ELSE '{}' END,
                    '$.receipts') AS r
WHERE json_extract(r.value, '$.status') IN ('expired', 'failed')
  AND NOT EXISTS (SELECT 1 FROM archived_dead_letters AS d WHERE d.message_id = a.id);
-- What came from another node is a dead letter there.
DELETE FROM lost WHERE EXISTS (
    SELECT 1 FROM homes AS h JOIN peers AS p
        ON p.agent_id = h.node OR p.agent_id LIKE h.node || '@%'
    WHERE h.agent = lost.sender);
CREATE TEMP TABLE free_numbers AS
WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers)
SELECT number FROM numbers
WHERE NOT EXISTS (SELECT 1 FROM delivery_log AS d WHERE d.id = number)
  AND NOT EXISTS (SELECT 1 FROM archived_dead_letters AS d WHERE d.id = number)
LIMIT (SELECT count(*) FROM lost);
INSERT INTO archived_dead_letters (id, message_id, recipient, sender, open_to_humans)
SELECT n.number, l.message_id, l.recipient, l.sender, l.open_to_humans
FROM (SELECT *, row_number() OVER (ORDER BY place) AS nth FROM lost) AS l
     JOIN (SELECT number, row_number() OVER (ORDER BY number) AS nth FROM free_numbers) AS n
         ON n.nth = l.nth;
DROP TABLE lost;
DROP TABLE free_numbers;

-- Lists go by a packet's own time, which every node has alike, no longer by its arrival (design §6).
-- A document's `timestamp` is 2026-02-21T09:30:00.000000+00:00.
UPDATE packets SET stamp = coalesce(
    strftime('%s', substr(json_extract(document, '$.timestamp'), 1, 19)) * 1000000
    + substr(json_extract(document, '$.timestamp'), 21, 6), stamp);
UPDATE packet_contracts SET stamp = coalesce(
    (SELECT p.stamp FROM packets p
     WHERE p.project_id = packet_contracts.project_id
       AND p.packet_id = packet_contracts.packet_id), stamp);

-- The digests cover when a contract was made where its facts don't tell: they are counted anew.
UPDATE meta SET value = '0' WHERE name = 'digest_cursor' AND EXISTS (
    SELECT 1 FROM contracts c WHERE c.created_at <> (
        SELECT min(f.stamp) FROM facts f
        WHERE f.contract_id = c.contract_id AND f.kind = 'version'));

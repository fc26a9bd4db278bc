-- What a packet, an implementation or a former version doesn't have is absent from its object, no
-- longer null (CACP 2.0, Data Types). Contents stay as they are, nulls in them too.
UPDATE packets SET document = json_remove(document, '$.reply_to') WHERE reply_to IS NULL;
UPDATE contracts SET document = json_set(document, '$.implementations', (
    SELECT json_group_array(json(json_patch('{}', value)))
    FROM json_each(document, '$.implementations')));
UPDATE contracts SET history = (
    SELECT json_group_array(json(
        CASE WHEN json_extract(value, '$.change_notes') IS NULL
             THEN json_remove(value, '$.change_notes') ELSE value END))
    FROM json_each(history))
WHERE history <> '[]';

-- A version's key names its parties (schemas.facts.VersionFact.key): of two with one content that bind
-- different repos, both are kept. What is damaged keeps its key; digests cover the same as before.
UPDATE facts SET key = json_extract(body, '$.version') || '/' || json_extract(body, '$.digest') || '/'
    || digest_of_parties(body)
WHERE kind = 'version' AND json_valid(body) AND json_type(body, '$.parties') = 'array'
    AND json_type(body, '$.version') = 'integer' AND json_type(body, '$.digest') = 'text';

-- name: put_equivocation(node, kind, place, key, ours, ours_signature, theirs, theirs_signature, found_at, most)!
INSERT INTO equivocations (node, kind, place, key, ours, ours_signature, theirs, theirs_signature,
                           found_at)
SELECT :node, :kind, :place, :key, :ours, :ours_signature, :theirs, :theirs_signature, :found_at
WHERE (SELECT count(*) FROM equivocations WHERE node = :node) < :most
ON CONFLICT DO NOTHING;

-- name: equivocations_of(node)
SELECT node, kind, place, key, ours, ours_signature, theirs, theirs_signature, found_at
FROM equivocations WHERE node = :node ORDER BY found_at, kind, place, key;

-- name: equivocations_after(last)
SELECT rowid, node, kind, place, key, ours, ours_signature, theirs, theirs_signature, found_at
FROM equivocations WHERE rowid > :last AND ours_signature IS NOT NULL ORDER BY rowid;

-- name: equivocations_after_postgresql(last)
SELECT seq, node, kind, place, key, ours, ours_signature, theirs, theirs_signature, found_at
FROM equivocations WHERE seq > :last AND ours_signature IS NOT NULL ORDER BY seq;

-- name: newest_equivocation()$
SELECT max(rowid) FROM equivocations;

-- name: newest_equivocation_postgresql()$
SELECT max(seq) FROM equivocations;

-- name: count_equivocations()
SELECT node, count(*) FROM equivocations GROUP BY node ORDER BY node;

-- name: count_unnoted_equivocations()
SELECT node, count(*) FROM equivocations WHERE noted_at IS NULL
GROUP BY node ORDER BY node;

-- name: note_equivocations(node, noted_at)!
UPDATE equivocations SET noted_at = :noted_at WHERE node = :node AND noted_at IS NULL;

-- An offer that nobody accepts expires. Those from before do three days after the upgrade.
UPDATE handoff_control SET due_at = (CAST(strftime('%s', 'now') AS INTEGER) + 259200) * 1000000
WHERE due_at IS NULL
  AND handoff_id IN (SELECT id FROM handoffs WHERE status IN ('proposed', 'validating'));

-- Credentials of callers, and the node's own secrets.

-- name: redact_key_projects()!
DELETE FROM key_projects;

-- name: redact_keys()!
DELETE FROM keys;

-- name: redact_tokens()!
DELETE FROM tokens;

-- name: redact_invites()!
DELETE FROM invites;

-- name: redact_wanted_peers()!
DELETE FROM wanted_peers;

-- name: redact_peers()!
-- The whole row: without its key, it would look like a foreign peer's.
DELETE FROM peers;

-- name: redact_undelivered()!
-- Entities undelivered to those peers.
DELETE FROM undelivered;

-- name: redact_answers()!
DELETE FROM idempotency;

-- name: redact_node()!
DELETE FROM meta WHERE name IN ('secret', 'operator_key');

-- name: redact_api_keys()!
DELETE FROM peer_api_keys;

-- name: redact_page_sessions()!
DELETE FROM page_sessions;

-- name: redact_page_links()!
DELETE FROM page_links;

-- The keys that foreign peers have given this node (CACP 2.0, Headers), by where they listen.
CREATE TABLE peer_api_keys (
    endpoint TEXT PRIMARY KEY,
    api_key TEXT NOT NULL
);

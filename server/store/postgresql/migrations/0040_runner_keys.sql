-- needs: baseline
-- The public part of the key with which a runner signs receipts. Only runners have one.
ALTER TABLE keys ADD COLUMN public_key TEXT COLLATE "C";
CREATE UNIQUE INDEX keys_public_key ON keys (public_key);

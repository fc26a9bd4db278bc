-- Why the breaker counted last, for who is refused by it to be told.
ALTER TABLE breakers ADD COLUMN reason TEXT NOT NULL DEFAULT '';

-- What is wrong with content that this node holds or was sent: until it is mended, or an operator has
-- seen it. `about` says what of, `detail` in words what and what to do; of a damaged entity, `sound` is
-- the digest of what was written, `damaged` that of what was found.
CREATE TABLE alarms (
    reason    TEXT NOT NULL,
    about     TEXT NOT NULL,
    detail    TEXT NOT NULL,
    raised_at BIGINT NOT NULL,
    sound     TEXT NOT NULL,
    damaged   TEXT NOT NULL,
    PRIMARY KEY (reason, about)
);

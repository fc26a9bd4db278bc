-- needs: baseline
CREATE TABLE handoff_checks (
    handoff_id    TEXT COLLATE "C" NOT NULL,
    checked_by    TEXT COLLATE "C" NOT NULL,
    package_hash  TEXT COLLATE "C" NOT NULL,
    commands_json TEXT COLLATE "C" NOT NULL,
    at            BIGINT NOT NULL,
    PRIMARY KEY (handoff_id, checked_by)
);

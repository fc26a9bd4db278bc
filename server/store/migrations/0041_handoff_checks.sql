-- What came of the commands of handoffs' packages when they were run at the receiver's: the last
-- check of each agent, of handoffs that this node holds or that were offered to agents here. Agents
-- are addresses; `commands_json` has a HandoffCommandRun for each command.
CREATE TABLE handoff_checks (
    handoff_id    TEXT NOT NULL,
    checked_by    TEXT NOT NULL,
    package_hash  TEXT NOT NULL,
    commands_json TEXT NOT NULL,
    at            BIGINT NOT NULL,
    PRIMARY KEY (handoff_id, checked_by)
);

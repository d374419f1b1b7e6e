-- The slots of tools, lent to the boards that share a database. With a database of one machine nobody asks for them.
-- A trade locks the row of its tool.
CREATE TABLE slot_tools (
    tool   TEXT NOT NULL PRIMARY KEY,
    trades INTEGER NOT NULL
) STRICT;

-- What each board has said of a tool, and what it was lent. `turn` counts the trades of a board: one that arrives late does
-- nothing. What a board that fell silent was lent stays its own for `kept_ms` more than its row in `replicas` lasts.
CREATE TABLE slot_loans (
    tool             TEXT NOT NULL,
    board            TEXT NOT NULL,
    turn             INTEGER NOT NULL,
    max_instances    INTEGER NOT NULL,
    held             INTEGER NOT NULL,
    busy             INTEGER NOT NULL,
    waiting          INTEGER NOT NULL,
    waiting_since_ms INTEGER,
    spare            INTEGER NOT NULL,
    kept_ms          INTEGER NOT NULL,
    PRIMARY KEY (tool, board)
) STRICT;

-- When the database was started, as boards saw it. A restart may have lost the newest loans: until `closed_until_ms` boards
-- say what they hold, and nothing is lent.
CREATE TABLE slot_epoch (
    singleton           INTEGER NOT NULL PRIMARY KEY CHECK (singleton = 1),
    database_started_ms INTEGER NOT NULL,
    closed_until_ms     INTEGER NOT NULL
) STRICT;
INSERT INTO slot_epoch (singleton, database_started_ms, closed_until_ms) VALUES (1, 0, 0);

-- Rates of tools (`caller` is empty) and of callers. A bucket that is full again needs no row.
CREATE TABLE rate_buckets (
    tool       TEXT NOT NULL,
    caller     TEXT NOT NULL,
    full_at_us INTEGER NOT NULL,
    PRIMARY KEY (tool, caller)
) STRICT;

-- The slots of tools, lent to the boards that share the database. A trade locks the row of its tool.
CREATE TABLE slot_tools (
    tool   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    trades BIGINT           NOT NULL
);

-- What each board has said of a tool, and what it was lent. `turn` counts the trades of a board: one that arrives late does
-- nothing. What a board that fell silent was lent stays its own for `kept_ms` more than its row in `replicas` lasts.
CREATE TABLE slot_loans (
    tool             TEXT COLLATE "C" NOT NULL,
    board            TEXT COLLATE "C" NOT NULL,
    turn             BIGINT           NOT NULL,
    max_instances    BIGINT           NOT NULL,
    held             BIGINT           NOT NULL,
    busy             BIGINT           NOT NULL,
    waiting          BIGINT           NOT NULL,
    waiting_since_ms BIGINT,
    spare            BIGINT           NOT NULL,
    kept_ms          BIGINT           NOT NULL,
    PRIMARY KEY (tool, board)
);

-- When the database was started, as boards saw it. A restart may have lost the newest loans: until `closed_until_ms` boards
-- say what they hold, and nothing is lent.
CREATE TABLE slot_epoch (
    singleton           BIGINT NOT NULL PRIMARY KEY CHECK (singleton = 1),
    database_started_ms BIGINT NOT NULL,
    closed_until_ms     BIGINT NOT NULL
);
INSERT INTO slot_epoch (singleton, database_started_ms, closed_until_ms) VALUES (1, 0, 0);

-- Rates of tools (`caller` is empty) and of callers. A bucket that is full again needs no row.
CREATE TABLE rate_buckets (
    tool       TEXT COLLATE "C" NOT NULL,
    caller     TEXT COLLATE "C" NOT NULL,
    full_at_us BIGINT           NOT NULL,
    PRIMARY KEY (tool, caller)
);

-- The boards that use the database now, by the clock of the database.
CREATE TABLE replicas (
    id            TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name          TEXT COLLATE "C" NOT NULL,
    started_at_ms BIGINT           NOT NULL,
    expires_at_ms BIGINT           NOT NULL
);

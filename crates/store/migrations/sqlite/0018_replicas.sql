-- The boards that use the database now. With a database of one machine nobody asks for them.
CREATE TABLE replicas (
    id            TEXT    NOT NULL PRIMARY KEY,
    name          TEXT    NOT NULL,
    started_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What really happened in turns of apps that saw one reply where the model gave several.
CREATE TABLE turn_records (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    session TEXT NOT NULL,
    content TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL
);
CREATE INDEX turn_records_by_owner ON turn_records (owner, id);
CREATE INDEX turn_records_by_expiry ON turn_records (expires_at_ms);

-- The conversations and answers by which an app comes back to a record.
CREATE TABLE turn_record_keys (
    owner TEXT NOT NULL,
    session TEXT NOT NULL,
    key BLOB NOT NULL,
    record INTEGER NOT NULL REFERENCES turn_records (id) ON DELETE CASCADE,
    PRIMARY KEY (owner, session, key)
) WITHOUT ROWID;
CREATE INDEX turn_record_keys_by_record ON turn_record_keys (record);

-- Records end with their session.
CREATE TRIGGER turn_records_of_sessions AFTER DELETE ON sessions BEGIN
    DELETE FROM turn_records WHERE session = OLD.id;
END;
CREATE INDEX turn_records_by_session ON turn_records (session);

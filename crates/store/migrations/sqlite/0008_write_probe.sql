-- What is written to see whether the database takes writes again after it did not.
CREATE TABLE write_probe (
    singleton INTEGER NOT NULL PRIMARY KEY CHECK (singleton = 1),
    filler    BLOB    NOT NULL
) STRICT;

-- Results of calls of a reply whose other calls still run. When all are there they become messages, and leave this table.
CREATE TABLE session_call_results (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    call_id TEXT NOT NULL,
    result  TEXT NOT NULL,
    PRIMARY KEY (session, call_id)
) STRICT;

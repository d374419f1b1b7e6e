-- What a server says about a tool that has no column of its own (icons, _meta, ...), as one JSON object.
ALTER TABLE remembered_tools ADD COLUMN extra TEXT;

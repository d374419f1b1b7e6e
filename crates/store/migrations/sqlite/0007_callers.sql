-- Who made a call: the principal, and the name that its MCP client gives itself.
ALTER TABLE calls ADD COLUMN principal TEXT;
ALTER TABLE calls ADD COLUMN client TEXT;

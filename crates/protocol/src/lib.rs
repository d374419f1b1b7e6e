//! MCP messages of both eras as borrowed JSON: reading, checking, writing. Pure.

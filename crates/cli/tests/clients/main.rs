//! Real MCP clients talk to the built program.

//! The MCP face of the board: sessions, streams, bridges between the eras, meta-tools.

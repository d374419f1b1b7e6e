//! Catalog and session to the tools that a client sees: toolsets, names, search, lists as bytes. Pure.

//! Who is asking: API keys and JSON Web Tokens.

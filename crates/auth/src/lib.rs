//! Authentication: API keys and JSON Web Tokens.
//!
//! [`Gatekeeper::admit`] turns the headers of a request into a [`Principal`] or a [`Refusal`]. It reads `Authorization` and
//! `X-API-Key` only, and never a header that merely claims an identity.
//!
//! Invariants:
//! - A key is shown once, when it is created. Its hash, keyed with a secret of the installation, is stored and compared.
//! - Once a key was created, credentials stay required, also when the last key is revoked.
//! - The configuration and the issuer's key decide which algorithms a token may use, never the token.
//! - Nothing here logs a key or a token.

mod claim_access;
mod credential;
mod error;
mod gatekeeper;
mod jwks;
mod jwt;
mod key_access;
mod keys;
mod principal;
mod refusal;

pub use error::AuthError;
pub use gatekeeper::{Gatekeeper, GatekeeperOptions};
pub use jwks::KeySetSource;
pub use jwt::JwtOptions;
pub use key_access::KeyAccess;
pub use keys::{KEY_PREFIX, KeyDraft, KeyEdit, NewKey};
pub use principal::Principal;
pub use refusal::Refusal;
pub use switchboard_model::Role;

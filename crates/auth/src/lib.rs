//! Who is asking: API keys and JSON Web Tokens.
//!
//! [`Gatekeeper::admit`] turns the headers of a request into a [`Principal`] or a [`Refusal`]. It looks at
//! `Authorization` and `X-API-Key` and at nothing else: no header in which somebody merely claims to be somebody.
//!
//! Invariants:
//! - A key is shown once, when it is made. Stored and compared is a hash, keyed with a secret of the installation.
//! - The door does not open by itself: once there has been a key, revoking the last one leaves it shut.
//! - Which algorithms a token may use is decided by us and by the issuer's key, never by the token.
//! - Nothing here logs a key or a token.

mod credential;
mod error;
mod gatekeeper;
mod jwks;
mod jwt;
mod keys;
mod principal;
mod refusal;

pub use error::AuthError;
pub use gatekeeper::{Gatekeeper, GatekeeperOptions};
pub use jwks::KeySetSource;
pub use jwt::JwtOptions;
pub use keys::{KEY_PREFIX, NewKey};
pub use principal::Principal;
pub use refusal::Refusal;
pub use switchboard_model::Role;

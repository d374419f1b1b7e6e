//! OAuth as a client: sign-ins, tokens and their renewal, for servers that are called with a bearer token.
//!
//! The crate knows no transport. A caller takes the token of a request from an [`Authorization`] and shows it the
//! response, which may require another token (`authorization`). Tokens are refreshed (`renewal`, `refresh`), obtained with the
//! client credentials grant (`own_client`), or result from an interactive sign-in (`sign_in`, `callback`; `hosted_sign_in`), and are kept
//! in a [`TokenStore`]. rmcp reads the metadata of authorization servers and writes the requests to them (`discovery`).

mod authorization;
mod callback;
mod challenge;
mod discovery;
mod failure;
mod grant;
mod hosted_sign_in;
mod memory_tokens;
mod own_client;
mod refresh;
mod renewal;
mod sign_in;
mod sign_in_need;
mod sign_in_state;
mod sign_ins;
mod stored_token;
mod token_client;
mod token_store;

pub use authorization::{Authorization, RequestAttempt, TokenVerdict};
pub use grant::Grant;
pub use hosted_sign_in::HostedSignIn;
pub use memory_tokens::MemoryTokens;
pub use sign_in::{SignIn, SignedIn};
pub use sign_in_need::SignInCause;
pub use sign_in_state::{GrantState, GrantTarget, OrphanCause, Renewal, SignInState};
pub use sign_ins::SignIns;
pub use stored_token::stored_token;
pub use token_store::{Clock, Kept, StoredGrant, TokenStore, TokenStoreError};

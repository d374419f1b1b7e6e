//! OAuth as a client: sign-ins, tokens and their renewal, for servers that are called with a bearer token.
//!
//! The crate knows no transport. A caller takes the token of a request from an [`Authorization`] and shows it the
//! response, which may require another token (`authorization`). Tokens are refreshed (`renewal`, `refresh`), obtained with the
//! client credentials grant (`own_client`), or result from an interactive sign-in, and are kept in a [`TokenStore`].
//!
//! A sign-in is a [`CodeFlow`], whose answer comes to a page on this machine ([`SignIn`]), to the board's callback
//! ([`HostedSignIn`]) or is pasted, or a [`DeviceFlow`]. Flows and renewals speak to an `AuthorizationServer`, which is
//! discovered from an MCP server (`discovery`, with rmcp) or described by the configuration.

mod authorization;
mod authorization_response;
mod authorization_server;
mod browser;
mod callback;
mod challenge;
mod client_choice;
mod code_flow;
mod device_flow;
mod discovery;
mod failure;
mod grant;
mod hosted_sign_in;
mod issuer_metadata;
mod memory_tokens;
mod own_client;
mod random;
mod refresh;
mod renewal;
mod sign_in;
mod sign_in_need;
mod sign_in_state;
mod sign_ins;
mod sign_out;
mod stored_token;
mod subject_tokens;
mod token_client;
mod token_exchange;
mod token_request;
mod token_source;
mod token_store;

pub use authorization::{Authorization, RequestAttempt, TokenVerdict};
pub use authorization_response::AuthorizationResponse;
pub use browser::is_web_address;
pub use callback::CallbackListener;
pub use code_flow::{CodeFlow, SignedIn};
pub use device_flow::DeviceFlow;
pub use grant::Grant;
pub use hosted_sign_in::HostedSignIn;
pub use memory_tokens::MemoryTokens;
pub use random::random_id;
pub use sign_in::SignIn;
pub use sign_in_need::SignInCause;
pub use sign_in_state::{GrantState, GrantTarget, OrphanCause, Renewal, SignInState};
pub use sign_ins::SignIns;
pub use sign_out::{EndingAccount, RevocationTarget, SignedOut, sign_out};
pub use stored_token::stored_token;
pub use subject_tokens::SubjectTokens;
pub use token_source::TokenSource;
pub use token_store::{Kept, StoredGrant, TokenStore, TokenStoreError, WallClock};

//! Requests of apps for the tests of this crate.

use serde_json::Value;
use switchboard_chat::Source;
use switchboard_model::ProviderKind;
use switchboard_render::Provider;
use switchboard_splice::{Api, Refusal};

use crate::TranslatedRequest;

/// The provider that answers: it has another API than the app.
pub(crate) fn source() -> Source {
    Source {
        kind: ProviderKind::OpenAiChat,
        provider: "local".into(),
        model: "m".into(),
        credential: None,
    }
}

pub(crate) fn read(api: Api, body: &Value) -> Result<TranslatedRequest, Refusal> {
    TranslatedRequest::read(api, body.to_string().as_bytes(), source(), Provider::OpenAiChat)
}

/// The body that the other provider gets.
pub(crate) fn sent(api: Api, body: &Value) -> Value {
    let request = read(api, body).unwrap();
    let wire = switchboard_wire::request(&request.model_request("s", "t")).unwrap();
    serde_json::from_slice(&wire.body).unwrap()
}

//! The headers of a request to the tooling gateway.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::Value;

use crate::chat_history::TurnContext;
use crate::environment::Environment;
use crate::error::ToolingError;
use crate::models::ToolOptions;
use crate::user_agent::user_agent;

/// Names the agent to the gateway, for its logs.
pub const AGENT_ID_HEADER: &str = "x-ms-agentid";
/// Names the request across services.
pub const CORRELATION_ID_HEADER: &str = "x-ms-correlation-id";

/// The claims of a token that may name the agent, best first.
const AGENT_CLAIMS: [&str; 3] = ["xms_par_app_azp", "appid", "azp"];

/// The agent that a JWT names. The signature is not checked: the value is for logs, never for a decision.
pub fn agent_id_of_token(token: &str) -> Option<String> {
    let mut parts = token.trim().split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    let claims = URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    let named = AGENT_CLAIMS.iter().filter_map(|claim| claims.get(claim)?.as_str());
    named.map(str::to_owned).find(|id| !id.is_empty())
}

/// The headers of a request for the servers of an agent. `token` is without `Bearer `.
pub(crate) fn gateway_headers(
    token: &str,
    options: &ToolOptions,
    turn: &TurnContext,
    environment: &Environment,
    new_id: impl FnOnce() -> String,
) -> Result<HeaderMap, ToolingError> {
    let mut headers = HeaderMap::new();
    let mut authorization = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| ToolingError::InvalidToken)?;
    authorization.set_sensitive(true);
    headers.insert(header::AUTHORIZATION, authorization);
    headers.extend(user_agent_header(options));
    let named = turn.agent_blueprint_id.clone().filter(|id| !id.is_empty());
    let agent = named
        .or_else(|| agent_id_of_token(token))
        .or_else(|| environment.application_name())
        .and_then(|id| HeaderValue::from_bytes(id.as_bytes()).ok());
    if let Some(agent) = agent {
        headers.insert(HeaderName::from_static(AGENT_ID_HEADER), agent);
    }
    let of_turn = turn.message_id.as_deref().filter(|id| !id.is_empty());
    let correlation = of_turn
        .and_then(|id| HeaderValue::from_bytes(id.as_bytes()).ok())
        .or_else(|| HeaderValue::from_str(&new_id()).ok());
    if let Some(correlation) = correlation {
        headers.insert(HeaderName::from_static(CORRELATION_ID_HEADER), correlation);
    }
    Ok(headers)
}

/// The `User-Agent` as a header.
pub(crate) fn user_agent_header(options: &ToolOptions) -> Option<(HeaderName, HeaderValue)> {
    let agent = user_agent(options.orchestrator_name.as_deref());
    Some((header::USER_AGENT, HeaderValue::from_bytes(agent.as_bytes()).ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn token(claims: &Value) -> String {
        format!("e30.{}.sig", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    fn headers(token: &str, turn: &TurnContext, application: Option<&'static str>) -> HeaderMap {
        let environment = Environment::from_lookup(move |name| {
            application.filter(|_| name == "AGENT365_APPLICATION_NAME").map(str::to_owned)
        });
        let options = ToolOptions { orchestrator_name: Some("LangChain".to_owned()) };
        gateway_headers(token, &options, turn, &environment, || "new-id".to_owned()).unwrap()
    }

    #[test]
    fn the_agent_of_a_token_is_its_best_claim() {
        for (claims, expected) in [
            (json!({"azp": "a", "appid": "b", "xms_par_app_azp": "c"}), Some("c")),
            (json!({"azp": "a", "appid": "b"}), Some("b")),
            (json!({"azp": "a"}), Some("a")),
            (json!({"azp": "a", "appid": "", "xms_par_app_azp": null}), Some("a")),
            (json!({"sub": "x"}), None),
            (json!([]), None),
        ] {
            assert_eq!(agent_id_of_token(&token(&claims)).as_deref(), expected, "{claims}");
        }
    }

    #[test]
    fn a_token_that_is_no_jwt_names_no_agent() {
        for token in ["", "opaque", "a.b", "a.b.c", "a.!!.c", "e30..x"] {
            assert_eq!(agent_id_of_token(token), None, "{token}");
        }
    }

    #[test]
    fn x_ms_agentid_is_blueprint_then_token_then_application() {
        let blueprint = TurnContext {
            agent_blueprint_id: Some("blueprint".to_owned()),
            ..TurnContext::default()
        };
        let none = TurnContext::default();
        let jwt = token(&json!({"appid": "of-token"}));
        for (token, turn, application, expected) in [
            (jwt.as_str(), &blueprint, Some("app"), Some("blueprint")),
            (jwt.as_str(), &none, Some("app"), Some("of-token")),
            ("opaque", &none, Some("app"), Some("app")),
            ("opaque", &none, None, None),
        ] {
            let headers = headers(token, turn, application);
            let agent = headers.get(AGENT_ID_HEADER).map(|it| it.to_str().unwrap());
            assert_eq!(agent, expected);
        }
    }

    #[test]
    fn x_ms_correlation_id_is_the_message_or_a_new_id() {
        let of = |id: Option<&str>| {
            let turn = TurnContext { message_id: id.map(str::to_owned), ..TurnContext::default() };
            headers("opaque", &turn, None)[CORRELATION_ID_HEADER].to_str().unwrap().to_owned()
        };
        assert_eq!(of(Some("message-1")), "message-1");
        for none in [None, Some(""), Some("line\nbreak")] {
            assert_eq!(of(none), "new-id");
        }
    }

    #[test]
    fn authorization_and_user_agent_are_sent() {
        let headers = headers("opaque", &TurnContext::default(), None);
        assert_eq!(headers["authorization"], "Bearer opaque");
        assert!(headers["authorization"].is_sensitive());
        assert_eq!(headers["user-agent"].to_str().unwrap(), user_agent(Some("LangChain")));
    }

    #[test]
    fn a_token_that_no_header_can_have_is_refused() {
        let environment = Environment::from_lookup(|_| None);
        let (options, turn) = (ToolOptions::default(), TurnContext::default());
        let refused = gateway_headers("a\nb", &options, &turn, &environment, String::new);
        assert_eq!(refused.unwrap_err(), ToolingError::InvalidToken);
    }
}

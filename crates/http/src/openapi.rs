//! The API document: the operations as their handlers describe them, and what applies to all of them.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;
use utoipa::openapi::ComponentsBuilder;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use crate::answers::{self, ForbiddenHost};
use crate::openapi_unions::spell_out_unions;
use crate::server;

/// The document as text. It depends only on the version of the program.
static TEXT: LazyLock<String> = LazyLock::new(openapi_text);

/// What applies to all operations. Each handler documents its own operation.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Switchboard",
        description = include_str!("openapi.md"),
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    servers((url = "/", description = "The board that serves this document")),
    tags(
        (name = "board", description = "The caller, and the events of the board."),
        (name = "tools", description = "Find tools and call them."),
        (name = "servers", description = "The MCP servers behind the board."),
        (name = "config", description = "The configuration of the board."),
        (name = "calls", description = "Records of calls, and stored results."),
        (name = "sessions", description = "The servers, toolsets and tools of a chat or an MCP client, and their rendering for a provider."),
        (name = "turns", description = "Chat: turns between a person and a model, and the stored conversation."),
        (name = "agents", description = "Agents that find their MCP servers here, and their servers as frameworks take them."),
        (name = "accounts", description = "Your own accounts at MCP servers where each user has one."),
        (name = "keys", description = "API keys, and what each of them grants."),
        (name = "health", description = "For monitoring the process."),
        (name = "about", description = "This document."),
    ),
    security(("credentials" = [])),
    components(schemas(
        switchboard_api::BoardEvent,
        switchboard_api::CallEvent,
        switchboard_api::Problem,
        switchboard_api::SessionEventData,
        switchboard_chat::TurnEvent,
    )),
    modifiers(&SharedComponents),
)]
pub(crate) struct OpenApiDocument;

/// Adds the security schemes and the error responses that operations refer to.
struct SharedComponents;

impl Modify for SharedComponents {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let about = "An API key (`switchboard key add`), or a token of the authorization server that \
                     `security.jwt` names. If there is neither, requests over loopback need no credentials.";
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(about));
        let known = document.components.take().unwrap_or_default();
        let shared = ComponentsBuilder::from(known)
            .security_scheme("credentials", SecurityScheme::Http(bearer.build()))
            .responses_from_iter(answers::all());
        document.components = Some(shared.build());
    }
}

/// The API document, as it is served and committed to the repository.
pub fn openapi_text() -> String {
    let document = server::documented_routes().into_openapi();
    // All its maps have string keys, so it always serialises.
    let mut document = serde_json::to_value(document).unwrap_or_default();
    type_stream_events(&mut document);
    spell_out_unions(&mut document);
    let text = serde_json::to_string_pretty(&document).unwrap_or_default();
    format!("{text}\n")
}

/// The types of server-sent events, and those of the JSON in their `data`.
const STREAM_EVENTS: [(&str, &str); 4] = [
    ("BoardStreamEvent", "BoardEvent"),
    ("CallStreamEvent", "CallEvent"),
    ("SessionEvent", "SessionEventData"),
    ("TurnStreamEvent", "TurnEvent"),
];

/// Says which type the JSON in the events of a stream has, which an attribute cannot express.
fn type_stream_events(document: &mut serde_json::Value) {
    for (event, data) in STREAM_EVENTS {
        let place = format!("/components/schemas/{event}/properties/data");
        if let Some(text) = document.pointer_mut(&place).and_then(serde_json::Value::as_object_mut)
        {
            let schema = serde_json::json!({"$ref": format!("#/components/schemas/{data}")});
            text.insert("contentSchema".into(), schema);
        }
    }
}

/// Get this document
///
/// `OpenAPI` 3.1 as JSON. It needs no credentials and depends only on the version of the program.
#[utoipa::path(
    get,
    path = "/api/v1/openapi.json",
    operation_id = "getOpenApi",
    tag = "about",
    responses((status = 200, description = "The document.", body = Object), ForbiddenHost),
    security()
)]
pub(crate) async fn document() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], TEXT.as_str())
}

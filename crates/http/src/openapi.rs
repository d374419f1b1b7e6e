//! The API document: what the routes say about themselves, and what holds for all of them.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;
use utoipa::openapi::ComponentsBuilder;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use crate::answers::{self, ForbiddenHost};
use crate::openapi_unions::spell_out_unions;
use crate::server;

/// The document as text; it is the same for every board of one version.
static TEXT: LazyLock<String> = LazyLock::new(openapi_text);

/// What holds for all operations. Each says the rest where its handler is.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Switchboard",
        description = include_str!("openapi.md"),
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    servers((url = "/", description = "The board that serves this document")),
    tags(
        (name = "tools", description = "Find tools and call them."),
        (name = "servers", description = "The MCP servers behind the board."),
        (name = "calls", description = "What stays of calls."),
        (name = "sessions", description = "What a chat or an MCP client sees: its servers, toolsets and tools, and how a provider gets them."),
        (name = "turns", description = "Chat: what a person says, what a model answers, and the conversation that stays."),
        (name = "health", description = "For those who watch the process."),
        (name = "about", description = "This document."),
    ),
    security(("credentials" = [])),
    components(schemas(switchboard_api::Problem)),
    modifiers(&SharedComponents),
)]
pub(crate) struct OpenApiDocument;

/// The credentials and the problems that operations refer to.
struct SharedComponents;

impl Modify for SharedComponents {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let about = "An API key (`switchboard key add`), or a token of the authorization server that \
                     `security.jwt` names. A board without either asks nobody on loopback.";
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(about));
        let known = document.components.take().unwrap_or_default();
        let shared = ComponentsBuilder::from(known)
            .security_scheme("credentials", SecurityScheme::Http(bearer.build()))
            .responses_from_iter(answers::all());
        document.components = Some(shared.build());
    }
}

/// The API document, as it is served and committed.
pub fn openapi_text() -> String {
    let document = server::documented_routes().into_openapi();
    // Only maps with text for keys are in it, so it always serialises.
    let mut document = serde_json::to_value(document).unwrap_or_default();
    spell_out_unions(&mut document);
    let text = serde_json::to_string_pretty(&document).unwrap_or_default();
    format!("{text}\n")
}

/// This document
///
/// `OpenAPI` 3.1, as JSON. Everybody may read it: it is the same for every board of one version.
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

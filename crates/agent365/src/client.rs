//! Sends the requests: the list of an agent's servers, and the report of a conversation.
//!
//! One request each, never a retry. A redirect is followed within the origin only, so no token leaves it. What comes
//! back is bounded in time and size.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use reqwest::{Method, Response, header};
use switchboard_model::{Secret, redact_url};
use switchboard_outbound::{HttpPool, Redactor, describe_failure};
use url::Url;

use crate::chat_history::{ChatHistoryMessage, ChatMessageRequest, TurnContext};
use crate::entry::FoundServers;
use crate::environment::{Environment, EnvironmentKind};
use crate::error::{InvalidTurn, ToolingError};
use crate::gateway_answer::{MAX_BODY_BYTES, parse_gateway_answer};
use crate::gateway_path::GatewayPath;
use crate::headers::{gateway_headers, user_agent_header};
use crate::manifest_file::{find_manifest, manifest_locations, read_manifest};
use crate::models::ToolOptions;
use crate::operation_result::{OperationError, OperationResult};
use crate::tokens::{
    TokenExchange, attach_environment_tokens, attach_platform_token, attach_tokens, bare_token,
    platform_headers,
};
use crate::urls::{get_chat_history_endpoint, platform_url};

/// The time that a request has, from connecting to the end of the answer.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The most characters of an error's body that a message quotes.
const LONGEST_QUOTE: usize = 2_000;

/// Lists an agent's servers and reports conversations. Clones share their connections.
#[derive(Clone)]
pub struct ToolingClient {
    http: HttpPool,
    environment: Environment,
    gateway_path: GatewayPath,
    timeout: Duration,
    configuration_directory: Option<PathBuf>,
    working_directory: Option<PathBuf>,
    exchange: Option<Arc<dyn TokenExchange>>,
}

impl fmt::Debug for ToolingClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolingClient")
            .field("environment", &self.environment)
            .field("gateway_path", &self.gateway_path)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// The answer of a threat-protection endpoint, whatever its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatAnswer {
    /// The status.
    pub status: u16,
    /// The body; a part that is not UTF-8 is replaced.
    pub body: String,
}

impl ChatAnswer {
    /// Whether the report was taken: any status from 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl ToolingClient {
    /// A client of the environment's platform. The pool decides which addresses may be dialled.
    pub fn new(http: HttpPool, environment: Environment) -> Self {
        Self {
            http,
            environment,
            gateway_path: GatewayPath::default(),
            timeout: REQUEST_TIMEOUT,
            configuration_directory: None,
            working_directory: None,
            exchange: None,
        }
    }

    /// Asks the gateway at another path.
    #[must_use]
    pub fn with_gateway_path(mut self, path: GatewayPath) -> Self {
        self.gateway_path = path;
        self
    }

    /// Gives requests another time limit than [`REQUEST_TIMEOUT`].
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Looks for the manifest in this directory too, after the working directory and its parent.
    #[must_use]
    pub fn with_configuration_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.configuration_directory = Some(directory.into());
        self
    }

    /// Takes this directory as the working directory instead of the process's.
    #[must_use]
    pub fn with_working_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.working_directory = Some(directory.into());
        self
    }

    /// Gets tokens for the gateway's servers from this exchange.
    #[must_use]
    pub fn with_token_exchange(mut self, exchange: Arc<dyn TokenExchange>) -> Self {
        self.exchange = Some(exchange);
        self
    }

    /// The servers of an agent: from the manifest in development, else from the gateway. Neither the id nor the token
    /// is needed in development.
    pub async fn list_tool_servers(
        &self,
        agentic_app_id: &str,
        auth_token: &str,
        options: &ToolOptions,
    ) -> Result<FoundServers, ToolingError> {
        let turn = TurnContext::default();
        self.list_tool_servers_in_turn(agentic_app_id, auth_token, options, &turn).await
    }

    /// Like [`ToolingClient::list_tool_servers`], with the turn that the request belongs to.
    pub async fn list_tool_servers_in_turn(
        &self,
        agentic_app_id: &str,
        auth_token: &str,
        options: &ToolOptions,
        turn: &TurnContext,
    ) -> Result<FoundServers, ToolingError> {
        match self.environment.kind() {
            EnvironmentKind::Development => self.servers_of_manifest().await,
            EnvironmentKind::Production => {
                self.servers_of_gateway(agentic_app_id, auth_token, options, turn).await
            }
        }
    }

    /// Reports a user's message and the conversation before it to the threat-protection endpoint of the configured
    /// platform. Any status from 200 to 299 is a success. Nothing is thrown: what is missing or fails is an error of
    /// the result. An empty history is sent too. No credentials are sent.
    pub async fn send_chat_history(
        &self,
        turn: &TurnContext,
        chat_history: &[ChatHistoryMessage],
        options: &ToolOptions,
    ) -> OperationResult {
        match self.report(turn, chat_history, options).await {
            Ok(()) => OperationResult::success(),
            Err(error) => OperationResult::failed([OperationError::new(error.to_string())]),
        }
    }

    /// Sends a chat message to this endpoint and returns what it answers, whatever the status. No credentials are sent.
    /// Dropping the future abandons the request.
    pub async fn send_chat_message(
        &self,
        endpoint: &Url,
        request: &ChatMessageRequest,
        timeout: Duration,
    ) -> Result<ChatAnswer, ToolingError> {
        self.post_chat(endpoint, request, &ToolOptions::default(), timeout).await
    }

    /// The headers with the platform's token for a server at this address; none if the address is not the platform's.
    pub fn platform_headers(&self, server: &Url, token: &Secret) -> BTreeMap<String, Secret> {
        platform_headers(server, &self.environment, token)
    }

    async fn servers_of_manifest(&self) -> Result<FoundServers, ToolingError> {
        let client = self.clone();
        let read = move || client.read_manifest_now();
        let joined = tokio::task::spawn_blocking(read).await;
        joined.unwrap_or_else(|error| Err(ToolingError::Manifest { reason: error.to_string() }))
    }

    fn read_manifest_now(&self) -> Result<FoundServers, ToolingError> {
        let working = match &self.working_directory {
            Some(directory) => directory.clone(),
            None => std::env::current_dir()
                .map_err(|error| ToolingError::Manifest { reason: error.to_string() })?,
        };
        let locations = manifest_locations(&working, self.configuration_directory.as_deref());
        let Some(path) = find_manifest(&locations) else {
            let checked = locations.len();
            let warning = format!("ToolingManifest.json not found. Checked {checked} locations");
            return Ok(FoundServers::without_list(warning));
        };
        tracing::info!(path = %path.display(), "MCP servers are read from a manifest");
        let mut found = read_manifest(path, &self.environment)?;
        attach_environment_tokens(&mut found, &self.environment);
        Ok(found)
    }

    async fn servers_of_gateway(
        &self,
        agentic_app_id: &str,
        auth_token: &str,
        options: &ToolOptions,
        turn: &TurnContext,
    ) -> Result<FoundServers, ToolingError> {
        if agentic_app_id.trim().is_empty() {
            return Err(ToolingError::EmptyAgentId);
        }
        let token = bare_token(auth_token);
        if token.is_empty() {
            return Err(ToolingError::EmptyToken);
        }
        let new_id = || uuid::Uuid::now_v7().to_string();
        let headers = gateway_headers(token, options, turn, &self.environment, new_id)?;
        let platform = platform_url(&self.environment)?;
        let url = self.gateway_path.url(&platform, agentic_app_id)?;
        let token = Secret::new(token);
        let redactor = Redactor::of_secrets([token.clone()]);
        let body = self.get(&url, headers, &redactor).await?;
        let mut found = parse_gateway_answer(&body, &self.environment)?;
        match &self.exchange {
            Some(exchange) => attach_tokens(&mut found, &self.environment, &**exchange).await,
            None => attach_platform_token(&mut found, &self.environment, &token),
        }
        Ok(found)
    }

    async fn get(
        &self,
        url: &Url,
        headers: HeaderMap,
        redactor: &Redactor,
    ) -> Result<Vec<u8>, ToolingError> {
        let connect = |error: switchboard_model::ConnectError| ToolingError::Connect {
            reason: redactor.redact_error(error).message,
        };
        let failed = |error: &reqwest::Error| {
            let after = self.timeout;
            if error.is_timeout() {
                ToolingError::Timeout { after }
            } else {
                connect(describe_failure(error))
            }
        };
        let client = self.http.client_for(url).map_err(connect)?;
        let request =
            client.request(Method::GET, url.clone()).headers(headers).timeout(self.timeout);
        let mut response = request.send().await.map_err(|error| failed(&error))?;
        let status = response.status().as_u16();
        if let Some(target) = redirect_target(&response).filter(|it| it.origin() != url.origin()) {
            let target = target.origin().ascii_serialization();
            return Err(ToolingError::Redirect { status, target });
        }
        let mut body = Vec::new();
        let limit = if status == 200 { MAX_BODY_BYTES } else { LONGEST_QUOTE * 4 };
        let read = read_bounded(&mut response, &mut body, limit).await;
        if status != 200 {
            // A body that broke off is quoted as far as it came.
            let body = redactor.redact_text(&String::from_utf8_lossy(&body));
            let body = quoted(&body);
            return Err(ToolingError::Status { status, body });
        }
        match read {
            Ok(BodyEnd::Whole) => Ok(body),
            Ok(BodyEnd::Cut) => Err(ToolingError::TooLarge { limit }),
            Err(error) => Err(failed(&error)),
        }
    }

    async fn report(
        &self,
        turn: &TurnContext,
        chat_history: &[ChatHistoryMessage],
        options: &ToolOptions,
    ) -> Result<(), ToolingError> {
        let request = chat_request(turn, chat_history)?;
        let endpoint = get_chat_history_endpoint(&self.environment)?;
        let answer = self.post_chat(&endpoint, &request, options, self.timeout).await?;
        if answer.is_success() {
            return Ok(());
        }
        let (status, body) = (answer.status, quoted(&answer.body));
        Err(ToolingError::ChatStatus { status, body, url: redact_url(&endpoint) })
    }

    async fn post_chat(
        &self,
        endpoint: &Url,
        request: &ChatMessageRequest,
        options: &ToolOptions,
        timeout: Duration,
    ) -> Result<ChatAnswer, ToolingError> {
        let url = redact_url(endpoint);
        let failed = |error: &reqwest::Error| {
            let (url, reason) = (url.clone(), describe_failure(error).message);
            if error.is_timeout() {
                ToolingError::ChatTimeout { url, after: timeout }
            } else {
                ToolingError::ChatConnect { url, reason }
            }
        };
        let client = self.http.client_for(endpoint).map_err(|error| ToolingError::ChatConnect {
            url: url.clone(),
            reason: error.message,
        })?;
        let mut headers = HeaderMap::new();
        headers.extend(user_agent_header(options));
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        let sent = client
            .request(Method::POST, endpoint.clone())
            .headers(headers)
            .body(request.to_json().to_string())
            .timeout(timeout);
        let mut response = sent.send().await.map_err(|error| failed(&error))?;
        // A redirect that was followed may have dropped the body, so what it answers says nothing about the report.
        let followed = Some(response.url()).filter(|it| !is_same_place(it, endpoint)).cloned();
        if let Some(target) = followed.or_else(|| redirect_target(&response)) {
            return Err(ToolingError::ChatRedirect { url, target: redact_url(&target) });
        }
        let status = response.status().as_u16();
        let mut body = Vec::new();
        match read_bounded(&mut response, &mut body, MAX_BODY_BYTES).await {
            Ok(BodyEnd::Whole) => {
                Ok(ChatAnswer { status, body: String::from_utf8_lossy(&body).into_owned() })
            }
            Ok(BodyEnd::Cut) => Err(ToolingError::ChatTooLarge { url, limit: MAX_BODY_BYTES }),
            Err(error) => Err(failed(&error)),
        }
    }
}

/// The body of a report, or what the turn lacks for it.
fn chat_request(
    turn: &TurnContext,
    chat_history: &[ChatHistoryMessage],
) -> Result<ChatMessageRequest, ToolingError> {
    let filled = |text: &Option<String>, missing: InvalidTurn| {
        let text = text.clone().filter(|text| !text.trim().is_empty());
        text.ok_or(ToolingError::InvalidTurn(missing))
    };
    Ok(ChatMessageRequest {
        conversation_id: filled(&turn.conversation_id, InvalidTurn::ConversationId)?,
        message_id: filled(&turn.message_id, InvalidTurn::MessageId)?,
        user_message: filled(&turn.user_message, InvalidTurn::UserMessage)?,
        chat_history: chat_history.to_vec(),
    })
}

/// Where a response redirects to.
fn redirect_target(response: &Response) -> Option<Url> {
    if !response.status().is_redirection() {
        return None;
    }
    let location = response.headers().get(header::LOCATION)?.to_str().ok()?;
    response.url().join(location).ok()
}

/// Whether two addresses are the same but for credentials, which the HTTP client moves into a header.
fn is_same_place(one: &Url, other: &Url) -> bool {
    (one.origin(), one.path(), one.query()) == (other.origin(), other.path(), other.query())
}

enum BodyEnd {
    Whole,
    Cut,
}

/// Reads at most `limit` bytes.
async fn read_bounded(
    response: &mut Response,
    body: &mut Vec<u8>,
    limit: usize,
) -> Result<BodyEnd, reqwest::Error> {
    while let Some(chunk) = response.chunk().await? {
        let room = limit - body.len();
        body.extend(chunk.iter().take(room));
        if chunk.len() > room {
            return Ok(BodyEnd::Cut);
        }
    }
    Ok(BodyEnd::Whole)
}

/// The beginning of a body as a message quotes it.
fn quoted(body: &str) -> String {
    let body = body.trim();
    let quoted: String = body.chars().take(LONGEST_QUOTE).collect();
    if body.len() > quoted.len() { format!("{quoted}…") } else { quoted }
}

//! A client for the HTTP API of a running instance.

use std::time::Duration;

use reqwest::header::{ACCEPT, IF_MATCH, IF_NONE_MATCH};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use switchboard_api::{CallBody, CallView, Problem, Readiness, ServerList, ToolList, ToolView};

use switchboard_config::{API_KEY_VARIABLE, with_scheme};
use switchboard_model::{Secret, is_on_this_machine};

use crate::failure::Failure;
use crate::instance_trust;

pub(crate) const EVENT_STREAM: &str = "text/event-stream";
/// The hint of connection errors.
pub(crate) const IS_IT_RUNNING: &str = "is `switchboard serve` running there?";

/// A running instance.
#[derive(Debug)]
pub(crate) struct Remote {
    http: Client,
    base: reqwest::Url,
    /// The API key, if there is one.
    key: Option<Secret>,
}

impl Remote {
    pub(crate) fn new(url: &str) -> Result<Self, Failure> {
        let given = reqwest::Url::parse(&with_scheme(url))
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| {
                let hint = "write an address such as http://127.0.0.1:8420 or localhost:8420";
                Failure::usage(format!("'{url}' is not an http or https URL"))
                    .with_hint(Some(hint.into()))
            })?;
        let base = instance_address(given)?;
        let (http, key) = connection(&base)?;
        Ok(Self { http, base, key })
    }

    /// The base URL of the instance.
    pub(crate) fn address(&self) -> &reqwest::Url {
        &self.base
    }

    /// The readiness that the instance reports.
    pub(crate) async fn readiness(&self) -> Result<Readiness, Failure> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("readyz");
        }
        self.read(self.http.get(url)).await
    }

    pub(crate) async fn servers(&self) -> Result<ServerList, Failure> {
        self.read(self.http.get(self.at(&["servers"]))).await
    }

    pub(crate) async fn tools(&self) -> Result<ToolList, Failure> {
        self.read(self.http.get(self.at(&["tools"]))).await
    }

    pub(crate) async fn tool(&self, name: &str) -> Result<ToolView, Failure> {
        self.read(self.http.get(self.at(&["tools", name]))).await
    }

    pub(crate) async fn call(&self, name: &str, body: &CallBody) -> Result<CallView, Failure> {
        self.read(self.http.post(self.at(&["tools", name, "call"])).json(body)).await
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<T, Failure> {
        self.read(self.http.get(self.at_query(path, query)?)).await
    }

    /// Sends a request without a body.
    pub(crate) async fn post_query<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<T, Failure> {
        self.read(self.http.post(self.at_query(path, query)?)).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.read(self.http.post(self.at_named(path)?).json(body)).await
    }

    pub(crate) async fn patch<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.read(self.http.patch(self.at_query(path, query)?).json(body)).await
    }

    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.read(self.http.put(self.at_named(path)?).json(body)).await
    }

    /// Replaces a version of something, or creates it if there is no version.
    pub(crate) async fn put_if<T: DeserializeOwned>(
        &self,
        path: &[&str],
        etag: Option<&str>,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let request = self.http.put(self.at_named(path)?).json(body);
        self.read(match etag {
            Some(etag) => request.header(IF_MATCH, format!("\"{etag}\"")),
            None => request.header(IF_NONE_MATCH, "*"),
        })
        .await
    }

    /// Sends a request whose response is an event stream.
    pub(crate) async fn post_for_events(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<Response, Failure> {
        let request = self.http.post(self.at_named(path)?).json(body);
        self.send(request.header(ACCEPT, EVENT_STREAM)).await
    }

    /// The events after the one with this id.
    pub(crate) async fn events_after(&self, path: &[&str], id: u64) -> Result<Response, Failure> {
        let request = self.http.get(self.at_named(path)?).header("last-event-id", id.to_string());
        self.send(request.header(ACCEPT, EVENT_STREAM)).await
    }

    /// Stores something; the response has no body.
    pub(crate) async fn put_only(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        body: &impl Serialize,
    ) -> Result<(), Failure> {
        self.send(self.http.put(self.at_query(path, query)?).json(body)).await.map(drop)
    }

    /// Deletes something; the response says what was there.
    pub(crate) async fn delete_for<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<T, Failure> {
        self.read(self.http.delete(self.at_query(path, query)?)).await
    }

    pub(crate) async fn delete(&self, path: &[&str]) -> Result<(), Failure> {
        self.send(self.http.delete(self.at_named(path)?)).await.map(drop)
    }

    /// Deletes this version of an entry, or whichever there is.
    pub(crate) async fn delete_if(&self, path: &[&str], etag: Option<&str>) -> Result<(), Failure> {
        let request = self.http.delete(self.at_named(path)?);
        let request = match etag {
            Some(etag) => request.header(IF_MATCH, format!("\"{etag}\"")),
            None => request,
        };
        self.send(request).await.map(drop)
    }

    /// A response that is read in pieces.
    pub(crate) async fn lines(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<RemoteLines, Failure> {
        let response = self.send(self.http.get(self.at_query(path, query)?)).await?;
        Ok(RemoteLines { response, address: self.base.to_string() })
    }

    /// A slice of a stored result, and the length of the whole.
    pub(crate) async fn result(
        &self,
        handle: &str,
        offset: u64,
    ) -> Result<(Vec<u8>, u64), Failure> {
        let mut url = self.at(&["results", handle]);
        url.query_pairs_mut().append_pair("offset", &offset.to_string());
        let response = self.send(self.http.get(url)).await?;
        let total = response.headers().get("x-result-bytes").and_then(|value| value.to_str().ok());
        let total = total.and_then(|total| total.parse().ok()).unwrap_or_default();
        let bytes = response.bytes().await.map_err(|error| self.unreachable(&error))?;
        Ok((bytes.to_vec(), total))
    }

    /// A URL with path segments that the user typed. Names such as `..` are refused, because URL parsing would remove
    /// them and change the path.
    fn at_named(&self, path: &[&str]) -> Result<reqwest::Url, Failure> {
        match path.iter().find(|name| matches!(**name, "" | "." | "..")) {
            Some(name) => Err(Failure::usage(format!("no session and no tool is called '{name}'"))),
            None => Ok(self.at(path)),
        }
    }

    fn at_query(&self, path: &[&str], query: &[(&str, String)]) -> Result<reqwest::Url, Failure> {
        let mut url = self.at_named(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    fn at(&self, path: &[&str]) -> reqwest::Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["api", "v1"]).extend(path);
        }
        url
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let request = match &self.key {
            Some(key) => request.bearer_auth(key.expose()),
            None => request,
        };
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let hint = (status == StatusCode::UNAUTHORIZED).then(|| key_hint(self.key.is_some()));
        match response.json::<Problem>().await {
            Ok(problem) => Err(Failure::from(problem).with_hint(hint)),
            Err(_) => Err(Failure::unreachable(format!(
                "{} answered HTTP {status}; is it a Switchboard?",
                self.base
            ))),
        }
    }

    async fn read<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Failure> {
        let response = self.send(request).await?;
        response.json().await.map_err(|error| {
            Failure::unreachable(format!("{} returned an unexpected response: {error}", self.base))
        })
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let cause = cause(error);
        let hint = instance_trust::hint(&cause).unwrap_or(IS_IT_RUNNING);
        Failure::unreachable(format!("cannot reach {}: {cause}", self.base))
            .with_hint(Some(hint.into()))
    }
}

/// A response while it is being read.
#[derive(Debug)]
pub(crate) struct RemoteLines {
    response: Response,
    address: String,
}

impl RemoteLines {
    /// The next piece; `None` at the regular end. A response that breaks off is an error.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let piece = self.response.chunk().await.map_err(|error| {
            let message = format!("{} broke off the response: {}", self.address, cause(&error));
            Failure::unreachable(message)
                .with_hint(Some("continue with --after and the id of the last whole line".into()))
        })?;
        Ok(piece.map(|piece| piece.to_vec()))
    }
}

/// The base URL of an instance, from its own URL or that of its MCP endpoint. The URL of a session or toolset endpoint
/// is refused, because the API would answer for the whole instance.
fn instance_address(mut url: reqwest::Url) -> Result<reqwest::Url, Failure> {
    let given = url.clone();
    url.set_fragment(None);
    let segments: Vec<_> = given.path().split('/').collect();
    let endpoint = segments.iter().rposition(|segment| *segment == "mcp").filter(|place| {
        let next = segments.get(place + 1).copied().unwrap_or_default();
        matches!(next, "" | "servers" | "toolsets" | "sessions")
    });
    let Some(place) = endpoint else { return Ok(url) };
    let path = segments.iter().take(place).copied().collect::<Vec<_>>().join("/");
    url.set_path(&path);
    url.set_query(None);
    let name = segments.get(place + 2).copied().filter(|name| !name.is_empty());
    let way = match (segments.get(place + 1).copied(), name) {
        (Some("toolsets"), Some(name)) => {
            let first = name.split(',').next().unwrap_or_default();
            format!(", and `toolset show {first}` for the tools of that set")
        }
        (Some("servers"), Some(name)) => {
            format!(", and `tool list --server {name}` for the tools of that server")
        }
        (Some("sessions"), Some(name)) => {
            format!(", and `session show {name}` for the tools of that session")
        }
        _ if given.query().is_some_and(|query| !query.is_empty()) => String::new(),
        _ => return Ok(url),
    };
    let message = format!(
        "{} is an MCP endpoint for a part of the board, and this command needs the whole board",
        given.path()
    );
    Err(Failure::usage(message).with_hint(Some(format!("use --url {url}{way}"))))
}

/// The hint of authorization errors.
pub(crate) fn key_hint(has_key: bool) -> String {
    if has_key {
        format!(
            "the key in {API_KEY_VARIABLE} is not valid there; `switchboard key list` on that machine shows its keys"
        )
    } else {
        format!(
            "set {API_KEY_VARIABLE} to an API key; `switchboard key add NAME` on that machine makes one"
        )
    }
}

/// The HTTP client for this address, and the API key from the environment.
pub(crate) fn connection(base: &reqwest::Url) -> Result<(Client, Option<Secret>), Failure> {
    let mut builder = Client::builder().connect_timeout(Duration::from_secs(5));
    if is_on_this_machine(base) {
        // No proxy for loopback addresses: it could not reach this machine and would see the requests.
        builder = builder.no_proxy();
    }
    let http = instance_trust::apply(builder)?
        .build()
        .map_err(|error| Failure::start(error.to_string()))?;
    let key = std::env::var(API_KEY_VARIABLE).ok().filter(|key| !key.is_empty());
    if key.as_deref().is_some_and(|key| !key.bytes().all(|byte| byte.is_ascii_graphic())) {
        let message = format!("{API_KEY_VARIABLE} does not hold a valid API key");
        let hint = "check for a space or a line break after the key";
        return Err(Failure::usage(message).with_hint(Some(hint.into())));
    }
    Ok((http, key.map(Secret::new)))
}

/// The root cause of an HTTP error, without the wrapping text of the library.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_found_by_its_address_and_by_those_of_its_endpoints() {
        #[track_caller]
        fn check(given: &str, expected: &str) {
            let found = instance_address(given.parse().unwrap());
            assert_eq!(found.unwrap().as_str(), expected, "{given}");
        }
        check("http://h:8420", "http://h:8420/");
        check("http://h:8420/mcp", "http://h:8420/");
        check("http://h:8420/mcp/#x", "http://h:8420/");
        check("https://h/tools/mcp", "https://h/tools");
        check("https://h/tools", "https://h/tools");
        check("https://h/mcp-board", "https://h/mcp-board");
    }

    #[test]
    fn an_address_of_a_part_of_the_board_is_refused_with_the_way_to_that_part() {
        #[track_caller]
        fn check(given: &str, expected: &str) {
            let text = instance_address(given.parse().unwrap()).unwrap_err().text();
            assert!(text.contains(expected), "{given}: {text}");
        }
        check(
            "http://h/mcp/toolsets/a,b?toolsets=a#x",
            "use --url http://h/, and `toolset show a`",
        );
        check(
            "https://h/tools/mcp/servers/crm",
            "--url https://h/tools, and `tool list --server crm`",
        );
        check("http://h/mcp/sessions/work", "`session show work`");
        check("http://h/mcp?toolsets=a", "use --url http://h/");
    }

    #[test]
    fn an_address_may_leave_the_scheme_out() {
        let base = |url: &str| Remote::new(url).map(|remote| remote.base.to_string());
        assert_eq!(base("localhost:8421").unwrap(), "http://localhost:8421/");
        assert_eq!(base("127.0.0.1:8421/mcp").unwrap(), "http://127.0.0.1:8421/");
        let refused = base("localhost").unwrap_err().text();
        assert!(refused.contains("such as http://127.0.0.1:8420 or localhost:8420"), "{refused}");
    }
}

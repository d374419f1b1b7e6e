//! MCP registry documents as a source: a file, or an address with pages.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use http::header;
use switchboard_agent365::{MAX_BODY_BYTES, bare_token};
use switchboard_model::{Secret, redact_url};
use switchboard_outbound::{HttpPool, describe_failure};
use tokio::io::AsyncReadExt;
use url::Url;

use crate::registry_document::parse_registry;
use crate::source::{FetchedServers, ServerSource, SourceError};

/// How long one page may take.
const PAGE_WITHIN: Duration = Duration::from_secs(30);
/// Maximum number of pages that are followed.
const MOST_PAGES: usize = 200;
/// Maximum length of a body that an error quotes.
const LONGEST_QUOTE: usize = 200;

/// A file with documents.
#[derive(Debug)]
pub(crate) struct RegistryFile {
    pub(crate) path: PathBuf,
}

impl ServerSource for RegistryFile {
    fn fetch(&self) -> BoxFuture<'_, Result<FetchedServers, SourceError>> {
        async {
            let unreadable = |reason| SourceError::Unreadable { path: self.path.clone(), reason };
            let bytes = read_bounded(&self.path).await.map_err(unreadable)?;
            Ok(parse_registry(&bytes).map_err(unreadable)?.fetched)
        }
        .boxed()
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }
}

/// An address with documents. Its token goes to that origin alone.
#[derive(Debug)]
pub(crate) struct RegistryUrl {
    pub(crate) http: HttpPool,
    pub(crate) url: Url,
    pub(crate) token: Option<Secret>,
    /// No further page is fetched once there are as many servers.
    pub(crate) enough: usize,
}

impl ServerSource for RegistryUrl {
    fn fetch(&self) -> BoxFuture<'_, Result<FetchedServers, SourceError>> {
        async {
            self.pages().await.map_err(|reason| {
                let place = redact_url(&self.url);
                SourceError::Registry { place, reason }
            })
        }
        .boxed()
    }

    fn place(&self) -> String {
        redact_url(&self.url)
    }
}

impl RegistryUrl {
    async fn pages(&self) -> Result<FetchedServers, String> {
        let mut all = FetchedServers::default();
        let mut url = self.url.clone();
        for _ in 0..MOST_PAGES {
            let page = tokio::time::timeout(PAGE_WITHIN, self.page(&url)).await;
            let page =
                page.map_err(|_| format!("no whole answer within {} s", PAGE_WITHIN.as_secs()));
            let page = parse_registry(&page??)?;
            all.servers.extend(page.fetched.servers);
            all.unusable.extend(page.fetched.unusable);
            let Some(cursor) = page.next.filter(|_| all.servers.len() <= self.enough) else {
                return Ok(all);
            };
            url = with_cursor(&self.url, &cursor);
        }
        all.warnings
            .push(format!("the registry has more than {MOST_PAGES} pages; the rest is left out"));
        Ok(all)
    }

    async fn page(&self, url: &Url) -> Result<Vec<u8>, String> {
        let client = self.http.client_for(url).map_err(|error| error.message)?;
        let mut request = client.get(url.clone()).header(header::ACCEPT, "application/json");
        if let Some(token) = &self.token {
            request = request.bearer_auth(bare_token(token.expose()));
        }
        let answer = request.send().await.map_err(|error| describe_failure(&error).message)?;
        let status = answer.status();
        if status.is_redirection() {
            let target = answer.headers().get(header::LOCATION).and_then(|it| it.to_str().ok());
            let target = target.and_then(|target| url.join(target).ok());
            let target =
                target.map_or_else(|| "nowhere".into(), |it| it.origin().ascii_serialization());
            return Err(format!(
                "HTTP {}: redirects to {target}, and redirects to other hosts are not followed; set `url` to the new \
                 address if it moved",
                status.as_u16()
            ));
        }
        let mut bytes = Vec::new();
        let mut body = answer.bytes_stream();
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(|error| describe_failure(&error).message)?;
            if bytes.len() + piece.len() > MAX_BODY_BYTES {
                return Err(format!("the answer has more than {MAX_BODY_BYTES} bytes"));
            }
            bytes.extend_from_slice(&piece);
        }
        if !status.is_success() {
            let quoted = String::from_utf8_lossy(&bytes);
            let end = quoted.floor_char_boundary(LONGEST_QUOTE);
            let quoted = quoted.get(..end).unwrap_or_default().trim();
            return Err(format!("HTTP {}: {quoted}", status.as_u16()));
        }
        Ok(bytes)
    }
}

/// The content of a file, unless it is too large. The error is for people.
async fn read_bounded(path: &Path) -> Result<Vec<u8>, String> {
    let file = tokio::fs::File::open(path).await.map_err(|error| error.to_string())?;
    let limit = u64::try_from(MAX_BODY_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let read = file.take(limit.saturating_add(1)).read_to_end(&mut bytes).await;
    read.map_err(|error| error.to_string())?;
    if bytes.len() > MAX_BODY_BYTES {
        return Err(format!("the file has more than {MAX_BODY_BYTES} bytes"));
    }
    Ok(bytes)
}

fn with_cursor(url: &Url, cursor: &str) -> Url {
    let kept = url.query_pairs().filter(|(key, _)| key != "cursor");
    let kept: Vec<_> = kept.map(|(key, value)| (key.into_owned(), value.into_owned())).collect();
    let mut url = url.clone();
    url.query_pairs_mut().clear().extend_pairs(kept).append_pair("cursor", cursor);
    url
}

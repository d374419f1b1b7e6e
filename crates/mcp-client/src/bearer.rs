//! The fixed bearer token of an HTTP server. A token file may change at any time: it is read at every connect, and
//! again when the server rejects the token.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use reqwest::{RequestBuilder, Response};
use switchboard_model::{Endpoint, Secret, UpstreamAuth};
use switchboard_outbound::CurrentSecret;

/// The bearer token that was last read.
#[derive(Debug)]
pub(crate) struct BearerToken {
    file: Option<PathBuf>,
    current: Mutex<Secret>,
}

impl BearerToken {
    /// The token of a server that has one, read from its source.
    pub(crate) async fn read(endpoint: &Endpoint) -> Option<Arc<Self>> {
        let (Endpoint::StreamableHttp { auth, .. } | Endpoint::Sse { auth, .. }) = endpoint else {
            return None;
        };
        let (file, token) = match auth {
            UpstreamAuth::Bearer(token) => (None, token),
            UpstreamAuth::BearerFile { path, token } => (Some(path.clone()), token),
            UpstreamAuth::None | UpstreamAuth::OAuth(_) => return None,
        };
        let bearer = Self { file, current: Mutex::new(token.clone()) };
        bearer.renew(token).await;
        Some(Arc::new(bearer))
    }

    pub(crate) fn token(&self) -> Secret {
        self.current.lock().clone()
    }

    /// Whether the token comes from a file and can therefore change.
    pub(crate) fn is_in_file(&self) -> bool {
        self.file.is_some()
    }

    pub(crate) fn header(&self) -> Option<HeaderValue> {
        header_of(&self.token())
    }

    /// Reads the file again. Returns whether it now holds another token than `used`. An unreadable or invalid token
    /// changes nothing.
    pub(crate) async fn renew(&self, used: &Secret) -> bool {
        let Some(file) = &self.file else { return false };
        if let Some(token) = read_token(file).await {
            *self.current.lock() = token;
        }
        self.token() != *used
    }

    /// Sends a request with the token. If the server rejects the token and the file holds another one, sends the
    /// request once more: a 401 response means that it was not processed.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, reqwest::Error> {
        let used = self.token();
        let again = request.try_clone();
        let response = with_token(request, &used).send().await?;
        if response.status() == StatusCode::UNAUTHORIZED
            && self.renew(&used).await
            && let Some(again) = again
        {
            return with_token(again, &self.token()).send().await;
        }
        Ok(response)
    }
}

impl CurrentSecret for BearerToken {
    fn current(&self) -> Option<Secret> {
        Some(self.token())
    }
}

/// Replaces any token that the request already has.
fn with_token(request: RequestBuilder, token: &Secret) -> RequestBuilder {
    let header = header_of(token).map(|value| (header::AUTHORIZATION, value));
    request.headers(HeaderMap::from_iter(header))
}

fn header_of(token: &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

async fn read_token(file: &Path) -> Option<Secret> {
    let content = tokio::fs::read_to_string(file).await.ok()?;
    let text = content.strip_suffix('\n').unwrap_or(&content);
    let token = Secret::new(text.strip_suffix('\r').unwrap_or(text));
    (!token.expose().trim().is_empty() && header_of(&token).is_some()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_read_again_and_what_is_no_token_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        std::fs::write(&path, "second\r\n").unwrap();
        let auth = UpstreamAuth::BearerFile { path: path.clone(), token: Secret::new("first") };
        let url = "http://h/".parse().unwrap();
        let endpoint = Endpoint::Sse { url, headers: std::collections::BTreeMap::new(), auth };
        let bearer = BearerToken::read(&endpoint).await.unwrap();
        assert_eq!(bearer.token(), Secret::new("second"));
        assert!(bearer.renew(&Secret::new("first")).await, "somebody else has renewed it");
        assert!(!bearer.renew(&Secret::new("second")).await);
        for useless in ["", "  \n", "two\nlines"] {
            std::fs::write(&path, useless).unwrap();
            assert!(!bearer.renew(&Secret::new("second")).await, "{useless:?}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(!bearer.renew(&Secret::new("second")).await);
        std::fs::write(&path, "third").unwrap();
        assert!(bearer.renew(&Secret::new("second")).await);
        assert_eq!(bearer.header().unwrap(), "Bearer third");
    }
}

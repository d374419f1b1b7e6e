//! The signing keys of the token issuer: fetched or read from a file, and kept if a refresh fails.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use reqwest::Client;
use reqwest::redirect::{Action, Attempt as Redirect, Policy};
use serde::Deserialize;
use serde_json::Value;
use switchboard_model::{is_on_this_machine, redact_url};
use tokio::io::AsyncReadExt as _;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::AuthError;

/// The location of an issuer's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySetSource {
    /// Fetched from a URL.
    Url(Url),
    /// Read from a file.
    File(PathBuf),
}

/// The accepted signature algorithms: no shared secrets (`HS*`), and never `none`.
pub(crate) const ACCEPTED: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 256 * 1024;
const MAX_REDIRECTS: usize = 3;
/// The pause between fetches for unknown key ids, so that tokens with invented ids do not cause a fetch each.
const PAUSE_AFTER_UNKNOWN_KEY: Duration = Duration::from_secs(30);
/// The age at which keys are fetched again. A key that the issuer withdrew is accepted for at most this time.
const REFRESH_AFTER: Duration = Duration::from_mins(10);
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// The current keys of one issuer.
pub(crate) struct Jwks {
    source: KeySetSource,
    http: Client,
    keys: ArcSwap<KeySet>,
    /// The result of the last fetch.
    last: ArcSwapOption<LastFetch>,
    /// When an unknown key id last caused a fetch.
    asked: ArcSwapOption<Instant>,
    /// Permits one fetch at a time.
    turn: Arc<Semaphore>,
    /// Fetches run in tasks, so that they go on when the request that caused them ends: others wait for them too.
    tasks: TaskTracker,
}

struct LastFetch {
    at: Instant,
    failure: Option<String>,
}

/// The usable keys of one JWKS document.
pub(crate) struct KeySet {
    /// Increases with every document that differs from the previous one; 0 before the first.
    pub(crate) generation: u64,
    document: Option<blake3::Hash>,
    keys: Vec<IssuerKey>,
}

/// A key and its permitted algorithms.
pub(crate) struct IssuerKey {
    id: Option<String>,
    pub(crate) algorithms: Vec<Algorithm>,
    pub(crate) key: DecodingKey,
}

/// Why there is no key for a token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoKey {
    /// No key has this id; a newer document may have one.
    Unknown,
    /// The key with this id does not permit this algorithm.
    WrongAlgorithm,
    /// The token names no key, and several fit.
    Ambiguous,
}

impl Jwks {
    /// Loads the keys. A file that cannot be used is an error; a URL that does not respond is fetched again later.
    pub(crate) async fn new(source: KeySetSource) -> Result<Arc<Self>, AuthError> {
        let is_near = matches!(&source, KeySetSource::Url(url) if is_on_this_machine(url));
        let http = if is_near { Client::builder().no_proxy() } else { Client::builder() }
            .timeout(FETCH_TIMEOUT)
            .redirect(Policy::custom(same_origin_only))
            .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|source| AuthError::HttpClient { source })?;
        let none = KeySet { generation: 0, document: None, keys: Vec::new() };
        let jwks = Arc::new(Self {
            source,
            http,
            keys: ArcSwap::from_pointee(none),
            last: ArcSwapOption::empty(),
            asked: ArcSwapOption::empty(),
            turn: Arc::new(Semaphore::new(1)),
            tasks: TaskTracker::new(),
        });
        match (jwks.attempt(|_| true).await, &jwks.source) {
            (Err(reason), KeySetSource::File(file)) => {
                Err(AuthError::JwksFile { file: file.clone(), reason })
            }
            _ => Ok(jwks),
        }
    }

    pub(crate) fn keys(&self) -> Arc<KeySet> {
        self.keys.load_full()
    }

    /// Fetches the keys because a token names an unknown one, unless that was done a moment ago. Fails if the last fetch
    /// failed.
    pub(crate) async fn look_for_new(self: &Arc<Self>) -> Result<(), String> {
        self.attempt(|jwks| {
            let recently = jwks.asked.load_full();
            if recently.is_some_and(|at| at.elapsed() < PAUSE_AFTER_UNKNOWN_KEY) {
                return false;
            }
            jwks.asked.store(Some(Arc::new(Instant::now())));
            true
        })
        .await
    }

    /// Fetches the keys if they are old.
    pub(crate) async fn refresh_when_old(self: &Arc<Self>) -> Result<(), String> {
        self.attempt(|jwks| {
            jwks.last.load().as_ref().is_none_or(|last| {
                let pause = if last.failure.is_some() { RETRY_AFTER } else { REFRESH_AFTER };
                last.at.elapsed() >= pause
            })
        })
        .await
    }

    /// Fetches the keys if `is_due`, one fetch at a time. A caller that waited for another fetch takes its result.
    async fn attempt(self: &Arc<Self>, is_due: impl Fn(&Self) -> bool) -> Result<(), String> {
        let came = Instant::now();
        let Ok(turn) = Arc::clone(&self.turn).acquire_owned().await else { return Ok(()) };
        let ended_meanwhile = self.last.load().as_ref().is_some_and(|last| last.at > came);
        if !ended_meanwhile && is_due(self) {
            let jwks = Arc::clone(self);
            let attempt = self.tasks.spawn(async move {
                let _turn = turn;
                jwks.get().await;
            });
            if attempt.await.is_err() {
                return Err("the fetch of the keys was interrupted".to_owned());
            }
        }
        match self.last.load().as_ref().and_then(|last| last.failure.clone()) {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    async fn get(&self) {
        let read = match &self.source {
            KeySetSource::Url(url) => self.fetch(url).await,
            KeySetSource::File(file) => read_file(file).await,
        };
        let before = self.keys();
        let failure = match read.and_then(|document| KeySet::after(&before, &document)) {
            Ok(Some(keys)) => {
                tracing::info!(keys = keys.keys.len(), "loaded the keys of the token issuer");
                self.keys.store(Arc::new(keys));
                None
            }
            Ok(None) => None,
            Err(reason) => {
                let kept = before.keys.len();
                tracing::warn!(source = %self.place(), reason, kept, "cannot load the keys of the token issuer");
                Some(reason)
            }
        };
        self.last.store(Some(Arc::new(LastFetch { at: Instant::now(), failure })));
    }

    fn place(&self) -> String {
        match &self.source {
            KeySetSource::Url(url) => redact_url(url),
            KeySetSource::File(file) => file.display().to_string(),
        }
    }

    async fn fetch(&self, url: &Url) -> Result<Vec<u8>, String> {
        // The URL is logged separately, without its secret parts.
        let told = |error: reqwest::Error| chain(&error.without_url());
        let mut response = self.http.get(url.clone()).send().await.map_err(told)?;
        if response.status() != reqwest::StatusCode::OK {
            return Err(format!("it answered {}", response.status()));
        }
        let mut document = Vec::new();
        while let Some(some) = response.chunk().await.map_err(told)? {
            document.extend_from_slice(&some);
            if document.len() > MAX_BYTES {
                return Err(format!("it is larger than {MAX_BYTES} bytes"));
            }
        }
        Ok(document)
    }
}

async fn read_file(file: &PathBuf) -> Result<Vec<u8>, String> {
    let mut document = Vec::new();
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let opened = tokio::fs::File::open(file).await.map_err(|error| error.to_string())?;
    opened.take(limit).read_to_end(&mut document).await.map_err(|error| error.to_string())?;
    if document.len() > MAX_BYTES {
        return Err(format!("it is larger than {MAX_BYTES} bytes"));
    }
    Ok(document)
}

fn same_origin_only(redirect: Redirect<'_>) -> Action {
    let first = redirect.previous().first();
    let is_same = first.is_some_and(|first| first.origin() == redirect.url().origin());
    let is_short = redirect.previous().len() <= MAX_REDIRECTS;
    if is_same && is_short { redirect.follow() } else { redirect.stop() }
}

fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[derive(Deserialize)]
struct JwksDocument {
    keys: Vec<Value>,
}

impl KeySet {
    /// The keys of a document, or `None` if the document has not changed. Keys that cannot be used are left out; a document
    /// without any usable key is an error, because it would lock out every token.
    fn after(before: &Self, document: &[u8]) -> Result<Option<Self>, String> {
        let hash = blake3::hash(document);
        if before.document == Some(hash) {
            return Ok(None);
        }
        let parsed: JwksDocument = serde_json::from_slice(document)
            .map_err(|error| format!("it is not a JWKS document: {error}"))?;
        let keys: Vec<_> = parsed.keys.into_iter().filter_map(IssuerKey::from_json).collect();
        if keys.is_empty() {
            return Err("it has no key that can check a signature".to_owned());
        }
        Ok(Some(Self { generation: before.generation + 1, document: Some(hash), keys }))
    }

    /// The key for a token with this key id and algorithm.
    pub(crate) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<&IssuerKey, NoKey> {
        let named = |key: &&IssuerKey| id.is_none_or(|id| key.id.as_deref() == Some(id));
        let mut fitting =
            self.keys.iter().filter(named).filter(|key| key.algorithms.contains(&algorithm));
        match (fitting.next(), fitting.next(), id) {
            (Some(_), Some(_), None) => Err(NoKey::Ambiguous),
            (Some(key), _, _) => Ok(key),
            (None, _, Some(_)) if self.keys.iter().any(|key| named(&key)) => {
                Err(NoKey::WrongAlgorithm)
            }
            (None, _, _) => Err(NoKey::Unknown),
        }
    }
}

impl IssuerKey {
    /// `None` if the key is not for signatures or of an unsupported type.
    fn from_json(json: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(json).ok()?;
        if !matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature)) {
            return None;
        }
        let fitting: &[Algorithm] = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => &[
                Algorithm::RS256,
                Algorithm::RS384,
                Algorithm::RS512,
                Algorithm::PS256,
                Algorithm::PS384,
                Algorithm::PS512,
            ],
            AlgorithmParameters::EllipticCurve(key) => match key.curve {
                EllipticCurve::P256 => &[Algorithm::ES256],
                EllipticCurve::P384 => &[Algorithm::ES384],
                _ => return None,
            },
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                &[Algorithm::EdDSA]
            }
            _ => return None,
        };
        let algorithms: Vec<_> = match jwk.common.key_algorithm {
            None => fitting.to_vec(),
            Some(only) => {
                let only = Algorithm::try_from(only).ok()?;
                fitting.iter().copied().filter(|algorithm| *algorithm == only).collect()
            }
        };
        if algorithms.is_empty() {
            return None;
        }
        Some(Self { key: DecodingKey::from_jwk(&jwk).ok()?, id: jwk.common.key_id, algorithms })
    }
}

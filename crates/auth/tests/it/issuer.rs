//! A token issuer: keys generated in the test, and a JWKS over HTTP that can change, fail or redirect.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING as ES256, ECDSA_P384_SHA384_FIXED_SIGNING as ES384,
    EcdsaKeyPair, Ed25519KeyPair,
};
use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use switchboard_auth::{JwtOptions, KeySetSource};
use switchboard_model::JwtGrants;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

pub(crate) const ISSUER: &str = "https://issuer.example/realm";
pub(crate) const AUDIENCE: &str = "https://board.example/mcp";

/// The length of the PKCS #8 prefix before an RSA key of 2048 bits; signing needs the key without it.
const PKCS8_PREFIX: usize = 26;

/// One key of the issuer.
pub(crate) struct Key {
    pub(crate) id: String,
    algorithm: Algorithm,
    private: EncodingKey,
}

impl Key {
    pub(crate) fn new(id: &str, algorithm: Algorithm) -> Self {
        let ec = |kind| EcdsaKeyPair::generate(kind).unwrap().to_pkcs8v1().unwrap();
        let private = match algorithm {
            Algorithm::ES256 => EncodingKey::from_ec_der(ec(&ES256).as_ref()),
            Algorithm::ES384 => EncodingKey::from_ec_der(ec(&ES384).as_ref()),
            Algorithm::EdDSA => {
                let pair = Ed25519KeyPair::generate().unwrap();
                EncodingKey::from_ed_der(pair.to_pkcs8v1().unwrap().as_ref())
            }
            _ => {
                let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
                let pkcs8 = pair.as_der().unwrap();
                EncodingKey::from_rsa_der(&pkcs8.as_ref()[PKCS8_PREFIX..])
            }
        };
        Self { id: id.into(), algorithm, private }
    }

    /// The public half, as the issuer publishes it.
    pub(crate) fn public(&self) -> Value {
        let mut jwk = Jwk::from_encoding_key(&self.private, self.algorithm).unwrap();
        jwk.common.key_id = Some(self.id.clone());
        serde_json::to_value(jwk).unwrap()
    }

    pub(crate) fn sign(&self, claims: &Value) -> String {
        let mut header = Header::new(self.algorithm);
        header.kid = Some(self.id.clone());
        self.sign_with(&header, claims)
    }

    /// Signs with another header.
    pub(crate) fn sign_with(&self, header: &Header, claims: &Value) -> String {
        encode(header, claims, &self.private).unwrap()
    }
}

pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// The claims of a valid token.
pub(crate) fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": "ana", "client_id": "cursor", "scope": "mcp:use",
        "exp": now() + 300, "nbf": now() - 10,
    })
}

/// The same with other values; `null` removes a claim.
pub(crate) fn claims_with(changes: &Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}

pub(crate) fn options(jwks: KeySetSource) -> JwtOptions {
    JwtOptions {
        issuer: ISSUER.into(),
        audience: AUDIENCE.into(),
        resource: AUDIENCE.parse().unwrap(),
        jwks,
        required_scopes: vec!["mcp:use".into()],
        leeway: Duration::from_secs(5),
        grants: JwtGrants::default(),
    }
}

/// The response of the endpoint.
#[derive(Clone)]
pub(crate) enum Answer {
    Keys(Vec<Value>),
    Status(StatusCode),
    Text(String),
    Redirect(String),
    /// No response for this long.
    Silence(Duration),
}

/// The endpoint with the keys.
pub(crate) struct Endpoint {
    pub(crate) url: Url,
    answer: Arc<Mutex<Answer>>,
    asked: Arc<AtomicUsize>,
    _serving: AbortOnDropHandle<()>,
}

impl Endpoint {
    pub(crate) async fn new(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jwks", listener.local_addr().unwrap()).parse().unwrap();
        let (answer, asked) = (Arc::new(Mutex::new(answer)), Arc::new(AtomicUsize::new(0)));
        let state = (Arc::clone(&answer), Arc::clone(&asked));
        let router = Router::new().route(
            "/jwks",
            get(move || {
                let (answer, asked) = state.clone();
                asked.fetch_add(1, Ordering::SeqCst);
                let answer = answer.lock().unwrap().clone();
                respond(answer)
            }),
        );
        let serve = async move { axum::serve(listener, router).await.unwrap() };
        #[expect(clippy::disallowed_methods, reason = "the handle in the struct owns it")]
        let serving = AbortOnDropHandle::new(tokio::spawn(serve));
        Self { url, answer, asked, _serving: serving }
    }

    pub(crate) async fn of(keys: &[&Key]) -> Self {
        Self::new(Self::keys(keys)).await
    }

    pub(crate) fn keys(keys: &[&Key]) -> Answer {
        Answer::Keys(keys.iter().map(|key| key.public()).collect())
    }

    pub(crate) fn answer(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    pub(crate) fn options(&self) -> JwtOptions {
        options(KeySetSource::Url(self.url.clone()))
    }
}

async fn respond(answer: Answer) -> Response {
    match answer {
        Answer::Keys(keys) => axum::Json(json!({ "keys": keys })).into_response(),
        Answer::Status(status) => status.into_response(),
        Answer::Text(text) => text.into_response(),
        Answer::Redirect(to) => (StatusCode::FOUND, [("location", to)]).into_response(),
        Answer::Silence(time) => {
            tokio::time::sleep(time).await;
            StatusCode::OK.into_response()
        }
    }
}

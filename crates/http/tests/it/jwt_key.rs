//! The key of a token issuer, and tokens that it signs.

use std::path::Path;
use std::time::Duration;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::json;
use switchboard_auth::{JwtOptions, KeySetSource};
use switchboard_model::JwtGrants;

/// What tokens for the board name as their audience.
pub(crate) const AUDIENCE: &str = "https://board.example/mcp";

/// A key of an issuer.
#[derive(Clone)]
pub(crate) struct JwtKey(EncodingKey);

impl JwtKey {
    pub(crate) fn new() -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let pkcs8 = pair.to_pkcs8v1().unwrap();
        Self(EncodingKey::from_ec_der(pkcs8.as_ref()))
    }

    /// A token of the issuer for this subject.
    pub(crate) fn sign(&self, issuer: &str, subject: &str, lifetime: i64) -> String {
        self.sign_for(issuer, subject, lifetime, "")
    }

    /// The same with scopes.
    pub(crate) fn sign_for(
        &self,
        issuer: &str,
        subject: &str,
        lifetime: i64,
        scope: &str,
    ) -> String {
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some("k".into());
        let exp = jiff::Timestamp::now().as_second() + lifetime;
        let claims = json!({
            "iss": issuer, "sub": subject, "aud": AUDIENCE, "exp": exp, "client_id": "agent",
            "scope": scope,
        });
        encode(&header, &claims, &self.0).unwrap()
    }

    /// Accepts tokens of the issuer, whose key is written into this directory.
    pub(crate) fn options(&self, issuer: &str, directory: &Path) -> JwtOptions {
        let mut jwk = Jwk::from_encoding_key(&self.0, Algorithm::ES256).unwrap();
        jwk.common.key_id = Some("k".into());
        let file = directory.join("jwks.json");
        std::fs::write(&file, json!({ "keys": [jwk] }).to_string()).unwrap();
        JwtOptions {
            issuer: issuer.to_owned(),
            audience: AUDIENCE.into(),
            resource: AUDIENCE.parse().unwrap(),
            jwks: KeySetSource::File(file),
            required_scopes: Vec::new(),
            leeway: Duration::ZERO,
            grants: JwtGrants::default(),
        }
    }
}

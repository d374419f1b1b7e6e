//! Random secrets of a data directory.

use crate::rows::bytes32;
use crate::statement::{query, query_scalar};
use crate::{Store, StoreError};

const OPERATION: &str = "read a secret of this installation";

impl Store {
    /// The random secret with this name: created by the first call, and the same from then on, for every process that
    /// uses this directory.
    pub async fn installation_secret(&self, name: &str) -> Result<[u8; 32], StoreError> {
        // It nearly always exists, and reading it needs no write lock.
        if let Some(secret) = self.known_secret(name).await? {
            return Ok(secret);
        }
        let mut fresh = [0; 32];
        getrandom::fill(&mut fresh)
            .map_err(|source| StoreError::NoRandomness { source: source.into() })?;
        let mut write = self.write(OPERATION).await?;
        // Of two concurrent processes, the second gets the secret of the first.
        query(
            "INSERT INTO installation_secrets (name, secret) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
        )
        .bind(name)
        .bind(fresh.as_slice())
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        let secret: Vec<u8> =
            query_scalar("SELECT secret FROM installation_secrets WHERE name = $1")
                .bind(name)
                .fetch_one(write.on())
                .await
                .map_err(|error| write.fault(error))?;
        let secret = bytes32("secret", secret).map_err(|error| write.fault(error))?;
        write.commit().await?;
        Ok(secret)
    }
    async fn known_secret(&self, name: &str) -> Result<Option<[u8; 32]>, StoreError> {
        let secret: Option<Vec<u8>> =
            query_scalar("SELECT secret FROM installation_secrets WHERE name = $1")
                .bind(name)
                .fetch_optional(&self.pool)
                .await
                .map_err(|error| self.fault(OPERATION, error))?;
        let secret = secret.map(|secret| bytes32("secret", secret)).transpose();
        secret.map_err(|error| self.fault(OPERATION, error))
    }
}

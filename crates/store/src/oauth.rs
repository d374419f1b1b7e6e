//! Sign-ins to upstream servers, and what the next sign-in must request. The contents are opaque to the store.

use switchboard_model::{Secret, ServerName};

use crate::{Store, StoreError};

impl Store {
    /// The result of the last sign-in to this server or, with an issuer, of the last one at that issuer.
    pub async fn oauth_grant(
        &self,
        server: &ServerName,
        issuer: Option<&str>,
    ) -> Result<Option<Secret>, StoreError> {
        let content: Option<String> = sqlx::query_scalar(
            "SELECT content FROM oauth_grants WHERE server = $1 AND ($2 IS NULL OR issuer = $2)
             ORDER BY updated_at_ms DESC, issuer LIMIT 1",
        )
        .bind(server.as_str())
        .bind(issuer)
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.fault("read a sign-in", error))?;
        Ok(content.map(Secret::new))
    }

    /// Stores the result of a sign-in or of a token refresh.
    pub async fn keep_oauth_grant(
        &self,
        server: &ServerName,
        issuer: &str,
        content: &Secret,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let mut write = self.write("keep a sign-in").await?;
        sqlx::query(
            "INSERT INTO oauth_grants (server, issuer, content, updated_at_ms) VALUES ($1, $2, $3, $4)
             ON CONFLICT (server, issuer) DO UPDATE SET content = excluded.content,
                 updated_at_ms = excluded.updated_at_ms",
        )
        .bind(server.as_str())
        .bind(issuer)
        .bind(content.expose())
        .bind(now_ms)
        .execute(write.on())
        .await
        .map_err(|error| write.fault(error))?;
        write.commit().await
    }

    /// Deletes all sign-ins to this server, and the request for one. Returns whether there were any.
    pub async fn forget_oauth_grants(&self, server: &ServerName) -> Result<bool, StoreError> {
        let mut write = self.write("forget a sign-in").await?;
        let gone = sqlx::query("DELETE FROM oauth_grants WHERE server = $1")
            .bind(server.as_str())
            .execute(write.on())
            .await
            .map_err(|error| write.fault(error))?
            .rows_affected();
        sqlx::query("DELETE FROM oauth_wanted WHERE server = $1")
            .bind(server.as_str())
            .execute(write.on())
            .await
            .map_err(|error| write.fault(error))?;
        write.commit().await?;
        Ok(gone > 0)
    }

    /// What the next sign-in must request, if one is required.
    pub async fn oauth_wanted(&self, server: &ServerName) -> Result<Option<String>, StoreError> {
        sqlx::query_scalar("SELECT content FROM oauth_wanted WHERE server = $1")
            .bind(server.as_str())
            .fetch_optional(&self.pool)
            .await
            .map_err(|error| self.fault("read what a sign-in has to ask for", error))
    }

    /// Sets what the next sign-in must request; `None` if none is required any more.
    pub async fn want_oauth(
        &self,
        server: &ServerName,
        content: Option<&str>,
    ) -> Result<(), StoreError> {
        let mut write = self.write("note that a sign-in is wanted").await?;
        let query = match content {
            Some(content) => sqlx::query(
                "INSERT INTO oauth_wanted (server, content) VALUES ($1, $2)
                 ON CONFLICT (server) DO UPDATE SET content = excluded.content",
            )
            .bind(server.as_str())
            .bind(content),
            None => sqlx::query("DELETE FROM oauth_wanted WHERE server = $1").bind(server.as_str()),
        };
        query.execute(write.on()).await.map_err(|error| write.fault(error))?;
        write.commit().await
    }
}

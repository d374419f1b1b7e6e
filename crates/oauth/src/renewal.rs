//! Renewing the token of an [`Authorization`]: one task of this process at a time, and one process of all that share the
//! store.
//!
//! The process takes the turn in the store, asks the authorization server, and writes the result with the next version
//! in one statement. The others wait for the version to change. Without the store nothing is renewed: a rotated refresh
//! token that cannot be written would be lost.

use std::sync::Arc;
use std::time::Duration;

use switchboard_model::{ConnectError, ConnectErrorKind, RenewalTurn};
use tokio::time::{Instant, sleep};

use crate::authorization::{Authorization, TokenRequest};
use crate::failure::unkept;
use crate::grant::{Grant, token_of};
use crate::own_client::{self, Asking};
use crate::refresh::{Refreshed, refresh};
use crate::sign_in_need::{SignInCause, SignInNeed};
use crate::token_exchange::{Exchange, exchange};
use crate::token_source::TokenSource;

/// How often a process looks whether another one has finished.
const POLL: Duration = Duration::from_millis(100);
/// How long a process waits for another one. Longer than a turn: after this time its holder is gone, whatever the clock
/// says.
const LONGEST_WAIT: Duration = Duration::from_secs(25);

impl Authorization {
    /// Renews a token that can still be used. Does nothing while another task renews it, or shortly after a failure.
    pub(crate) fn renew_in_background(self: &Arc<Self>, used: &Arc<Grant>, again: TokenRequest) {
        if self.renewing.available_permits() == 0 || self.failed_lately() {
            return;
        }
        let (this, used, began) = (self.clone(), used.clone(), Instant::now());
        self.tasks.spawn(async move {
            if let Err(error) = this.renew_in_turn(Some(&used), &again, began).await {
                tracing::debug!(grant = %this.id, %error, "the token was not renewed; it is still valid");
            }
        });
    }

    /// Obtains another token than `used` without an interactive sign-in; `None` if that is not possible.
    pub(crate) async fn renew(
        self: &Arc<Self>,
        used: Option<Arc<Grant>>,
        again: TokenRequest,
    ) -> Result<Option<Arc<Grant>>, ConnectError> {
        let (this, began) = (self.clone(), Instant::now());
        // Runs as its own task: if the caller goes away, the refreshed token must still be stored, or the sign-in would
        // be lost.
        let renewing =
            self.tasks.spawn(async move { this.renew_in_turn(used.as_ref(), &again, began).await });
        renewing.await.unwrap_or_else(|_| {
            Err(ConnectError::new(ConnectErrorKind::Unauthorized, "the token could not be renewed"))
        })
    }

    async fn renew_in_turn(
        &self,
        used: Option<&Arc<Grant>>,
        again: &TokenRequest,
        began: Instant,
    ) -> Result<Option<Arc<Grant>>, ConnectError> {
        // The semaphore is never closed.
        let _turn = self.renewing.acquire().await;
        let kept = self.look().await?;
        if kept.is_some() && token_of(kept.as_ref()) != token_of(used) {
            return Ok(kept);
        }
        let failed = self.memory().failed.clone();
        if let Some((_, error)) = failed.filter(|(at, _)| *at >= began) {
            // The refresh failed while this task waited; it is not tried again.
            return Err(error);
        }
        let renewed = self.renew_now(kept, again).await;
        self.memory().failed = renewed.as_ref().err().map(|error| (Instant::now(), error.clone()));
        renewed
    }

    async fn renew_now(
        &self,
        kept: Option<Arc<Grant>>,
        again: &TokenRequest,
    ) -> Result<Option<Arc<Grant>>, ConnectError> {
        let challenge = again.challenge.as_deref();
        if let (Some(client), TokenSource::Server(settings)) =
            (self.exchange_client(), &self.source)
        {
            let (url, more, subject) = (&self.url, again.more.as_slice(), self.subject()?);
            let wanted = Exchange { url, settings, client, subject: &subject, more };
            let renewed = exchange(wanted, self.tokens.now_ms()).await?;
            let saved = self.tokens.save(&self.id, &renewed.issuer, renewed.write()).await;
            saved.map_err(|error| unkept(&error))?;
            tracing::debug!(grant = %self.id, "token exchanged");
            return self.look().await;
        }
        match (self.own_client(), kept) {
            (Some(client), kept) => {
                let TokenSource::Server(settings) = &self.source else { return Ok(None) };
                let asking = Asking {
                    server: &self.url,
                    settings,
                    client,
                    challenge,
                    more: &again.more,
                    issuer: kept.as_ref().map(|kept| kept.issuer.as_str()),
                };
                // No turn: such a token replaces no other one.
                let renewed = own_client::obtain(asking, self.tokens.now_ms()).await?;
                let saved = self.tokens.save(&self.id, &renewed.issuer, renewed.write()).await;
                saved.map_err(|error| unkept(&error))?;
                self.look().await
            }
            (None, None) => Ok(None),
            (None, Some(kept)) => self.refresh(&kept, challenge).await,
        }
    }

    async fn refresh(
        &self,
        kept: &Arc<Grant>,
        challenge: Option<&str>,
    ) -> Result<Option<Arc<Grant>>, ConnectError> {
        // Everything that takes time is done before the turn is taken.
        if kept.refresh_token.is_none() {
            return self.other_than(kept).await;
        }
        let server = self.authorization_server(challenge).await?;
        if server.issuer != kept.issuer {
            // Neither the token nor the client is valid there.
            self.note_refusal(kept, challenge, SignInCause::IssuerChanged).await?;
            return self.other_than(kept).await;
        }
        if self.take_turn(kept).await? == RenewalTurn::Changed {
            return self.other_than(kept).await;
        }
        match refresh(&server, kept, self.tokens.now_ms()).await {
            Ok(Refreshed::Renewed(renewed)) => {
                self.memory().unsaved = Some((kept.version, Arc::from(renewed)));
                tracing::debug!(grant = %self.id, "token renewed");
                // If the store does not take it now, it is used from memory and written later.
                match self.look().await {
                    Ok(grant) => Ok(grant),
                    Err(error) => self.take_unsaved().map(Some).ok_or(error),
                }
            }
            Ok(Refreshed::Refused) => {
                // The refresh token is forgotten, so that no process tries it again.
                let ended = Grant { refresh_token: None, ..Grant::clone(kept) };
                let written =
                    self.tokens.finish_renewal(&self.id, &kept.issuer, kept.version, ended.write());
                if written.await.map_err(|error| unkept(&error))? {
                    self.note_refusal(kept, challenge, SignInCause::Refused).await?;
                }
                self.other_than(kept).await
            }
            Err(error) => {
                // The turn ends by itself if the store does not take this.
                let _until_then =
                    self.tokens.end_renewal(&self.id, &kept.issuer, kept.version).await;
                Err(error)
            }
        }
    }

    /// Waits for the turn. `Changed` if another process renewed the grant meanwhile.
    async fn take_turn(&self, kept: &Grant) -> Result<RenewalTurn, ConnectError> {
        let mut watched: Option<(i64, Instant)> = None;
        loop {
            let abandoned = watched.filter(|(_, since)| since.elapsed() >= LONGEST_WAIT);
            let abandoned = abandoned.map(|(until_ms, _)| until_ms);
            let begun =
                self.tokens.begin_renewal(&self.id, &kept.issuer, kept.version, abandoned).await;
            match begun.map_err(|error| unkept(&error))? {
                RenewalTurn::Held { until_ms } => {
                    if watched.is_none_or(|(known, _)| known != until_ms) {
                        watched = Some((until_ms, Instant::now()));
                    }
                    sleep(POLL).await;
                }
                turn @ (RenewalTurn::Taken | RenewalTurn::Changed) => return Ok(turn),
            }
        }
    }

    /// The stored token, if it is another one than `kept`.
    async fn other_than(&self, kept: &Grant) -> Result<Option<Arc<Grant>>, ConnectError> {
        let newest = self.look().await?;
        Ok(newest.filter(|newest| newest.access_token != kept.access_token))
    }

    async fn note_refusal(
        &self,
        kept: &Grant,
        challenge: Option<&str>,
        cause: SignInCause,
    ) -> Result<(), ConnectError> {
        let challenge = challenge.map(str::to_owned);
        self.need(SignInNeed { challenge, scopes: kept.asked.clone(), cause }).await
    }

    /// Writes a renewed grant that the store has not taken yet.
    pub(crate) async fn save_unsaved(&self) -> Result<(), ConnectError> {
        let Some((version, renewed)) = self.memory().unsaved.clone() else { return Ok(()) };
        let content = renewed.write();
        let written = self.tokens.finish_renewal(&self.id, &renewed.issuer, version, content).await;
        // If the grant has another version by now, somebody has signed in since: that one counts.
        let _is_current = written.map_err(|error| unkept(&error))?;
        self.memory().unsaved = None;
        Ok(())
    }

    /// The renewed grant that the store did not take, as the one to use.
    fn take_unsaved(&self) -> Option<Arc<Grant>> {
        let mut memory = self.memory();
        let renewed = memory.unsaved.as_ref().map(|(_, renewed)| renewed.clone())?;
        tracing::warn!(grant = %self.id, "the renewed token is used, but could not be stored yet");
        memory.grant = Some(renewed.clone());
        Some(renewed)
    }
}

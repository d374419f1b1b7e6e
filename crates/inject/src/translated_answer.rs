//! Answers of a provider that does not speak the app's API.

use bytes::Bytes;
use switchboard_model::ProviderKind;
use switchboard_providers::{ModelStream, ProviderEndpoint};
use switchboard_render::Provider;
use switchboard_splice::{Api, Refusal, RefusalKind};
use switchboard_translate::{AnswerOptions, AnswerWriter, TranslatedRequest};

use crate::Failure;
use crate::turn_records::now_ms;

/// What all requests of a turn to such a provider have in common.
#[derive(Debug, Clone)]
pub(crate) struct Translation {
    pub(crate) api: Api,
    /// The model as the provider knows it.
    pub(crate) model: String,
}

/// An answer, event by event.
#[derive(Debug)]
pub(crate) struct TranslatedAnswer {
    stream: ModelStream,
    writer: AnswerWriter,
    /// Frames that the app has to get first.
    begun: Vec<u8>,
}

impl Translation {
    /// Sends a request, and waits until the provider has accepted it. `round` is unique for the request.
    pub(crate) async fn ask(
        &self,
        endpoint: &ProviderEndpoint,
        credential: Option<&str>,
        session: &str,
        round: String,
        body: &[u8],
    ) -> Result<TranslatedAnswer, Failure> {
        let source = endpoint.source(Some(&self.model), credential)?;
        let rendering = rendering_of(endpoint);
        let request = TranslatedRequest::read(self.api, body, source, rendering)?;
        let stream = endpoint.ask(&request.model_request(session, &round)).await?;
        let now = u64::try_from(now_ms() / 1000).unwrap_or_default();
        let mut writer = request.answer(AnswerOptions { id: round, now });
        let mut begun = Vec::new();
        writer.begin(&mut begun);
        Ok(TranslatedAnswer { stream, writer, begun })
    }
}

impl TranslatedAnswer {
    /// The next frames; `None` after the last ones. Cancel-safe.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        let mut frames = std::mem::take(&mut self.begun);
        while frames.is_empty() {
            // Nothing is lost if the wait is dropped: there are no frames yet.
            let Some(events) = self.stream.next().await else { return Ok(None) };
            for event in events {
                self.writer.event(event, &mut frames)?;
            }
        }
        Ok(Some(frames.into()))
    }

    /// The whole answer.
    pub(crate) async fn whole(mut self) -> Result<Bytes, Failure> {
        while self.chunk().await?.is_some() {}
        let whole = self.writer.whole().ok_or_else(|| {
            Refusal::new(RefusalKind::Upstream, "the provider's answer ended before its end")
        })?;
        Ok(whole.into())
    }
}

/// How a provider takes tools.
fn rendering_of(endpoint: &ProviderEndpoint) -> Provider {
    match endpoint.plan().kind {
        ProviderKind::OpenAi | ProviderKind::ChatGpt | ProviderKind::Demo => Provider::OpenAi,
        ProviderKind::OpenAiChat => Provider::OpenAiChat,
        ProviderKind::Anthropic => Provider::Anthropic,
        ProviderKind::Gemini | ProviderKind::CodeAssist if endpoint.declares_parameters() => {
            Provider::GeminiParameters
        }
        ProviderKind::Gemini | ProviderKind::CodeAssist => Provider::Gemini,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};
    use switchboard_providers::Providers;

    use super::*;

    async fn ask(api: Api, body: &Value) -> Result<TranslatedAnswer, Failure> {
        let providers = Providers::new(&[], &|_| None);
        let endpoint = providers.find("demo").unwrap();
        let translation = Translation { api, model: "demo".to_owned() };
        translation.ask(&endpoint, None, "s", "r1".to_owned(), body.to_string().as_bytes()).await
    }

    #[tokio::test]
    async fn an_answer_is_streamed_and_read_as_a_whole() {
        let body =
            json!({"model": "demo", "messages": [{"role": "user", "content": "/say one two"}]});
        let mut answer = ask(Api::Chat, &body).await.unwrap();
        let mut stream = Vec::new();
        let mut pieces = 0;
        while let Some(piece) = answer.chunk().await.unwrap() {
            stream.extend_from_slice(&piece);
            pieces += 1;
        }
        assert!(pieces > 2, "the answer came in one piece");
        assert!(stream.ends_with(b"data: [DONE]\n\n"));
        let whole = ask(Api::Chat, &body).await.unwrap().whole().await.unwrap();
        let whole: Value = serde_json::from_slice(&whole).unwrap();
        assert_eq!(whole["choices"][0]["message"]["content"], "one two");
    }

    #[tokio::test]
    async fn a_failure_of_the_model_and_a_lost_member_are_failures() {
        let body = json!({"model": "demo", "input": "/error overloaded"});
        let failed = ask(Api::Responses, &body).await.unwrap().whole().await.unwrap_err();
        assert_eq!(failed.refusal.kind, RefusalKind::Overloaded);
        let body = json!({"model": "demo", "input": "x", "prompt": {"id": "p"}});
        let refused = ask(Api::Responses, &body).await.unwrap_err();
        assert_eq!(refused.refusal.param.as_deref(), Some("prompt"));
    }
}

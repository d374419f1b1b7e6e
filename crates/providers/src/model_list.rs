//! The models that a provider offers.

use bytes::Bytes;
use http::{HeaderMap, Method};
use switchboard_chat::{FaultKind, ModelFault};
use switchboard_wire::{ListedModel, models, models_path};

use crate::answer::excerpt;
use crate::{PassedRequest, ProviderEndpoint};

/// Lists of gateways with hundreds of models have some hundred kilobytes.
const MOST_READ: usize = 4 << 20;

impl ProviderEndpoint {
    /// The models that the provider offers, with the named credential. Kinds without a list have their default model.
    pub async fn models(&self, credential: Option<&str>) -> Result<Vec<ListedModel>, ModelFault> {
        let kind = self.plan().kind;
        let Some(path) = models_path(kind) else {
            return Ok(self.default_model().map(ListedModel::named).into_iter().collect());
        };
        let request = PassedRequest {
            method: Method::GET,
            path,
            headers: &HeaderMap::new(),
            body: Bytes::new(),
            session: "",
            credential,
            app_credential: None,
            is_streamed: false,
        };
        let response = self.pass(request).await.map_err(|refused| refused.fault)?;
        let body = response.whole(MOST_READ).await?;
        models(kind, &body).ok_or_else(|| {
            let (name, text) = (&self.plan().name, excerpt(&body));
            let text = format!("the provider `{name}` sent no list of models but {text}");
            self.scrubbed(ModelFault::new(FaultKind::Unreadable, text))
        })
    }
}

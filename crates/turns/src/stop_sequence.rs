//! Sends the requests of ReACT turns with a stop sequence, as far as their backends take one.

use switchboard_chat::ModelFault;
use switchboard_providers::{ModelStream, ProviderEndpoint};
use switchboard_wire::{ModelRequest, REACT_STOP, refuses_stop};

/// The stop sequence for a ReACT request to this model.
pub(crate) fn stop_of(endpoint: &ProviderEndpoint, model: &str) -> Option<&'static str> {
    endpoint.takes_stop(model).then_some(REACT_STOP)
}

/// Sends a request; once more without its stop sequence if the backend refuses that. The refused request had no effect.
pub(crate) async fn ask(
    endpoint: &ProviderEndpoint,
    ask: ModelRequest<'_>,
) -> Result<ModelStream, ModelFault> {
    match endpoint.ask(&ask).await {
        Err(fault) if ask.stop.is_some() && refuses_stop(&fault) => {
            endpoint.note_no_stop(&ask.source.model);
            endpoint.ask(&ModelRequest { stop: None, ..ask }).await
        }
        asked => asked,
    }
}

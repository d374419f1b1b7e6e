//! The lists of models that providers offer.

use serde::Deserialize;
use serde_json::Value;
use switchboard_model::ProviderKind;

/// A model of a provider, as far as its list describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedModel {
    /// The name that a request uses.
    pub id: String,
    /// Its name for people, where it has another one.
    pub title: Option<String>,
    /// The largest number of tokens of a request with its response.
    pub context_window: Option<u64>,
    /// The largest number of tokens of a response.
    pub max_output_tokens: Option<u64>,
}

impl ListedModel {
    /// A model of which only the name is known.
    pub fn named(id: &str) -> Self {
        Self { id: id.to_owned(), title: None, context_window: None, max_output_tokens: None }
    }
}

/// The path of the list below the address of the provider; `None` for kinds without one.
pub fn models_path(kind: ProviderKind) -> Option<&'static str> {
    match kind {
        ProviderKind::OpenAi | ProviderKind::OpenAiChat => Some("/models"),
        ProviderKind::Anthropic => Some("/v1/models?limit=1000"),
        ProviderKind::Gemini => Some("/v1beta/models?pageSize=1000"),
        ProviderKind::ChatGpt | ProviderKind::CodeAssist | ProviderKind::Demo => None,
    }
}

/// The models of a response in the order of the provider; `None` when the response is not a list of models. Models of
/// Gemini that write no text are left out.
pub fn models(kind: ProviderKind, body: &[u8]) -> Option<Vec<ListedModel>> {
    if kind == ProviderKind::Gemini {
        let list: GeminiList = serde_json::from_slice(body).ok()?;
        let models = list.models.into_iter().filter(GeminiModel::writes_text);
        return Some(models.map(ListedModel::from).collect());
    }
    let list: DataList = serde_json::from_slice(body).ok()?;
    Some(list.data.into_iter().map(ListedModel::from).collect())
}

/// The list of OpenAI, of Anthropic and of those that follow one of them.
#[derive(Deserialize)]
struct DataList {
    data: Vec<DataModel>,
}

/// The limits have a name for each backend: Anthropic, vLLM, and gateways such as `OpenRouter`.
#[derive(Deserialize)]
struct DataModel {
    id: String,
    display_name: Option<Value>,
    max_input_tokens: Option<Value>,
    max_model_len: Option<Value>,
    context_length: Option<Value>,
    context_window: Option<Value>,
    max_tokens: Option<Value>,
    max_output_tokens: Option<Value>,
}

impl From<DataModel> for ListedModel {
    fn from(model: DataModel) -> Self {
        let windows = [
            &model.context_window,
            &model.context_length,
            &model.max_model_len,
            &model.max_input_tokens,
        ];
        let outputs = [&model.max_output_tokens, &model.max_tokens];
        let first = |values: &[&Option<Value>]| {
            values.iter().find_map(|value| value.as_ref().and_then(Value::as_u64))
        };
        let title = model.display_name.as_ref().and_then(Value::as_str).map(str::to_owned);
        Self {
            title: title.filter(|title| *title != model.id),
            context_window: first(&windows),
            max_output_tokens: first(&outputs),
            id: model.id,
        }
    }
}

#[derive(Deserialize)]
struct GeminiList {
    /// Absent when there are none.
    #[serde(default)]
    models: Vec<GeminiModel>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiModel {
    name: String,
    display_name: Option<String>,
    input_token_limit: Option<u64>,
    output_token_limit: Option<u64>,
    supported_generation_methods: Option<Vec<String>>,
}

impl GeminiModel {
    fn writes_text(&self) -> bool {
        let methods = self.supported_generation_methods.as_ref();
        methods.is_none_or(|methods| methods.iter().any(|method| method == "generateContent"))
    }
}

impl From<GeminiModel> for ListedModel {
    fn from(model: GeminiModel) -> Self {
        let id = model.name.strip_prefix("models/").unwrap_or(&model.name).to_owned();
        Self {
            title: model.display_name.filter(|title| *title != id),
            context_window: model.input_token_limit,
            max_output_tokens: model.output_token_limit,
            id,
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn read(kind: ProviderKind, body: &Value) -> Option<Vec<ListedModel>> {
        models(kind, body.to_string().as_bytes())
    }

    #[test]
    fn each_kind_is_read_in_its_own_shape() {
        let list = json!({"object": "list", "data": [
            {"id": "gpt-5.5", "object": "model", "created": 1, "owned_by": "openai"},
            {"id": "qwen", "max_model_len": 32_768, "display_name": "qwen"},
            {"id": "a/b", "context_length": 200_000, "max_tokens": null},
        ]});
        let window = |id, context_window| ListedModel { context_window, ..ListedModel::named(id) };
        let expected = [
            ListedModel::named("gpt-5.5"),
            window("qwen", Some(32_768)),
            window("a/b", Some(200_000)),
        ];
        assert_eq!(read(ProviderKind::OpenAiChat, &list).unwrap(), expected);
        let list = json!({"data": [{"id": "claude-opus-5-5", "type": "model", "display_name": "Claude Opus 5.5",
            "max_input_tokens": 1_000_000, "max_tokens": 128_000}], "has_more": false});
        let opus = ListedModel {
            id: "claude-opus-5-5".into(),
            title: Some("Claude Opus 5.5".into()),
            context_window: Some(1_000_000),
            max_output_tokens: Some(128_000),
        };
        assert_eq!(read(ProviderKind::Anthropic, &list).unwrap(), [opus]);
        let list = json!({"models": [
            {"name": "models/gemini-3.1-pro", "displayName": "Gemini 3.1 Pro", "inputTokenLimit": 1_048_576,
             "outputTokenLimit": 65_536, "supportedGenerationMethods": ["generateContent", "countTokens"]},
            {"name": "models/embedding-2", "supportedGenerationMethods": ["embedContent"]},
        ]});
        let gemini = ListedModel {
            id: "gemini-3.1-pro".into(),
            title: Some("Gemini 3.1 Pro".into()),
            context_window: Some(1_048_576),
            max_output_tokens: Some(65_536),
        };
        assert_eq!(read(ProviderKind::Gemini, &list).unwrap(), [gemini]);
        assert_eq!(read(ProviderKind::Gemini, &json!({})).unwrap(), []);
    }

    #[test]
    fn what_is_not_a_list_is_refused() {
        for body in [&b"<html>"[..], b"{}", b"{\"data\": {}}", b"{\"data\": [{\"name\": \"x\"}]}"] {
            assert_eq!(models(ProviderKind::OpenAi, body), None);
        }
    }
}

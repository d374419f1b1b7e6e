//! Tool declarations for each provider: OpenAI, Anthropic, Gemini, MCP clients, LangChain,
//! Semantic Kernel and ReACT prompts.
//!
//! [`render_tool`] renders one entry, [`Rendering`] a whole list, [`Delta`] the difference between two lists. All are
//! pure: equal tools give equal bytes, and appending a tool does not change the bytes before it.
//!
//! A rendering is valid whatever a server declares: what a provider does not accept is rewritten ([`Rewrite`] says what
//! and why), renamed arguments are mapped back ([`ArgumentMap`]), and a tool that cannot be declared is left out
//! without affecting the others ([`Quarantine`]).
//!
//! # Shapes
//!
//! | provider | entry |
//! |---|---|
//! | `mcp` | the definition as the server gave it, under its exposed name |
//! | `openai` | `{type: "function", name, description?, parameters, strict: false}` |
//! | `openai-chat` | `{type: "function", function: {name, description?, parameters}}` |
//! | `anthropic` | `{name, description?, input_schema}` |
//! | `gemini` | `{name, description, parametersJsonSchema}`, in one `[{functionDeclarations: [...]}]` |
//! | `gemini-parameters` | `{name, description, parameters?}`, likewise |
//! | `langchain` | `{name, description, args_schema}` |
//! | `semantic-kernel` | `{name, plugin_name, description, parameters: [...], is_prompt, is_asynchronous}` |
//! | `react` | `{name, description, arguments: [{name, type, required, description}]}`, for the prompt of a ReACT turn |
//!
//! **LangChain**: each entry has the arguments of `StructuredTool(name=, description=, args_schema=, coroutine=)`, as the
//! MCP adapters of LangChain pass them; `args_schema` is a JSON Schema that any chat model takes when the tool is bound.
//!
//! **Semantic Kernel**: each entry is a `KernelFunctionMetadata`. Its `parameters` are one `KernelParameterMetadata` for
//! each property: `{name, description, is_required, type, default_value?, schema_data}`, where `type` is the JSON type and
//! `schema_data` the schema of the property, complete in itself. The plugin is `mcp`; it is left out (`null`) where it
//! would make `plugin-function` longer than the 64 characters that models take.
//!
//! # Schemas
//!
//! Anthropic accepts JSON Schema 2020-12 except for variants at the root, so everything else is kept. OpenAI, Gemini
//! and the frameworks get a portable form: no references, no `allOf`, `const`, tuples, conditions or patterns of keys.
//! Gemini's older `parameters` gets the subset that it supports. Property keys that a provider rejects are replaced.

mod arguments;
mod convert;
mod delta;
mod provider;
mod react_entry;
mod rendering;
mod rewrite;
mod rules;
mod text;
mod tokens;
mod tool;

pub use arguments::ArgumentMap;
pub use delta::{ApplyDelta, Delta, Remains};
pub use provider::{Provider, UnknownRenderTarget};
pub use rendering::{NotShown, Rendering};
pub use rewrite::Rewrite;
pub use tokens::{Basis, Cost, Precision};
pub use tool::{NamedTool, Quarantine, RenderedTool, render_tool};

//! Tools as each provider declares them: the name that a view gives them and what their server says of them, in the shape
//! that OpenAI, Anthropic, Gemini, MCP clients, LangChain or Semantic Kernel take.
//!
//! [`render_tool`] makes one entry, [`Rendering`] a whole list, [`Delta`] the way from one list to the next. All are pure:
//! the same tools give the same bytes, and a tool at the end of the list changes no byte before it.
//!
//! Whatever a server says, a rendering is valid: what a provider does not take is rewritten ([`Rewrite`] says what and
//! why), arguments find their way back ([`ArgumentMap`]), and a tool that cannot be declared costs itself only
//! ([`Quarantine`]).
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
//! Anthropic takes JSON Schema 2020-12 but for variants at the root, so all else is kept. OpenAI, Gemini and the
//! frameworks get a portable form: no references, no `allOf`, `const`, tuples, conditions or patterns of keys. The older
//! `parameters` of Gemini gets the subset that it knows. Property keys that a provider refuses are shown under others.

mod arguments;
mod convert;
mod delta;
mod provider;
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

//! Prompt tools: tools of this process that a model answers.

/// How deep prompt tools may call each other, unless the configuration says otherwise: not at all.
pub const DEFAULT_PROMPT_DEPTH: u32 = 1;

/// The parts of an entry with `type: prompt` that other entries do not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptToolPlan {
    /// The template of the prompt. It reads the arguments of the tool as variables.
    pub template: String,
    /// The provider of the model; `None` means the default one.
    pub provider: Option<String>,
    /// The model; `None` means that of the provider.
    pub model: Option<String>,
    /// The system instructions of the model; `None` means those of the provider.
    pub instructions: Option<String>,
    /// Names or patterns of the tools that the model may call. Empty: it may call none.
    pub tools: Vec<String>,
    /// How many prompt tools may run inside each other, this one included.
    pub max_depth: u32,
}

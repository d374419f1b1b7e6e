//! Tools that run in this process.
//!
//! The next one is a type with a descriptor and a function, and one line in [`LocalTools::built_in`].

mod arithmetic;
mod current_time;

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use switchboard_model::{JsonText, ToolDescriptor, ToolResult};

/// A tool of this process. Its arguments have been checked against its schema when it runs.
pub trait LocalTool: Send + Sync + std::fmt::Debug {
    /// What callers see.
    fn descriptor(&self) -> ToolDescriptor;

    /// Does the work. Dropping the future cancels it.
    fn run(&self, arguments: Map<String, Value>) -> BoxFuture<'static, ToolResult>;
}

/// All local tools that the program has; which of them are registered is for the configuration to say.
#[derive(Debug, Clone)]
pub struct LocalTools(Vec<(ToolDescriptor, Arc<dyn LocalTool>)>);

impl LocalTools {
    /// Those that come with the program.
    pub fn built_in() -> Self {
        Self(Vec::new())
            .with(arithmetic::SumNumbers)
            .with(arithmetic::MultiplyNumbers)
            .with(current_time::CurrentTime)
    }

    /// The same and one more.
    #[must_use]
    pub fn with(mut self, tool: impl LocalTool + 'static) -> Self {
        self.0.push((tool.descriptor(), Arc::new(tool)));
        self
    }

    /// What each of them says about itself.
    pub fn descriptors(&self) -> Vec<ToolDescriptor> {
        self.0.iter().map(|(descriptor, _)| descriptor.clone()).collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<dyn LocalTool>> {
        self.0.iter().find(|(descriptor, _)| descriptor.name == name).map(|(_, tool)| tool)
    }
}

fn described(name: &str, description: &str, input_schema: &Value) -> ToolDescriptor {
    ToolDescriptor {
        description: Some(description.into()),
        input_schema: JsonText::from(input_schema),
        // What is built in computes and looks; nothing here changes anything.
        annotations: Some(JsonText::from(&serde_json::json!({"readOnlyHint": true}))),
        ..ToolDescriptor::named(name)
    }
}

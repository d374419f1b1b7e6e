//! Tools that run in this process.
//!
//! To add one, implement [`LocalTool`] for a type and add a line to [`LocalTools::built_in`].

mod arithmetic;
mod current_time;

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use switchboard_model::{JsonText, ToolDescriptor, ToolResult};

/// A tool of this process. Its arguments are validated against its schema before it runs.
pub trait LocalTool: Send + Sync + std::fmt::Debug {
    /// Its name, description and schemas, as callers see them.
    fn descriptor(&self) -> ToolDescriptor;

    /// Runs the tool. Dropping the future cancels it.
    fn run(&self, arguments: Map<String, Value>) -> BoxFuture<'static, ToolResult>;
}

/// All local tools of the program. The configuration decides which of them are registered.
#[derive(Debug, Clone)]
pub struct LocalTools(Vec<(ToolDescriptor, Arc<dyn LocalTool>)>);

impl LocalTools {
    /// The tools that come with the program.
    pub fn built_in() -> Self {
        Self(Vec::new())
            .with(arithmetic::SumNumbers)
            .with(arithmetic::MultiplyNumbers)
            .with(current_time::CurrentTime)
    }

    /// Adds a tool.
    #[must_use]
    pub fn with(mut self, tool: impl LocalTool + 'static) -> Self {
        self.0.push((tool.descriptor(), Arc::new(tool)));
        self
    }

    /// The descriptors of all local tools.
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
        // All built-in tools only compute or read.
        annotations: Some(JsonText::from(&serde_json::json!({"readOnlyHint": true}))),
        ..ToolDescriptor::named(name)
    }
}

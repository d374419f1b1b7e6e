//! What is generated and committed, and what is checked about the workspace itself.

mod dependencies;
mod generated;
mod tidy;

pub use dependencies::{
    Declared, Dependency, dependencies, unused_dependencies, unwanted_dependencies,
};
pub use generated::{GeneratedFile, generated_files, workspace_root};
pub use tidy::{Package, broken_arrows, broken_habits, packages, tracked_files};

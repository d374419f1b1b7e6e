//! Generated files, and checks of the workspace itself.

mod coverage;
mod dependencies;
mod generated;
mod import_circles;
mod tidy;
mod type_names;

pub use coverage::{LineCounts, REQUIRED_COVERAGE, coverage_by_crate, coverage_table};
pub use dependencies::{
    Declared, Dependency, dependencies, unused_dependencies, unwanted_dependencies,
};
pub use generated::{GeneratedFile, generated_files, workspace_root};
pub use import_circles::{ALLOWED_CIRCLES, AllowedCircle, import_circles};
pub use tidy::{PURE_CRATES, Package, broken_arrows, broken_habits, packages, tracked_files};
pub use type_names::{SHARED_TYPE_NAMES, SourceFile, production_sources, repeated_type_names};

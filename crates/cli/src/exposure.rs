//! Exposure settings of the command line and the environment.

use clap::Args;
use switchboard_config::{ExposureSource, parse_flag, resolve_exposure};
use switchboard_model::{Exposure, Plan};
use switchboard_runtime::ExposureRule;

use crate::failure::Failure;

/// Read here and not by clap, because flags and variables are separate sources with different precedence.
const TOOL_SETS: &str = "TOOL_SETS";
const FMP_TOOL_SETS: &str = "FMP_TOOL_SETS";
const DYNAMIC_TOOL_DISCOVERY: &str = "DYNAMIC_TOOL_DISCOVERY";

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ExposureArguments {
    #[arg(
        long,
        visible_alias = "toolsets",
        value_name = "SETS",
        value_delimiter = ',',
        help = "Show clients only these toolsets, such as `search,quotes` [env: TOOL_SETS]"
    )]
    tool_sets: Option<Vec<String>>,
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = parse_flag,
        help = "Show clients meta-tools that enable toolsets on demand; with --tool-sets, those are enabled \
                at first [env: DYNAMIC_TOOL_DISCOVERY]"
    )]
    dynamic_tool_discovery: Option<bool>,
}

impl ExposureArguments {
    /// Whether the command line has an exposure setting.
    pub(crate) fn is_given(&self) -> bool {
        self.tool_sets.is_some() || self.dynamic_tool_discovery.is_some()
    }

    /// The rule that is applied to every configuration that is loaded during the run.
    pub(crate) fn rule(&self) -> ExposureRule {
        let arguments = self.clone();
        ExposureRule::new(move |plan| arguments.resolve(plan).map_err(|failure| failure.text()))
    }

    /// The effective exposure for this plan.
    pub(crate) fn resolve(&self, plan: &Plan) -> Result<Exposure, Failure> {
        let variable =
            |name| std::env::var_os(name).map(|text| text.to_string_lossy().into_owned());
        let env = ExposureSource::from_environment(
            variable(DYNAMIC_TOOL_DISCOVERY).as_deref(),
            variable(TOOL_SETS).as_deref(),
            variable(FMP_TOOL_SETS).as_deref(),
        )
        .map_err(Failure::start)?;
        let cli = ExposureSource {
            dynamic: self.dynamic_tool_discovery,
            tool_sets: self.tool_sets.clone(),
            is_alias: false,
        };
        resolve_exposure(&cli, &env, plan).map_err(Failure::start)
    }
}

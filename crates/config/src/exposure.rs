//! Resolves the effective exposure. Precedence: command line, environment, file.

use switchboard_model::{Exposure, ExposureMode, Plan};

use crate::schema::nearest;

/// The exposure settings of the command line or of the environment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExposureSource {
    /// `--dynamic-tool-discovery`, `DYNAMIC_TOOL_DISCOVERY`.
    pub dynamic: Option<bool>,
    /// `--tool-sets`, `TOOL_SETS`. Empty names are ignored; an empty list counts as not given.
    pub tool_sets: Option<Vec<String>>,
    /// Whether the toolsets came from `FMP_TOOL_SETS`, an alias for compatibility.
    pub is_alias: bool,
}

impl ExposureSource {
    /// Parses the environment variables `DYNAMIC_TOOL_DISCOVERY`, `TOOL_SETS` and its alias `FMP_TOOL_SETS`, which is
    /// used if `TOOL_SETS` is unset or empty. The error names the variable.
    pub fn from_environment(
        dynamic: Option<&str>,
        tool_sets: Option<&str>,
        alias: Option<&str>,
    ) -> Result<Self, String> {
        let is_given = |text: &&str| !text.trim().is_empty();
        let is_alias = tool_sets.as_ref().is_none_or(|value| !is_given(value))
            && alias.as_ref().is_some_and(is_given);
        let tool_sets = if is_alias { alias } else { tool_sets };
        let dynamic = dynamic.filter(|text| !text.trim().is_empty()).map(parse_flag).transpose();
        Ok(Self {
            dynamic: dynamic.map_err(|why| format!("DYNAMIC_TOOL_DISCOVERY: {why}"))?,
            tool_sets: tool_sets.map(|text| text.split(',').map(str::to_owned).collect()),
            is_alias,
        })
    }
}

/// Parses a boolean switch.
pub fn parse_flag(text: &str) -> Result<bool, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err(format!(
            "{text:?} is neither true nor false; write true, false, 1, 0, yes, no, on or off"
        )),
    }
}

/// Resolves the exposure. The first source with a setting decides; within one source, dynamic wins over toolsets. The
/// error names the toolset, the source that asked for it, and the existing toolsets.
pub fn resolve_exposure(
    cli: &ExposureSource,
    env: &ExposureSource,
    plan: &Plan,
) -> Result<Exposure, String> {
    let sources = [
        ExposureSettings {
            dynamic: cli.dynamic,
            tool_sets: names(cli.tool_sets.as_ref()),
            words: &COMMAND_LINE,
        },
        ExposureSettings {
            dynamic: env.dynamic,
            tool_sets: names(env.tool_sets.as_ref()),
            words: if env.is_alias { &ENVIRONMENT_ALIAS } else { &ENVIRONMENT },
        },
        of_file(plan),
    ];
    let mut switched_off = None;
    for ExposureSettings { dynamic, tool_sets, words } in sources {
        match dynamic {
            Some(true) if switched_off.is_none() => {
                check_sets(&tool_sets, words.tool_sets, plan)?;
                check_count(&tool_sets, words.tool_sets, plan)?;
                let shown = if tool_sets.is_empty() {
                    "meta-tools".to_owned()
                } else {
                    format!("meta-tools, and {} at first", tool_sets.join(", "))
                };
                let reason = format!("dynamic ({shown}) because {} says so", words.dynamic);
                return Ok(Exposure { mode: ExposureMode::Dynamic, tool_sets, reason });
            }
            Some(false) => switched_off = switched_off.or(Some(words.dynamic)),
            Some(true) | None => {}
        }
        if !tool_sets.is_empty() {
            check_sets(&tool_sets, words.tool_sets, plan)?;
            let shown = tool_sets.join(", ");
            let reason = format!("static ({shown}) because {} says so", words.tool_sets);
            return Ok(Exposure { mode: ExposureMode::Static, tool_sets, reason });
        }
    }
    let why = match (plan.gateway.exposure, switched_off) {
        (Some(ExposureMode::Legacy), _) => format!("{} says so", FILE.dynamic),
        (_, Some(words)) => format!("{words} is off and no toolset is named"),
        (_, None) => "nothing else is configured".into(),
    };
    let reason = format!("legacy (all tools) because {why}");
    Ok(Exposure { mode: ExposureMode::Legacy, tool_sets: Vec::new(), reason })
}

/// One source, with the names of its two settings.
struct ExposureSettings {
    dynamic: Option<bool>,
    tool_sets: Vec<String>,
    words: &'static ExposureSettingNames,
}

struct ExposureSettingNames {
    dynamic: &'static str,
    tool_sets: &'static str,
}

const COMMAND_LINE: ExposureSettingNames =
    ExposureSettingNames { dynamic: "--dynamic-tool-discovery", tool_sets: "--tool-sets" };
const ENVIRONMENT: ExposureSettingNames =
    ExposureSettingNames { dynamic: "DYNAMIC_TOOL_DISCOVERY", tool_sets: "TOOL_SETS" };
const ENVIRONMENT_ALIAS: ExposureSettingNames =
    ExposureSettingNames { dynamic: "DYNAMIC_TOOL_DISCOVERY", tool_sets: "FMP_TOOL_SETS" };
const FILE: ExposureSettingNames = ExposureSettingNames {
    dynamic: "gateway.exposure in the configuration",
    tool_sets: "gateway.tool_sets in the configuration",
};

fn of_file(plan: &Plan) -> ExposureSettings {
    let written = plan.gateway.tool_sets.as_ref();
    let (dynamic, tool_sets) = match plan.gateway.exposure {
        Some(ExposureMode::Dynamic) => (Some(true), names(written)),
        Some(ExposureMode::Static) | None => (None, names(written)),
        // An explicit `legacy` shows all tools and ignores `tool_sets`.
        Some(ExposureMode::Legacy) => (None, Vec::new()),
    };
    ExposureSettings { dynamic, tool_sets, words: &FILE }
}

/// The names that are not empty, without duplicates.
fn names(given: Option<&Vec<String>>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in given.into_iter().flatten().map(|name| name.trim()) {
        if !name.is_empty() && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Every toolset must exist and be allowed; a silent fallback would show tools that were not requested.
fn check_sets(tool_sets: &[String], source: &str, plan: &Plan) -> Result<(), String> {
    let known = || {
        let all = plan.toolsets.iter().map(|set| set.name.as_str());
        all.filter(|name| plan.gateway.admits(name))
    };
    let complaint = |name: &String| {
        if known().any(|known| known == name) {
            return None;
        }
        let is_hidden = plan.toolsets.iter().any(|set| set.name == *name);
        if is_hidden {
            let is_denied = plan.gateway.deny_toolsets.contains(name);
            let why = if is_denied {
                "`gateway.deny_toolsets` names it"
            } else {
                "it is not in `gateway.allow_toolsets`"
            };
            return Some(format!("{source}: the toolset `{name}` is not permitted: {why}"));
        }
        // A source may name the server of this toolset later. Until then the set is empty and shows nothing.
        if !plan.discovery.sources.is_empty() {
            return None;
        }
        let near = nearest(name, known()).map(|near| format!("; did you mean `{near}`?"));
        Some(format!("{source}: there is no toolset `{name}`{}", near.unwrap_or_default()))
    };
    let complaints: Vec<_> = tool_sets.iter().filter_map(complaint).collect();
    if complaints.is_empty() {
        return Ok(());
    }
    let known: Vec<_> = known().map(|name| format!("`{name}`")).collect();
    let known = if known.is_empty() {
        "there is none to choose from".to_owned()
    } else {
        format!("the toolsets are {}", known.join(", "))
    };
    Err(format!("{}\n{known}", complaints.join("\n")))
}

/// Initially enabled toolsets count towards `max_active_toolsets`.
fn check_count(tool_sets: &[String], source: &str, plan: &Plan) -> Result<(), String> {
    let Some(most) = plan.gateway.max_active_toolsets else { return Ok(()) };
    if tool_sets.len() <= usize::try_from(most).unwrap_or(usize::MAX) {
        return Ok(());
    }
    let count = tool_sets.len();
    Err(format!("{source} names {count} toolsets, but `gateway.max_active_toolsets` is {most}"))
}

#[cfg(test)]
#[path = "exposure_tests.rs"]
mod tests;

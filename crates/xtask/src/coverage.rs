//! Line coverage of the pure crates, from the report of cargo-tarpaulin.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde_json::Value;

/// The lowest accepted line coverage of a pure crate, in percent.
pub const REQUIRED_COVERAGE: u64 = 90;

/// The counted lines of one crate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineCounts {
    pub covered: u64,
    pub coverable: u64,
}

impl LineCounts {
    /// Whether the crate has the required coverage. A crate without coverable lines has it.
    pub fn suffices(self) -> bool {
        self.covered * 100 >= self.coverable * REQUIRED_COVERAGE
    }

    /// The coverage in tenths of a percent, rounded down.
    fn permille(self) -> u64 {
        (self.covered * 1000).checked_div(self.coverable).unwrap_or(1000)
    }
}

/// Sums up the files of a tarpaulin report (`--out Json`) for each of the named crates.
pub fn coverage_by_crate(
    report: &Value,
    crates: &[&str],
) -> anyhow::Result<BTreeMap<String, LineCounts>> {
    let mut counts: BTreeMap<String, LineCounts> =
        crates.iter().map(|name| ((*name).to_owned(), LineCounts::default())).collect();
    let files = report["files"].as_array().context("the report has no `files`")?;
    for file in files {
        let parts: Vec<&str> =
            file["path"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let Some(place) = parts.windows(3).find(|part| part[0] == "crates" && part[2] == "src")
        else {
            continue;
        };
        let Some(sum) = counts.get_mut(place[1]) else { continue };
        let count = |member: &str| {
            file[member].as_u64().with_context(|| format!("a file has no `{member}`"))
        };
        sum.covered += count("covered")?;
        sum.coverable += count("coverable")?;
    }
    for (name, sum) in &counts {
        ensure!(sum.coverable > 0, "the report has no line of `{name}`: was the crate tested?");
    }
    Ok(counts)
}

/// A table of all crates, and the names of those below [`REQUIRED_COVERAGE`].
pub fn coverage_table(counts: &BTreeMap<String, LineCounts>) -> (String, Vec<&str>) {
    let lines = counts.iter().map(|(name, sum)| {
        let permille = sum.permille();
        let (whole, tenth) = (permille / 10, permille % 10);
        format!("{name:<10} {whole:>3}.{tenth} %  {} of {} lines\n", sum.covered, sum.coverable)
    });
    let low = counts.iter().filter(|(_, sum)| !sum.suffices()).map(|(name, _)| name.as_str());
    (lines.collect(), low.collect())
}

//! Validates the `store` section.

use serde_json::Value as Json;
use switchboard_model::{AfterLoss, OnStoreLoss, Secret, SlotPlan, StorePlan};

use super::{At, Planner};
use crate::problem::ConfigProblem;
use crate::raw_store::{RawAfterLoss, RawOnStoreLoss, RawSlots, RawStore};

const HELP: &str = "write postgres://USER:PASSWORD@HOST:5432/DATABASE; without `url`, the data directory has the database";

impl Planner<'_> {
    pub(super) fn store(&mut self, config: &At<'_>, sound: &Json) -> StorePlan {
        let Some(at) = config.get("store") else { return StorePlan::default() };
        let raw: RawStore = serde_json::from_value(sound["store"].clone()).unwrap_or_default();
        let default = StorePlan::default();
        StorePlan {
            url: at.get("url").zip(raw.url).and_then(|(at, url)| self.store_url(&at, url)),
            listen_url: at
                .get("listen_url")
                .zip(raw.listen_url)
                .and_then(|(at, url)| self.store_url(&at, url)),
            max_connections: raw.max_connections.unwrap_or(default.max_connections),
            slots: raw.slots.as_ref().map(slots).unwrap_or_default(),
        }
    }

    /// The value is not shown: it may contain a password.
    fn store_url(&mut self, at: &At<'_>, url: String) -> Option<Secret> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Some(Secret::new(url));
        }
        let problem = ConfigProblem::error(format!(
            "{} is not the address of a PostgreSQL database",
            at.path
        ));
        self.push(&at.node.origin, problem.about(&at.path).help(HELP));
        None
    }
}

fn slots(raw: &RawSlots) -> SlotPlan {
    SlotPlan {
        after_loss: raw.after_loss.map(|after| match after {
            RawAfterLoss::Lease => AfterLoss::Lease,
            RawAfterLoss::Timeout => AfterLoss::Timeout,
        }),
        on_store_loss: raw.on_store_loss.map_or_else(OnStoreLoss::default, |on| match on {
            RawOnStoreLoss::Stop => OnStoreLoss::Stop,
            RawOnStoreLoss::Share => OnStoreLoss::Share,
        }),
    }
}

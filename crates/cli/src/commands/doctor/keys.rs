//! Keys whose access names what is not there.

use jiff::Timestamp;
use switchboard_http::present_keys::key_view;

use super::Finding;
use crate::args::Globals;
use crate::commands::key_sets::known_toolsets;
use crate::embedded::open_store;

/// A warning for each active key that names a toolset which does not exist, or whose access cannot be read.
pub(super) async fn about_keys(globals: &Globals) -> Vec<Finding> {
    let Ok(store) = open_store(globals).await else { return Vec::new() };
    let keys = store.keys().await.unwrap_or_default();
    store.close().await;
    let (known, now) = (known_toolsets(globals), Timestamp::now());
    let views = keys.iter().map(|key| key_view(key, now, known.as_deref()));
    let active = views.filter(|key| key.state == "active");
    let warnings = active.flat_map(|key| {
        let subject = format!("key {}", key.name);
        key.warnings.into_iter().map(move |says| (subject.clone(), says))
    });
    warnings.map(|(subject, says)| Finding::warning(subject, says)).collect()
}

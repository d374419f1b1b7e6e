//! `ToolingManifest.json` as a source.

use std::path::PathBuf;

use futures::FutureExt;
use futures::future::BoxFuture;
use switchboard_agent365::{
    Environment, ToolingError, attach_environment_tokens, find_manifest, read_manifest,
};

use crate::found_entries::fetched;
use crate::source::{FetchedServers, ServerSource, SourceError};

/// A manifest at one of some places; the first file that exists is taken.
#[derive(Debug)]
pub(crate) struct ManifestSource {
    pub(crate) places: Vec<PathBuf>,
    pub(crate) environment: Environment,
}

impl ServerSource for ManifestSource {
    fn fetch(&self) -> BoxFuture<'_, Result<FetchedServers, SourceError>> {
        self.read().boxed()
    }

    fn place(&self) -> String {
        let first = self.places.first().map(PathBuf::as_path);
        let shown = find_manifest(&self.places).or(first);
        shown.map(|place| place.display().to_string()).unwrap_or_default()
    }
}

impl ManifestSource {
    async fn read(&self) -> Result<FetchedServers, SourceError> {
        let Some(path) = find_manifest(&self.places) else {
            return Err(SourceError::NoManifest { checked: self.places.clone() });
        };
        let (file, environment) = (path.to_owned(), self.environment.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let mut found = read_manifest(&file, &environment)?;
            attach_environment_tokens(&mut found, &environment);
            Ok(found)
        });
        let found = reading
            .await
            .unwrap_or_else(|error| Err(ToolingError::Manifest { reason: error.to_string() }));
        let found = fetched(found.map_err(SourceError::Tooling)?)?;
        Ok(FetchedServers { taken_from: Some(path.display().to_string()), ..found })
    }
}

//! Finds and reads the configuration.

use std::path::{Path, PathBuf};

use switchboard_config::{ConfigInput, KeyringReader, Loaded, Problems, SourceFile, load};

use crate::os_keyring;

/// The environment variable that names the configuration file when no flag does.
pub const CONFIG_VARIABLE: &str = "SWITCHBOARD_CONFIG";
const FILE_NAME: &str = "switchboard.yaml";

/// An optional configuration file, and the environment that overrides it.
#[derive(Debug, Clone)]
pub struct ConfigSource {
    path: Option<PathBuf>,
    environment: Vec<(String, String)>,
}

/// A configuration that was read and validated.
pub type LoadedConfig = Loaded;

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(
        "no configuration found: give one with --config FILE or {CONFIG_VARIABLE}, or put {FILE_NAME} into this \
         directory or into {}",
        .user_directory.display()
    )]
    NotFound { user_directory: PathBuf },
    #[error("cannot read the configuration {}: {error}", .path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("{0}")]
    Invalid(Problems),
}

impl ConfigSource {
    /// Looks for the file in this order: the flag, the environment variable, the current directory, the user's
    /// configuration directory. Without a file, the configuration may still come from the environment alone.
    pub fn find(flag: Option<PathBuf>, environment: Vec<(String, String)>) -> Self {
        let variable = |name: &str| {
            environment.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, v)| v)
        };
        let path = flag.or_else(|| variable(CONFIG_VARIABLE).map(PathBuf::from)).or_else(|| {
            let candidates = [PathBuf::from(FILE_NAME), user_directory(&variable).join(FILE_NAME)];
            candidates.into_iter().find(|candidate| candidate.is_file())
        });
        Self { path, environment }
    }

    /// The configuration file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The environment that overrides the file.
    pub(crate) fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// Reads and validates the configuration.
    pub fn load(&self) -> Result<LoadedConfig, ConfigError> {
        match &self.path {
            None if !self.has_overrides() => Err(self.not_found()),
            None => self.load_from(None),
            Some(_) => self.load_text(&self.read_text()?),
        }
    }

    /// The text of the file.
    pub(crate) fn read_text(&self) -> Result<String, ConfigError> {
        let path = self.path.as_ref().ok_or_else(|| self.not_found())?;
        std::fs::read_to_string(path)
            .map_err(|error| ConfigError::Unreadable { path: path.clone(), error })
    }

    /// Validates the configuration as if the file had this text.
    pub(crate) fn load_text(&self, text: &str) -> Result<LoadedConfig, ConfigError> {
        self.load_from(Some(text))
    }

    fn load_from(&self, text: Option<&str>) -> Result<LoadedConfig, ConfigError> {
        let name = self.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let directory = self.path.as_deref().and_then(Path::parent).unwrap_or(Path::new("."));
        let file = text.map(|text| SourceFile { name: &name, directory, text });
        let read_secret = |path: &Path| std::fs::read_to_string(path);
        let read_keyring: Option<KeyringReader<'_>> = Some(&os_keyring::read);
        load(&ConfigInput { file, env: &self.environment, read_secret: &read_secret, read_keyring })
            .map_err(ConfigError::Invalid)
    }

    fn not_found(&self) -> ConfigError {
        let variable = |name: &str| {
            self.environment.iter().find(|(key, _)| key == name).map(|(_, value)| value)
        };
        ConfigError::NotFound { user_directory: user_directory(&variable) }
    }

    fn has_overrides(&self) -> bool {
        let is_override =
            |key: &str| key.starts_with("SWITCHBOARD__") || key.starts_with("APP_MYAI__");
        self.environment.iter().any(|(key, _)| is_override(key))
    }
}

fn user_directory<'a>(variable: &impl Fn(&str) -> Option<&'a String>) -> PathBuf {
    let base = variable("XDG_CONFIG_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let home = || PathBuf::from(variable("HOME").map_or("", String::as_str)).join(".config");
    base.unwrap_or_else(home).join("switchboard")
}

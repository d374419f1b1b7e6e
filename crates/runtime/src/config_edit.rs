//! Edits of the configuration file: proposed, checked, then written.

use std::path::PathBuf;

use switchboard_config::{
    ConfigEdit, ConfigText, EditRefusal, EntryList, Loaded, Problems, overriding_variable,
    unified_diff,
};
use switchboard_registry::RedirectedValue;

use crate::config_file::{PreparedFile, ReplaceError};
use crate::config_source::{ConfigError, ConfigSource};
use crate::declared_arguments::Contradiction;
use crate::start_error::StartError;

/// Why the configuration was not changed. Nothing is written and nothing is in force then.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error(
        "there is no configuration file to change: the configuration comes from the environment alone"
    )]
    NoFile,
    #[error("{0}")]
    Unreadable(ConfigError),
    #[error("{0}")]
    Refused(EditRefusal),
    /// The edited file would not be a valid configuration.
    #[error("{0}")]
    Invalid(Problems),
    #[error("the environment variable {variable} sets this part of `{}`, and an edit of the file would not take effect or would shift what the variable sets", .list.path())]
    Overridden { variable: String, list: EntryList },
    #[error("{} has changed since it was read", .what)]
    Stale { what: String },
    #[error("{0}")]
    Unwritten(ReplaceError),
    /// The board refuses the edited configuration, such as for a server that cannot be reached.
    #[error("the changed configuration cannot be applied, and nothing was written:\n{0}")]
    NotApplied(StartError),
    /// Declared arguments that a server of their tool would refuse.
    #[error("{}", .0.iter().map(|it| it.message.as_str()).collect::<Vec<_>>().join("; "))]
    Contradicts(Vec<Contradiction>),
    /// Values of the file that would go to tools or hosts that they were not written for.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Redirects(Vec<RedirectedValue>),
    #[error("another change of the configuration is still being applied")]
    Busy,
}

impl EditError {
    /// The way out.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::NoFile => Some(
                "write a file that begins with `switchboard:`, and name it with --config FILE or SWITCHBOARD_CONFIG",
            ),
            Self::Overridden { .. } => Some("change the variable, or remove it and edit the file"),
            Self::Stale { .. } => Some("read it again, then repeat the change"),
            Self::Unwritten(error) => Some(error.hint()),
            Self::Busy => Some("try again in a moment"),
            Self::Contradicts(_) => Some("change the value, or the schema of the server"),
            Self::Redirects(_) => Some(
                "the file's own values do not follow such a change: give other values for these arguments, leave them out, or make the change in the configuration file",
            ),
            Self::Unreadable(_) | Self::Refused(_) | Self::Invalid(_) | Self::NotApplied(_) => None,
        }
    }

    /// The problems of the file, if that is the reason.
    pub fn problems(&self) -> Option<&Problems> {
        match self {
            Self::Refused(EditRefusal::Problems(problems)) | Self::Invalid(problems) => {
                Some(problems)
            }
            _ => None,
        }
    }
}

/// The configuration file after an edit: it was checked that it loads, and it is not written yet. May hold secrets.
#[expect(missing_debug_implementations, reason = "the texts may hold secrets")]
pub struct ProposedEdit {
    path: PathBuf,
    before: String,
    after: String,
    loaded: Loaded,
}

impl ConfigSource {
    /// Applies the edits to the text of the file and checks the result as a whole.
    pub fn propose(&self, edits: &[ConfigEdit]) -> Result<ProposedEdit, EditError> {
        self.path().ok_or(EditError::NoFile)?;
        self.propose_from(self.read_text().map_err(EditError::Unreadable)?, edits)
    }

    pub(crate) fn propose_from(
        &self,
        before: String,
        edits: &[ConfigEdit],
    ) -> Result<ProposedEdit, EditError> {
        let path = self.path().ok_or(EditError::NoFile)?.to_owned();
        let name = path.display().to_string();
        let text = ConfigText::new(&name, &before).map_err(EditError::Invalid)?;
        for edit in edits {
            self.check_overrides(&text, edit)?;
        }
        let after = text.edit(edits).map_err(EditError::Refused)?;
        let loaded = self.load_text(&after).map_err(|error| match error {
            ConfigError::Invalid(problems) => EditError::Invalid(problems),
            other => EditError::Unreadable(other),
        })?;
        Ok(ProposedEdit { path, before, after, loaded })
    }

    fn check_overrides(&self, text: &ConfigText<'_>, edit: &ConfigEdit) -> Result<(), EditError> {
        let (list, name, moves_others) = match edit {
            ConfigEdit::Put { list, name, .. } | ConfigEdit::Patch { list, name, .. } => {
                (*list, name, false)
            }
            ConfigEdit::Remove { list, name } => (*list, name, true),
            ConfigEdit::Set { .. } => return Ok(()),
        };
        let index = text.index(list, name);
        let variable = overriding_variable(self.environment(), list, index, moves_others);
        let variable = variable.map(str::to_owned);
        variable.map_or(Ok(()), |variable| Err(EditError::Overridden { variable, list }))
    }
}

impl ProposedEdit {
    /// The text of the file before the edit.
    pub(crate) fn before(&self) -> &str {
        &self.before
    }

    /// The text of the file after the edit.
    pub(crate) fn after(&self) -> &str {
        &self.after
    }

    /// The edited configuration.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    pub(crate) fn into_loaded(self) -> Loaded {
        self.loaded
    }

    /// The file that would be written.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Whether the edit changes the file.
    pub fn is_change(&self) -> bool {
        self.before != self.after
    }

    /// The change as a unified diff, without secrets.
    pub fn diff(&self) -> String {
        unified_diff(&self.path.display().to_string(), &self.before, &self.after)
    }

    /// Writes the edited text beside the file.
    pub(crate) fn prepare(&self) -> Result<Option<PreparedFile>, EditError> {
        if !self.is_change() {
            return Ok(None);
        }
        PreparedFile::new(&self.path, &self.after).map(Some).map_err(EditError::Unwritten)
    }

    /// Replaces the file, unless it has changed since it was read. A running board that watches it applies the change.
    pub fn write(&self) -> Result<(), EditError> {
        match self.prepare()? {
            Some(prepared) => prepared.commit(&self.before).map_err(EditError::Unwritten),
            None => Ok(()),
        }
    }
}

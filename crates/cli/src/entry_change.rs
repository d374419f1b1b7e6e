//! Changes an entry of the configuration: in the file, or at a running instance.

use std::process::ExitCode;

use serde_json::{Map, Value, json};
use switchboard_api::{ServerDetail, ToolDeclarationView, ToolsetDetail};
use switchboard_config::{ConfigEdit, ConfigProblem, ConfigText, EntryList, released_arguments};
use switchboard_http::entry_values::{declaration_of, fields_of};

use crate::args::Globals;
use crate::embedded::config_source;
use crate::entry_args::EntryDeleteArguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::remote::Remote;

type EntryFields = Map<String, Value>;

/// Removes the entry that the command line names.
pub(crate) async fn delete(
    globals: &Globals,
    list: EntryList,
    wanted: &EntryDeleteArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    EntryChange { list, name: &wanted.name, dry_run: wanted.dry_run }.delete(globals, output).await
}

/// An entry, and whether its change is only shown.
pub(crate) struct EntryChange<'a> {
    pub(crate) list: EntryList,
    pub(crate) name: &'a str,
    pub(crate) dry_run: bool,
}

impl EntryChange<'_> {
    /// Sets the fields that `patch` returns for the present entry; `null` removes a field.
    pub(crate) async fn set(
        &self,
        globals: &Globals,
        output: Output,
        patch: impl Fn(Option<&EntryFields>) -> Result<EntryFields, Failure>,
    ) -> Result<ExitCode, Failure> {
        if self.name.trim().is_empty() {
            return Err(Failure::usage("the name is empty"));
        }
        let Some(url) = self.instance(globals)? else {
            let fields = patch(self.written(globals)?.as_ref())?;
            let edit = ConfigEdit::Patch { list: self.list, name: self.name.into(), fields };
            return self.change_file(globals, edit, output);
        };
        let remote = Remote::new(url)?;
        let (present, etag) = self.fetch(&remote).await?;
        let mut fields = present.clone().unwrap_or_default();
        for (key, value) in patch(present.as_ref())? {
            if value.is_null() {
                fields.shift_remove(&key);
            } else {
                fields.insert(key, value);
            }
        }
        let answer: Value = match self.list {
            EntryList::Tools => {
                let declared = declaration_of(&fields);
                remote.put_if(&self.path(), etag.as_deref(), &declared).await?
            }
            EntryList::Servers | EntryList::Toolsets => {
                remote.put_if(&self.path(), etag.as_deref(), &fields).await?
            }
        };
        if output.is_json() {
            output.json(&answer);
        } else {
            let (name, address) = (self.name, remote.address());
            let is_same = etag.is_some() && answer["etag"].as_str() == etag.as_deref();
            output.data(&if is_same {
                format!("{name}: nothing to change at {address}")
            } else {
                format!("{name}: in force at {address}")
            });
            if self.list == EntryList::Tools && answer["server"].is_null() {
                let why = answer["absent"]["message"].as_str();
                let why = why.unwrap_or("no server offers it at the moment");
                output.warn(&format!("the tool cannot be used: {why}"));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Removes the entry, and says what callers of a tool may give then.
    async fn delete(&self, globals: &Globals, output: Output) -> Result<ExitCode, Failure> {
        let Some(url) = self.instance(globals)? else {
            self.note_released(self.written(globals)?.as_ref(), output);
            let edit = ConfigEdit::Remove { list: self.list, name: self.name.into() };
            return self.change_file(globals, edit, output);
        };
        let remote = Remote::new(url)?;
        let (present, etag) = match self.list {
            EntryList::Tools => self.fetch(&remote).await?,
            EntryList::Servers | EntryList::Toolsets => (None, None),
        };
        remote.delete_if(&self.path(), etag.as_deref()).await?;
        self.note_released(present.as_ref(), output);
        if output.is_json() {
            output.json(&json!({"name": self.name, "deleted": true}));
        } else {
            output.data(&format!("{}: removed at {}", self.name, remote.address()));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// A fixed argument is often a safety switch, and the tool stays if its server's mode is `dynamic`.
    fn note_released(&self, present: Option<&EntryFields>, output: Output) {
        let Some(present) = present.filter(|_| self.list == EntryList::Tools) else { return };
        for name in released_arguments(present, &EntryFields::new()) {
            output.note(&format!(
                "the argument '{name}' was fixed or hidden by this entry; without it, callers of the tool may give it"
            ));
        }
    }

    fn instance<'g>(&self, globals: &'g Globals) -> Result<Option<&'g str>, Failure> {
        let url = globals.instance();
        if url.is_some() && self.dry_run {
            let hint = "use --config with the file of the instance";
            return Err(Failure::usage(
                "--dry-run shows the change of a file and does not work with --url",
            )
            .with_hint(Some(hint.into())));
        }
        Ok(url)
    }

    fn path(&self) -> Vec<&str> {
        match self.list {
            EntryList::Tools => vec!["tools", self.name, "declaration"],
            EntryList::Servers => vec!["servers", self.name],
            EntryList::Toolsets => vec!["toolsets", self.name],
        }
    }

    /// The entry at a running instance, with the version that a change must name.
    async fn fetch(
        &self,
        remote: &Remote,
    ) -> Result<(Option<EntryFields>, Option<String>), Failure> {
        let unknown = |failure: &Failure| {
            matches!(failure.kind(), "unknown_tool" | "unknown_server" | "unknown_toolset")
        };
        let found = match self.list {
            EntryList::Tools => remote
                .get::<ToolDeclarationView>(&self.path(), &[])
                .await
                .map(|view| (view.declared, view.etag)),
            EntryList::Servers => remote
                .get::<ServerDetail>(&self.path(), &[])
                .await
                .map(|detail| (detail.declared, detail.etag)),
            EntryList::Toolsets => remote
                .get::<ToolsetDetail>(&self.path(), &[])
                .await
                .map(|detail| (detail.declared, detail.etag)),
        };
        let (declared, etag) = match found {
            Ok(found) => found,
            Err(failure) if unknown(&failure) => (None, None),
            Err(failure) => return Err(failure),
        };
        let fields = declared.and_then(|declared| declared.as_object().cloned());
        let fields = match self.list {
            EntryList::Tools => fields
                .map(|fields| fields_of(fields, None))
                .transpose()
                .map_err(|error| Failure::unreachable(error.message))?,
            EntryList::Servers | EntryList::Toolsets => fields,
        };
        Ok((fields, etag))
    }

    /// The entry in the file.
    fn written(&self, globals: &Globals) -> Result<Option<EntryFields>, Failure> {
        let source = config_source(globals);
        let Some(path) = source.path() else { return Ok(None) };
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::start(format!("cannot read {}: {error}", path.display())))?;
        let name = path.display().to_string();
        let text = ConfigText::new(&name, &text)?;
        Ok(text.entry(self.list, self.name).cloned())
    }

    fn change_file(
        &self,
        globals: &Globals,
        edit: ConfigEdit,
        output: Output,
    ) -> Result<ExitCode, Failure> {
        let source = config_source(globals);
        let before = source.load().map(|loaded| loaded.warnings).unwrap_or_default();
        let proposed = source.propose(&[edit])?;
        let (file, is_change) = (proposed.path().display().to_string(), proposed.is_change());
        if !self.dry_run {
            proposed.write()?;
        }
        let warnings = &proposed.loaded().warnings;
        let added = added_warnings(&before, warnings);
        let others = warnings.len() - added.len();
        if output.is_json() {
            let diff = if is_change { proposed.diff() } else { String::new() };
            let told = |it: &&ConfigProblem| json!({"path": it.path, "message": it.message});
            let told: Vec<_> = added.iter().map(told).collect();
            let document = json!({
                "file": file, "name": self.name, "changed": is_change, "dry_run": self.dry_run, "diff": diff,
                "warnings": told, "other_warnings": others
            });
            output.json(&document);
            return Ok(ExitCode::SUCCESS);
        }
        for warning in &added {
            output.warn(&warning.to_string());
        }
        if others > 0 {
            let noun = if others == 1 { "warning" } else { "warnings" };
            output.note(&format!("{others} other {noun}: run `switchboard check`"));
        }
        match (is_change, self.dry_run) {
            (false, _) => output.data(&format!("{file}: nothing to change")),
            (true, true) => output.data(proposed.diff().trim_end()),
            (true, false) => output.data(&format!("{file}: written")),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The warnings that were not there before. An edit may move entries, so their positions do not count.
fn added_warnings<'a>(
    before: &[ConfigProblem],
    after: &'a [ConfigProblem],
) -> Vec<&'a ConfigProblem> {
    let subject = |it: &ConfigProblem| {
        let path = it.path.as_deref().unwrap_or_default();
        let keys: String = path.chars().filter(|c| !c.is_ascii_digit()).collect();
        (keys, it.message.clone())
    };
    let mut known: Vec<_> = before.iter().map(subject).collect();
    let mut is_new = |it: &&ConfigProblem| {
        let found = known.iter().position(|known| *known == subject(it));
        found.map(|at| known.swap_remove(at)).is_none()
    };
    after.iter().filter(|it| is_new(it)).collect()
}

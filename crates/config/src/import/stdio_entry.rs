//! Converts a stdio server of another program's file.

use serde_json::{Map, Value as Json, json};

use super::command_line::{self, CommandLine, CommandText};
use super::entry::{Fields, in_plain_text, note_unused, scalar};
use super::{literal_key, variables};
use crate::emit::Doc;

/// The fields of the server, or why it is skipped.
pub(super) fn fields(entry: &Map<String, Json>, notes: &mut Vec<String>) -> Result<Fields, String> {
    note_unused(entry, &["url", "serverUrl", "httpUrl", "headers"], notes);
    let line = command(entry, notes)?;
    let mut fields = vec![
        ("transport".into(), Doc::text("stdio")),
        ("command".into(), Doc::text(variables::convert(&line.program, notes))),
    ];
    if !line.args.is_empty() {
        let args: Vec<_> = line.args.iter().map(|arg| variables::convert(arg, notes)).collect();
        for (index, arg) in args.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|before| args.get(before));
            if literal_key::is_key_argument(before.map(String::as_str), arg) {
                let place = format!("argument {} of `{}`", index + 1, line.program);
                notes.push(in_plain_text(&place, "`${VAR}`"));
            }
        }
        fields.push(("args".into(), Doc::List(args.into_iter().map(Doc::text).collect())));
    }
    let mut env = entry.get("env").and_then(Json::as_object).cloned().unwrap_or_default();
    // As in a shell, assignments before the program override the environment.
    env.extend(line.env.into_iter().map(|(name, value)| (name, json!(value))));
    let env = environment(&env, notes);
    if !env.is_empty() {
        fields.push(("env".into(), Doc::Map(env)));
    }
    if let Some(cwd) = entry.get("cwd").and_then(Json::as_str) {
        fields.push(("cwd".into(), Doc::text(variables::convert(cwd, notes))));
    }
    Ok(fields)
}

/// The program and its arguments; `command` may hold both in one string.
fn command(entry: &Map<String, Json>, notes: &mut Vec<String>) -> Result<CommandLine, String> {
    let Some(Json::String(command)) = entry.get("command") else {
        let way_out = "write the program there and its arguments in `args`";
        return Err(format!("`command` is not a text; {way_out}"));
    };
    if command.trim().is_empty() {
        return Err("`command` is empty; write the program there, such as `npx`".into());
    }
    let mut line = match command_line::read(command) {
        CommandText::Line(line) => line,
        CommandText::Program => {
            CommandLine { env: Vec::new(), program: command.clone(), args: Vec::new() }
        }
        CommandText::OpenQuote => {
            notes.push(
                "`command` has a quote that is not closed, so it is taken for the name of a program; write the program \
                 there and its arguments in `args`"
                    .into(),
            );
            CommandLine { env: Vec::new(), program: command.clone(), args: Vec::new() }
        }
        CommandText::NoProgram => {
            let way_out = "write the program there and the variables in `env`";
            return Err(format!("`command` sets variables and names no program; {way_out}"));
        }
    };
    if !line.env.is_empty() {
        notes.push("`command` had variables in it; they are below `env`".into());
    }
    if !line.args.is_empty() {
        let program = &line.program;
        notes.push(format!("`command` had arguments in it; they are below `args` of `{program}`"));
    }
    let written = entry.get("args").and_then(Json::as_array).into_iter().flatten();
    line.args.extend(written.filter_map(scalar));
    Ok(line)
}

fn environment(written: &Map<String, Json>, notes: &mut Vec<String>) -> Fields {
    let mut env = Vec::new();
    for (name, value) in written {
        let is_name = !name.is_empty() && !name.contains(['=', '\0']);
        match scalar(value).filter(|_| is_name) {
            Some(value) => {
                let value = variables::convert(&value, notes);
                if literal_key::is_key(name, &value) {
                    let place = format!("the variable `{name}` below `env`");
                    notes.push(in_plain_text(&place, "`${VAR}` or `file:`"));
                }
                env.push((name.clone(), Doc::text(value)));
            }
            None => {
                notes.push(format!("the variable `{name}` below `env` was left out: not a text"));
            }
        }
    }
    env
}

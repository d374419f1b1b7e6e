//! Checks references to names, and suggests the nearest one for an unknown name.

use super::{At, Planner};
use crate::problem::ConfigProblem;
use crate::schema::nearest;
use crate::shape_words::quoted;

/// The known names of one kind.
pub(super) struct Names {
    /// "server" or "toolset".
    what: &'static str,
    all: Vec<Known>,
    /// Whether a source may add names that the file does not have.
    may_grow: bool,
}

struct Known {
    name: String,
    /// `false` for a name that came from a variable.
    is_shown: bool,
}

impl Names {
    pub(super) fn new(what: &'static str, may_grow: bool) -> Self {
        Self { what, all: Vec::new(), may_grow }
    }

    pub(super) fn add(&mut self, name: &str, is_shown: bool) {
        if !self.has(name) {
            self.all.push(Known { name: name.to_owned(), is_shown });
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.all.iter().any(|known| known.name == name)
    }

    /// All names as a phrase: "the servers are `a`, `b`".
    pub(super) fn listed(&self) -> String {
        let what = self.what;
        let shown: Vec<_> = self.shown().map(|name| format!("`{name}`")).collect();
        match shown.as_slice() {
            [] => format!("no {what} is configured"),
            [only] => format!("the only {what} is {only}"),
            all => format!("the {what}s are {}", all.join(", ")),
        }
    }

    fn shown(&self) -> impl Iterator<Item = &str> {
        self.all.iter().filter(|known| known.is_shown).map(|known| known.name.as_str())
    }
}

impl Planner<'_> {
    /// Reports the elements of the list below `key` that are not in `names`: with a warning, where a source may still add
    /// the name.
    pub(super) fn refuse_unknown(&mut self, at: &At<'_>, key: &str, names: &Names) {
        for item in at.items(key) {
            let Some(name) = item.text().filter(|name| !names.has(name)) else { continue };
            let (what, path) = (names.what, &item.path);
            let (shown, near) = if item.node.sensitive {
                ("of that name (it is not shown)".into(), None)
            } else {
                (quoted(name), nearest(name, names.shown()))
            };
            let help = match near {
                Some(near) => format!("did you mean `{near}`? ({})", names.listed()),
                None => names.listed(),
            };
            let problem = ConfigProblem::error(format!("{path}: there is no {what} {shown}"));
            let problem = problem.about(path).help(help);
            if names.may_grow {
                let note = "until a source of `discovery` names it, it has no tools";
                self.warn_at(&item.node.origin, problem.note(note));
            } else {
                self.push(&item.node.origin, problem);
            }
        }
    }
}

//! A page of the documents: its fenced blocks and the directives in the comments above them.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the workspace.
pub(crate) fn workspace() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates/cli has a parent");
    crates.parent().expect("crates has a parent").to_path_buf()
}

/// The text of a page.
pub(crate) fn read(page: &str) -> String {
    fs::read_to_string(workspace().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// Every page that may hold examples.
pub(crate) fn all_pages() -> Vec<String> {
    let mut pages: Vec<_> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .map(str::to_owned)
        .to_vec();
    let mut directories = vec!["docs".to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(workspace().join(&directory)).expect("docs can be listed") {
            let entry = entry.expect("docs can be listed");
            let name = format!("{directory}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                directories.push(name);
            } else if Path::new(&name).extension().is_some_and(|extension| extension == "md") {
                pages.push(name);
            }
        }
    }
    pages.sort();
    pages
}

/// What `<!-- test: ... -->` above a block says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Marker {
    /// Not run, for this reason.
    Skip(String),
    /// A server runs while the block does, and stays for the rest of the page.
    Serve,
    /// The server ends and starts again before the block runs, with the configuration that is there now.
    Restart,
    /// The configuration is refused.
    Fails,
    /// The block is written to this file of the working directory.
    File(String),
    /// The block belongs below this path, such as `toolbox.mcps`.
    Fragment(String),
    /// A variable for the check of a configuration.
    Env(String, String),
}

impl Marker {
    fn parse(text: &str) -> Self {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let given = |what: &str| {
            assert!(!rest.is_empty(), "`{word}` wants {what}");
            rest.to_owned()
        };
        match word {
            "skip" => Self::Skip(given("a reason")),
            "serve" => Self::Serve,
            "restart" => Self::Restart,
            "fails" => Self::Fails,
            "file" => Self::File(given("a name")),
            "fragment" => Self::Fragment(given("a path")),
            "env" => {
                let (name, value) = rest.split_once('=').expect("`env` wants NAME=VALUE");
                Self::Env(name.to_owned(), value.to_owned())
            }
            _ => panic!("unknown marker `{text}`"),
        }
    }
}

/// One fenced block.
#[derive(Debug)]
pub(crate) struct Block {
    /// `page:line` of the fence.
    pub(crate) place: String,
    pub(crate) language: String,
    pub(crate) text: String,
    pub(crate) markers: Vec<Marker>,
}

impl Block {
    pub(crate) fn has(&self, marker: &Marker) -> bool {
        self.markers.contains(marker)
    }

    pub(crate) fn is_skipped(&self) -> bool {
        self.markers.iter().any(|marker| matches!(marker, Marker::Skip(_)))
    }

    /// The `$` lines, each with the lines that it is said to print.
    pub(crate) fn commands(&self) -> Vec<(String, String)> {
        let mut commands: Vec<(String, String)> = Vec::new();
        for line in self.text.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                commands.push((command.to_owned(), String::new()));
                continue;
            }
            let (command, expected) =
                commands.last_mut().unwrap_or_else(|| panic!("{}: no `$` line", self.place));
            match line.strip_prefix("> ") {
                Some(more) => command.extend(["\n", more]),
                None => expected.extend([line, "\n"]),
            }
        }
        assert!(!commands.is_empty(), "{}: no `$` line; run it or skip it", self.place);
        commands
    }
}

/// The fenced blocks of a page, in their order.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut markers) = (Vec::new(), Vec::new());
    let text = read(page);
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let line = line.trim();
        if let Some(marker) = line.strip_prefix("<!-- test: ") {
            let marker = marker.strip_suffix(" -->").expect("a marker ends on its line");
            markers.push(Marker::parse(marker));
        } else if let Some(language) = line.strip_prefix("```") {
            let inside: Vec<_> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            blocks.push(Block {
                place: format!("{page}:{}", at + 1),
                language: language.to_owned(),
                text: inside.join("\n") + "\n",
                markers: std::mem::take(&mut markers),
            });
        } else if !line.is_empty() {
            assert!(markers.is_empty(), "{page}:{}: a marker stands above a block", at + 1);
        }
    }
    blocks
}

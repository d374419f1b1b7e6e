//! The `User-Agent` of requests to the platform: the form of the Python package, under this program's name.

/// `Switchboard/VERSION (platform; Rust; orchestrator)`. Control characters in the name of the orchestrator are left
/// out, because no header may have them.
pub fn user_agent(orchestrator_name: Option<&str>) -> String {
    let name: String =
        orchestrator_name.unwrap_or_default().chars().filter(|it| !it.is_control()).collect();
    let orchestrator = match name.trim() {
        "" => String::new(),
        name => format!("; {name}"),
    };
    format!("Switchboard/{} ({}; Rust{orchestrator})", env!("CARGO_PKG_VERSION"), platform())
}

/// The system's name as Python's `platform.system()` says it.
fn platform() -> &'static str {
    match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "Darwin",
        "windows" => "Windows",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_orchestrator_is_named_when_there_is_one() {
        let begin = format!("Switchboard/{} ({}; Rust", env!("CARGO_PKG_VERSION"), platform());
        for (name, end) in [
            (None, ")"),
            (Some(""), ")"),
            (Some(" "), ")"),
            (Some("LangChain"), "; LangChain)"),
            (Some("a\r\nx-evil: 1"), "; ax-evil: 1)"),
        ] {
            assert_eq!(user_agent(name), format!("{begin}{end}"), "{name:?}");
        }
    }
}

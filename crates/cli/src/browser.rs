//! Opens addresses in the browser of the user, without a shell.

use std::process::Stdio;

use switchboard_oauth::is_web_address;

/// Opens the URL in a browser; returns whether that worked. What is not an address of the web is not opened.
pub(crate) fn open_browser(url: &str) -> bool {
    if !is_web_address(url) {
        return false;
    }
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = std::process::Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}

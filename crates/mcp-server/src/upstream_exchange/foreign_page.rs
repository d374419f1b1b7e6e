//! Pages that servers ask clients to open. The board has pages of its own, on which people sign in: no server may pass off
//! a page as one of them.

use serde_json::Value;
use switchboard_model::{JsonText, ServerName, is_on_this_machine};
use url::Url;

/// Why a page is not shown to the client.
pub(super) const IMITATES: &str =
    "the server asks to open a page of this board, which only the board itself may do";

/// A word that the board's own requests begin with.
const OUR_NAME: &str = "switchboard";

/// The parameters of a server's URL elicitation, as the client may get them. A message that names the board is marked with
/// its true origin. An error if the page is one of the board.
pub(super) fn foreign_page(
    params: JsonText,
    server: &ServerName,
    board: Option<&Url>,
) -> Result<JsonText, &'static str> {
    let Ok(mut read) = serde_json::from_str::<Value>(params.as_str()) else { return Ok(params) };
    if read["mode"] != "url" {
        return Ok(params);
    }
    let url = read["url"].as_str().and_then(|text| Url::parse(text).ok());
    if let (Some(url), Some(board)) = (url, board)
        && is_of_board(&url, board)
    {
        return Err(IMITATES);
    }
    let message = read["message"].as_str().unwrap_or_default();
    let mark = format!("[This is from the MCP server \"{server}\", not from Switchboard.] ");
    if !message.to_lowercase().contains(OUR_NAME) || message.starts_with(&mark) {
        return Ok(params);
    }
    read["message"] = format!("{mark}{message}").into();
    Ok(JsonText::from(&read))
}

/// Whether a page is one of the board, by whichever of its names and with whichever scheme: a proxy may lead from http to
/// https, and this machine has several names.
fn is_of_board(page: &Url, board: &Url) -> bool {
    let host = |url: &Url| {
        url.host_str()
            .map(|host| host.trim_end_matches('.').to_ascii_lowercase())
            .unwrap_or_default()
    };
    let is_same_host =
        host(page) == host(board) || (is_on_this_machine(page) && is_on_this_machine(board));
    let is_same_port = page.port_or_known_default() == board.port_or_known_default()
        || (page.port().is_none() && board.port().is_none());
    is_same_host && is_same_port
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(asked: &Value, expected: Result<Option<&str>, &str>) {
        let board = Url::parse("https://tools.example.com/board").unwrap();
        let passed = foreign_page(JsonText::from(asked), &ServerName::new("crm"), Some(&board));
        let message = |passed: JsonText| {
            let passed: Value = serde_json::from_str(passed.as_str()).unwrap();
            (passed != *asked).then(|| passed["message"].as_str().unwrap().to_owned())
        };
        let expected = expected.map(|text| text.map(str::to_owned));
        assert_eq!(passed.map(message), expected, "{asked}");
    }

    #[test]
    fn a_server_cannot_pass_off_a_page_as_one_of_the_board() {
        let page =
            |url: &str, message: &str| json!({"mode": "url", "url": url, "message": message});
        check(&page("https://crm.example.com/a", "Please pay"), Ok(None));
        check(&page("https://tools.example.com/connect/1", "Please sign in"), Err(IMITATES));
        check(&page("https://TOOLS.example.com:443/x", "Please sign in"), Err(IMITATES));
        for other in [
            "http://tools.example.com/x",
            "https://tools.example.com./x",
            "https://a@tools.example.com/x",
        ] {
            check(&page(other, "Please sign in"), Err(IMITATES));
        }
        check(&page("https://tools.example.com:8443/pay", "Please pay"), Ok(None));
        check(
            &page("https://tools.example.com.evil.test/connect/1", "Switchboard: sign in"),
            Ok(Some(
                "[This is from the MCP server \"crm\", not from Switchboard.] Switchboard: sign in",
            )),
        );
        check(&json!({"mode": "form", "message": "Switchboard?"}), Ok(None));
    }

    #[test]
    fn a_board_on_this_machine_has_several_names() {
        let board = Url::parse("http://127.0.0.1:8420").unwrap();
        for (page, is_ours) in [
            ("http://localhost:8420/connect/1", true),
            ("http://[::1]:8420/connect/1", true),
            ("http://127.1:8420/connect/1", true),
            ("http://localhost:8421/connect/1", false),
            ("http://192.168.0.1:8420/connect/1", false),
        ] {
            assert_eq!(is_of_board(&Url::parse(page).unwrap(), &board), is_ours, "{page}");
        }
    }
}

//! Which addresses may be given to a browser. Pure.

use url::Url;

/// Longest address that is opened.
const LONGEST: usize = 8 * 1024;

/// Whether an address is one of the web and nothing else: http or https, with a host, without control characters and
/// blanks. Only such an address is opened or shown as a link; `javascript:` and `file:` are not, nor is text that a
/// program could take for an option.
pub fn is_web_address(text: &str) -> bool {
    let is_plain = text.len() <= LONGEST && text.chars().all(|c| c.is_ascii_graphic());
    let url = Url::parse(text).ok().filter(|_| is_plain);
    url.is_some_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.host_str().is_some_and(|host| !host.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_web_are_opened() {
        for (text, is_opened) in [
            ("https://as.example.com/authorize?a=b&c=$(id)", true),
            ("http://127.0.0.1:8080/authorize", true),
            ("javascript:alert(1)", false),
            ("JAVASCRIPT:alert(1)", false),
            ("file:///etc/passwd", false),
            ("data:text/html,x", false),
            ("--help", false),
            ("-a Calculator", false),
            ("https://as.example.com/a b", false),
            ("https://as.example.com/\u{1b}[2J", false),
            ("https://as.example.com/\nrm", false),
            ("https:", false),
            ("", false),
        ] {
            assert_eq!(is_web_address(text), is_opened, "{text:?}");
        }
        assert!(!is_web_address(&format!("https://a/{}", "x".repeat(LONGEST))));
    }
}

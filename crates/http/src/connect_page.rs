//! The HTML of the sign-in pages. Pure: every value that is shown is escaped, and the pages work without scripts.

use std::fmt::{self, Write};

use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

/// The Content-Security-Policy of the pages: no script, nothing from elsewhere, and forms only to this server.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:3rem auto;padding:0 1rem;color:#222;\
background:#fff}h1{font-size:1.3rem}dt{font-weight:600;margin-top:.6rem}dd{margin:0;overflow-wrap:anywhere}\
.go,button{display:inline-block;margin-top:1.2rem;padding:.6rem 1.2rem;border:0;border-radius:.4rem;background:#1a56db;\
color:#fff;font:inherit;text-decoration:none;cursor:pointer}input{font:inherit;padding:.5rem;width:100%;\
box-sizing:border-box}.bad{color:#b00020}@media(prefers-color-scheme:dark){body{background:#161616;color:#eee}}";

/// A text that is shown as it is, whatever characters it has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // Neither line breaks nor characters that turn the direction of the text.
                c if c.is_control() || is_direction(c) => f.write_str("\u{fffd}")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What the person decides about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Consent<'a> {
    pub(crate) server: &'a str,
    pub(crate) owner: &'a str,
    pub(crate) client: Option<&'a str>,
    pub(crate) issuer: &'a str,
    pub(crate) scopes: &'a [String],
    /// The address of the authorization server.
    pub(crate) url: &'a str,
}

/// Asks for the proof that the person's own call needs the page. Shows nothing about the call.
pub(crate) fn proof(is_wrong: bool, identify: Option<&str>) -> Response {
    let identify = identify.map(|path| {
        format!(
            "<p>Sign in as yourself, so that this board knows you:</p><a class=go rel=noreferrer href=\"{}\">Sign in</a>\
             <p>Or use a code.</p>",
            Escaped(path)
        )
    });
    let identify = identify.unwrap_or_default();
    let wrong = if is_wrong { "<p class=bad>This is not the right code or key.</p>" } else { "" };
    let body = format!(
        "<h1>Sign in for a tool</h1><p>A program that uses your tools asks you to sign in.</p>{identify}<p>Enter the code that the \
         program showed with this address, or your own API key for this board.</p>{wrong}<form method=post>\
         <label>Code or API key <input name=proof type=password autocomplete=off required autofocus></label>\
         <button>Continue</button></form><p>If you did not ask for this, close the page.</p>"
    );
    page(if is_wrong { StatusCode::FORBIDDEN } else { StatusCode::OK }, &body)
}

/// Shows who would get access to what, with the way to the authorization server.
pub(crate) fn consent(shown: Consent<'_>) -> Response {
    let scopes =
        if shown.scopes.is_empty() { "not named".to_owned() } else { shown.scopes.join(" ") };
    let client = shown.client.unwrap_or("not named");
    let host = host_of(shown.issuer);
    let body = format!(
        "<h1>Connect your account at {server}</h1><dl><dt>Server</dt><dd>{server}</dd><dt>You sign in at</dt>\
         <dd>{host}</dd><dt>Requested access</dt><dd>{scopes}</dd><dt>The account will be used for the calls of</dt>\
         <dd>{owner}</dd><dt>Asked by the program</dt><dd>{client}</dd></dl><a class=go rel=noreferrer href=\"{url}\">\
         Continue to {host}</a><p>Continue only if this is you, and if you began this yourself.</p>",
        server = Escaped(shown.server),
        host = Escaped(&host),
        scopes = Escaped(&scopes),
        owner = Escaped(shown.owner),
        client = Escaped(client),
        url = Escaped(shown.url),
    );
    page(StatusCode::OK, &body)
}

/// Asks for a token that was issued beforehand.
pub(crate) fn token(server: &str, owner: &str, problem: Option<&str>) -> Response {
    let problem =
        problem.map(|text| format!("<p class=bad>{}</p>", Escaped(text))).unwrap_or_default();
    let body = format!(
        "<h1>Connect your account at {server}</h1><dl><dt>Server</dt><dd>{server}</dd><dt>The token will be used for the \
         calls of</dt><dd>{owner}</dd></dl>{problem}<form method=post><label>Your token for this server \
         <input name=token type=password autocomplete=off required></label><button>Store the token</button></form>",
        server = Escaped(server),
        owner = Escaped(owner),
    );
    page(StatusCode::OK, &body)
}

/// A page that only says something.
pub(crate) fn message(status: StatusCode, title: &str, text: &str) -> Response {
    page(status, &format!("<h1>{}</h1><p>{}</p>", Escaped(title), Escaped(text)))
}

/// The host of an issuer, or the whole text if it is no address.
fn host_of(issuer: &str) -> String {
    let url = url::Url::parse(issuer).ok();
    let host = url.as_ref().and_then(|url| {
        let host = url.host_str()?;
        Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
    });
    host.unwrap_or_else(|| issuer.to_owned())
}

fn page(status: StatusCode, body: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>Switchboard</title><style>{STYLE}</style><body>{body}</body></html>"
    );
    let headers = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        // Not `no-referrer`: with it, browsers send the forms of a page with the origin `null`.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, Html(html)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_shown_becomes_markup() {
        let hostile = "<script>alert(1)</script>\"'&\u{202e}\n";
        let shown = Escaped(hostile).to_string();
        assert_eq!(shown, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;\u{fffd}\u{fffd}");
    }

    #[test]
    fn an_issuer_is_shown_by_its_host() {
        for (issuer, host) in [
            ("https://login.example.com/tenant", "login.example.com"),
            ("http://127.0.0.1:9000/", "127.0.0.1:9000"),
            ("<b>", "<b>"),
        ] {
            assert_eq!(host_of(issuer), host);
        }
    }
}

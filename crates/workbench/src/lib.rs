//! The files of Workbench, the web page of the program, as `ui/dist` had them when the program was built.
//!
//! A debug build reads them from the disk. Without a build of Workbench there are none, and [`Site::page`] says so.

mod encoding;

use std::borrow::Cow;

use rust_embed::Embed;

#[derive(Embed)]
#[folder = "../../ui/dist"]
#[allow_missing = true]
struct Built;

/// The word in `index.html` that a fresh nonce replaces.
const NONCE: &str = "CSP_NONCE";

/// A set of files. [`Site::default`] has those of this program.
#[derive(Debug, Clone, Copy)]
pub struct Site {
    read: fn(&str) -> Option<Cow<'static, [u8]>>,
}

/// A file as it is sent.
#[derive(Debug, PartialEq, Eq)]
pub struct SiteFile {
    pub bytes: Cow<'static, [u8]>,
    pub content_type: &'static str,
    /// The value of `Content-Encoding`.
    pub encoding: Option<&'static str>,
    /// The name holds a digest of the content, so that a browser may keep the file for ever.
    pub is_immutable: bool,
}

impl Default for Site {
    fn default() -> Self {
        Self::new(|path| Built::get(path).map(|file| file.data))
    }
}

impl Site {
    /// A site whose files a function reads.
    pub const fn new(read: fn(&str) -> Option<Cow<'static, [u8]>>) -> Self {
        Self { read }
    }

    /// The file at the path of a URL, in the smallest encoding that `Accept-Encoding` admits. The page itself and hidden
    /// files are none.
    pub fn file(&self, path: &str, accept_encoding: Option<&str>) -> Option<SiteFile> {
        let path = path.strip_prefix('/')?;
        let is_plain =
            |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains(['\\', '%']);
        if !path.split('/').all(is_plain) {
            return None;
        }
        let content_type = content_type(path)?;
        let is_immutable = path.starts_with("assets/");
        for encoding in encoding::admitted(accept_encoding) {
            let encoded = format!("{path}.{}", encoding.suffix());
            if let Some(bytes) = (self.read)(&encoded) {
                let encoding = Some(encoding.name());
                return Some(SiteFile { bytes, content_type, encoding, is_immutable });
            }
        }
        let bytes = (self.read)(path)?;
        Some(SiteFile { bytes, content_type, encoding: None, is_immutable })
    }

    /// The page with the nonce of this answer; `None` when the program was built without Workbench.
    pub fn page(&self, nonce: &str) -> Option<String> {
        let page = (self.read)("index.html")?;
        Some(String::from_utf8_lossy(&page).replace(NONCE, nonce))
    }
}

/// The media type of a file that the page loads; `None` for files of other kinds, which are not served.
fn content_type(path: &str) -> Option<&'static str> {
    let (_, extension) = path.rsplit_once('.')?;
    Some(match extension {
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site {
        Site::new(|path| {
            let text = match path {
                "index.html" => "<script nonce=\"CSP_NONCE\"></script><style nonce=\"CSP_NONCE\">",
                "assets/a-1.js" => "plain",
                "assets/a-1.js.br" => "brotli",
                "assets/a-1.js.gz" => "gzip",
                "assets/b-2.css" | "favicon.svg" | ".vite/manifest.json" | "assets/c.map" => "x",
                _ => return None,
            };
            Some(Cow::Borrowed(text.as_bytes()))
        })
    }

    #[track_caller]
    fn check(path: &str, accept: Option<&str>, expected: Option<(&str, Option<&str>, bool)>) {
        let file = site().file(path, accept);
        let seen = file.as_ref().map(|file| {
            let text = std::str::from_utf8(&file.bytes).unwrap();
            (text, file.encoding, file.is_immutable)
        });
        assert_eq!(seen, expected, "{path} {accept:?}");
    }

    #[test]
    fn the_smallest_encoding_that_the_browser_takes_is_sent() {
        let js = "/assets/a-1.js";
        check(js, Some("gzip, deflate, br, zstd"), Some(("brotli", Some("br"), true)));
        check(js, Some("gzip"), Some(("gzip", Some("gzip"), true)));
        check(js, Some("br;q=0, gzip;q=0.5"), Some(("gzip", Some("gzip"), true)));
        check(js, Some("identity"), Some(("plain", None, true)));
        check(js, None, Some(("plain", None, true)));
        check("/assets/b-2.css", Some("br"), Some(("x", None, true)));
        check("/favicon.svg", Some("br"), Some(("x", None, false)));
    }

    #[test]
    fn only_files_of_the_page_are_served() {
        for path in [
            "/index.html",
            "/.vite/manifest.json",
            "/assets/c.map",
            "/assets/a-1.js.br",
            "/assets/../index.html",
            "/assets//a-1.js",
            "/assets/%2e%2e/a-1.js",
            "/",
            "",
        ] {
            check(path, Some("br"), None);
        }
    }

    #[test]
    fn each_page_has_its_own_nonce_everywhere() {
        let page = site().page("n0").unwrap();
        assert_eq!(page, "<script nonce=\"n0\"></script><style nonce=\"n0\">");
        assert_eq!(Site::new(|_| None).page("n0"), None);
    }
}

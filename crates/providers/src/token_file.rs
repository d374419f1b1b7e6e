//! Reads the token of another program from its file.
//!
//! The file is read for each request, so that a token that the other program renews is used at once. It is never written.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;
use switchboard_chat::{FaultKind, ModelFault};
use switchboard_model::{Secret, TokenFile};
use tokio::io::AsyncReadExt as _;

/// Maximum size of a token file.
const MOST_READ: u64 = 1 << 20;
/// Larger numbers are milliseconds and not seconds: as seconds they are after the year 5000.
const LARGEST_SECONDS: i64 = 100_000_000_000;
/// A token that expires sooner than this is not sent: it would expire on the way.
const SHORTLY_MS: i64 = 5_000;

/// The token of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileToken {
    pub(crate) access: Secret,
    pub(crate) account: Option<String>,
}

/// The current token. The error names the file and the pointer, and shows nothing of the content.
pub(crate) async fn read(file: &TokenFile, now: Timestamp) -> Result<FileToken, ModelFault> {
    let path = at_home(&file.path);
    let content = content(&path).await.map_err(|why| unusable(&path, &why))?;
    let content: Value = serde_json::from_slice(&content)
        .map_err(|_| unusable(&path, "it is not JSON; another program may be writing it"))?;
    let text = |pointer: &str| {
        let value = content.pointer(pointer).and_then(Value::as_str);
        value.map(str::trim).filter(|text| !text.is_empty())
    };
    let Some(access) = text(&file.access_token) else {
        return Err(unusable(&path, &format!("it has no text at `{}`", file.access_token)));
    };
    if let Some(pointer) = &file.expires_at
        && let Some(value) = content.pointer(pointer).filter(|value| !value.is_null())
    {
        let Some(end) = expiry(value) else {
            return Err(unusable(&path, &format!("it has no time at `{pointer}`")));
        };
        if end.as_millisecond() <= now.as_millisecond().saturating_add(SHORTLY_MS) {
            let text = format!(
                "the token in `{}` expired at {end:.0}: sign in again with the program that keeps this file",
                path.display()
            );
            return Err(ModelFault::new(FaultKind::SignIn, text));
        }
    }
    let account = file.account_id.as_deref().and_then(text).map(str::to_owned);
    Ok(FileToken { access: Secret::new(access), account })
}

/// Why no token can be taken from the file now; `None` if there is one.
pub async fn token_file_problem(file: &TokenFile) -> Option<String> {
    read(file, Timestamp::now()).await.err().map(|fault| fault.message)
}

async fn content(path: &Path) -> Result<Vec<u8>, String> {
    let opened = async {
        let file = tokio::fs::File::open(path).await?;
        if !file.metadata().await?.is_file() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let mut content = Vec::new();
        file.take(MOST_READ + 1).read_to_end(&mut content).await?;
        Ok(content)
    };
    match opened.await {
        Ok(content) if content.len() as u64 > MOST_READ => Err("it is larger than 1 MiB".into()),
        Ok(content) => Ok(content),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err("it does not exist".into()),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err("it is not a file".into()),
        Err(error) => Err(error.kind().to_string()),
    }
}

fn unusable(path: &Path, why: &str) -> ModelFault {
    let text = format!(
        "no token can be read from `{}`: {why}; sign in with the program that keeps this file, or correct `auth`",
        path.display()
    );
    ModelFault::new(FaultKind::SignIn, text)
}

/// The path with `~/` replaced by the home directory.
fn at_home(path: &Path) -> PathBuf {
    let below = path.strip_prefix("~").ok();
    let home = below.and_then(|_| std::env::home_dir());
    match (below, home) {
        (Some(below), Some(home)) => home.join(below),
        _ => path.to_owned(),
    }
}

/// A time in one of the forms that programs write.
fn expiry(value: &Value) -> Option<Timestamp> {
    if let Some(text) = value.as_str() {
        let number = text.parse::<i64>().ok().and_then(from_number);
        return number.or_else(|| text.parse().ok());
    }
    // Some programs write fractions of a second.
    let whole = value.as_i64();
    #[expect(clippy::cast_possible_truncation, reason = "it saturates, and such a time is refused")]
    let number = whole.or_else(|| value.as_f64().map(|number| number as i64));
    number.and_then(from_number)
}

fn from_number(number: i64) -> Option<Timestamp> {
    if number.abs() < LARGEST_SECONDS {
        Timestamp::from_second(number).ok()
    } else {
        Timestamp::from_millisecond(number).ok()
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    async fn of(content: &str) -> Result<FileToken, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("auth.json");
        std::fs::write(&path, content).unwrap();
        let file = TokenFile {
            path: path.clone(),
            access_token: "/tokens/access".into(),
            expires_at: Some("/tokens/end".into()),
            account_id: Some("/tokens/account".into()),
        };
        let read = read(&file, now()).await;
        read.map_err(|fault| {
            assert_eq!(fault.kind, FaultKind::SignIn);
            assert!(!fault.message.contains("hunter2"), "{fault}");
            fault.message.replace(&path.display().to_string(), "FILE")
        })
    }

    #[tokio::test]
    async fn a_token_is_read_with_its_account_until_it_expires() {
        let token = |account: Option<&str>| FileToken {
            access: Secret::new("hunter2"),
            account: account.map(str::to_owned),
        };
        let with = |end: Value| {
            json!({"tokens": {"access": "hunter2", "account": "a1", "end": end}}).to_string()
        };
        for end in [
            json!(1_800_000_100),
            json!(1_800_000_100_000_i64),
            json!(1_800_000_100.5),
            json!("1800000100"),
            json!("2027-01-15T08:03:00Z"),
            json!(null),
        ] {
            assert_eq!(of(&with(end.clone())).await, Ok(token(Some("a1"))), "{end}");
        }
        let plain = r#"{"tokens": {"access": " hunter2\n"}}"#;
        assert_eq!(of(plain).await, Ok(token(None)));
        for end in
            [json!(1_800_000_000), json!(1_700_000_000_000_i64), json!("2027-01-15T07:00:00Z")]
        {
            let said = of(&with(end)).await.unwrap_err();
            assert!(said.starts_with("the token in `FILE` expired at 20"), "{said}");
        }
    }

    #[tokio::test]
    async fn a_file_without_a_token_is_named_and_not_shown() {
        let end = "; sign in with the program that keeps this file, or correct `auth`";
        for (content, why) in [
            ("", "it is not JSON; another program may be writing it"),
            (
                r#"{"tokens": {"access": "hunter2"#,
                "it is not JSON; another program may be writing it",
            ),
            (r#"{"tokens": {"access": 5}}"#, "it has no text at `/tokens/access`"),
            (r#"{"tokens": {"access": ""}}"#, "it has no text at `/tokens/access`"),
            (r#"{"token": "hunter2"}"#, "it has no text at `/tokens/access`"),
            (
                r#"{"tokens": {"access": "hunter2", "end": "soon"}}"#,
                "it has no time at `/tokens/end`",
            ),
        ] {
            let expected = format!("no token can be read from `FILE`: {why}{end}");
            assert_eq!(of(content).await, Err(expected), "{content}");
        }
        assert!(of(&format!("\"{}\"", "x".repeat(1 << 20))).await.unwrap_err().contains("1 MiB"));
        for (path, why) in
            [("/nonexistent/auth.json", "it does not exist"), ("/", "it is not a file")]
        {
            let (path, access_token) = (PathBuf::from(path), "/t".into());
            let file = TokenFile { path, access_token, expires_at: None, account_id: None };
            let fault = read(&file, now()).await.unwrap_err();
            assert!(fault.message.contains(why), "{fault}");
        }
    }

    #[test]
    fn a_path_may_begin_at_home() {
        let home = std::env::home_dir().unwrap();
        assert_eq!(at_home(Path::new("~/.x/auth.json")), home.join(".x/auth.json"));
        assert_eq!(at_home(Path::new("/a/~/b")), Path::new("/a/~/b"));
    }
}

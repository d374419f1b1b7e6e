//! Headers for one server whose values come from the caller of each request.
//!
//! A value of the caller is percent-encoded where a header could misread it, and never contains a line break: whoever
//! chooses the name in a token cannot add a header to a request.

use std::fmt::{self, Write as _};

use crate::{Caller, Secret};

/// Maximum length of a header whose value comes from the caller.
const MAX_VALUE_BYTES: usize = 2048;

/// A value of the caller that a header can carry. There is none for the credential itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerField {
    Subject,
    Email,
    Name,
    Person,
    Key,
    Session,
}

impl CallerField {
    /// All fields, in the order of messages and documents.
    pub const ALL: [Self; 6] =
        [Self::Subject, Self::Email, Self::Name, Self::Person, Self::Key, Self::Session];

    /// The name in the configuration: `${caller.subject}`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Subject => "caller.subject",
            Self::Email => "caller.email",
            Self::Name => "caller.name",
            Self::Person => "caller.person",
            Self::Key => "caller.key",
            Self::Session => "session",
        }
    }

    /// Parses the name that [`CallerField::as_str`] writes.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.as_str() == name)
    }

    /// The value of a caller, if it has one.
    fn of(self, caller: &Caller) -> Option<&str> {
        let identity = &caller.identity;
        let value = match self {
            Self::Subject => identity.subject.as_deref(),
            Self::Email => identity.email.as_deref(),
            Self::Name => identity.name.as_deref(),
            Self::Person => Some(&*identity.person),
            Self::Key => identity.key.as_deref(),
            Self::Session => caller.session.as_deref(),
        };
        value.filter(|value| !value.is_empty())
    }
}

/// A part of a header value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderPart {
    /// Text of the configuration, with the values of environment variables.
    Text(Secret),
    /// A value of the caller, or the default if the caller has none.
    Caller { field: CallerField, default: Option<String> },
}

/// The value of a header, with at least one part that comes from the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderTemplate(pub Vec<HeaderPart>);

/// A header that is sent with each request to one server on behalf of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerHeader {
    pub name: String,
    pub value: HeaderTemplate,
}

/// Why a header cannot be sent for a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderRefusal {
    /// The caller has no such value, and the template no default.
    Missing(CallerField),
    /// The value has control characters.
    Control(CallerField),
    /// The whole value is too long.
    TooLong,
}

impl fmt::Display for HeaderRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(field) => write!(f, "the caller has no `{}`", field.as_str()),
            Self::Control(field) => {
                write!(f, "the caller's `{}` has control characters", field.as_str())
            }
            Self::TooLong => write!(f, "its value exceeds {MAX_VALUE_BYTES} bytes"),
        }
    }
}

impl HeaderTemplate {
    /// The value for a caller. An empty value means that the header is not sent.
    pub fn for_caller(&self, caller: &Caller) -> Result<String, HeaderRefusal> {
        let mut value = String::new();
        for part in &self.0 {
            match part {
                HeaderPart::Text(text) => value.push_str(text.expose()),
                HeaderPart::Caller { field, default } => match (field.of(caller), default) {
                    (Some(own), _) => push_encoded(&mut value, *field, own)?,
                    (None, Some(default)) => value.push_str(default),
                    (None, None) => return Err(HeaderRefusal::Missing(*field)),
                },
            }
        }
        if value.len() > MAX_VALUE_BYTES { Err(HeaderRefusal::TooLong) } else { Ok(value) }
    }

    /// The value for requests that no caller makes: lists, pings, the handshake. `None` if a part has no default.
    pub fn for_nobody(&self) -> Option<String> {
        let mut value = String::new();
        for part in &self.0 {
            match part {
                HeaderPart::Text(text) => value.push_str(text.expose()),
                HeaderPart::Caller { default, .. } => value.push_str(default.as_deref()?),
            }
        }
        Some(value).filter(|value| !value.is_empty())
    }

    /// The parts that the configuration itself gives: texts and defaults.
    pub fn fixed_texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            HeaderPart::Text(text) => Some(text.expose()),
            HeaderPart::Caller { default, .. } => default.as_deref(),
        })
    }

    /// Whether every part comes from the caller, so that the template as written shows no secret.
    pub fn is_of_caller_alone(&self) -> bool {
        self.0.iter().all(|part| matches!(part, HeaderPart::Caller { .. }))
    }
}

/// Percent-encodes what a header cannot carry (spaces and non-ASCII characters), what separates values of a header, and
/// `%` itself, so that the encoding can be undone.
fn push_encoded(out: &mut String, field: CallerField, value: &str) -> Result<(), HeaderRefusal> {
    for byte in value.bytes() {
        match byte {
            b if b.is_ascii_control() => return Err(HeaderRefusal::Control(field)),
            b'%' | b',' | b';' | b'"' | b'\\' => push_percent(out, byte),
            b if b.is_ascii_graphic() => out.push(char::from(b)),
            _ => push_percent(out, byte),
        }
    }
    Ok(())
}

fn push_percent(out: &mut String, byte: u8) {
    // Writing to a string does not fail.
    let _ok = write!(out, "%{byte:02X}");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Face, Identity, Role};

    fn caller(subject: Option<&str>) -> Caller {
        let subject = subject.map(Arc::from);
        let identity = Identity { subject, ..Identity::of("user:anna".into()) };
        Caller::new("key:1".into(), Arc::new(identity), Role::Client, Face::Mcp)
    }

    fn reference(field: CallerField, default: Option<&str>) -> HeaderPart {
        HeaderPart::Caller { field, default: default.map(str::to_owned) }
    }

    #[test]
    fn values_of_callers_are_encoded_or_refused() {
        #[track_caller]
        fn check(subject: &str, expected: Result<&str, HeaderRefusal>) {
            let template = HeaderTemplate(vec![reference(CallerField::Subject, None)]);
            let value = template.for_caller(&caller(Some(subject)));
            assert_eq!(value, expected.map(str::to_owned), "{subject:?}");
        }
        use HeaderRefusal::{Control, Missing, TooLong};
        let subject = CallerField::Subject;
        check("anna", Ok("anna"));
        check("anna@example.com", Ok("anna@example.com"));
        check("auth0|62f:x/y+z=", Ok("auth0|62f:x/y+z="));
        check("Zoë Müller", Ok("Zo%C3%AB%20M%C3%BCller"));
        check("100%", Ok("100%25"));
        check("a,b;c\"d\\e", Ok("a%2Cb%3Bc%22d%5Ce"));
        check("", Err(Missing(subject)));
        for hostile in ["a\r\nX-Role: admin", "a\nb", "a\0b", "\u{7f}", "\t"] {
            check(hostile, Err(Control(subject)));
        }
        // Unicode line separators are no control characters of ASCII; their bytes are encoded.
        check("a\u{2028}b\u{85}", Ok("a%E2%80%A8b%C2%85"));
        check(&"x".repeat(MAX_VALUE_BYTES + 1), Err(TooLong));
    }

    #[test]
    fn a_caller_without_the_value_needs_a_default() {
        let parts = |default| {
            let text = HeaderPart::Text(Secret::new("u="));
            HeaderTemplate(vec![text, reference(CallerField::Subject, default)])
        };
        let nobody = caller(None);
        let missing = Err(HeaderRefusal::Missing(CallerField::Subject));
        assert_eq!(parts(None).for_caller(&nobody), missing);
        assert_eq!(parts(Some("none")).for_caller(&nobody).unwrap(), "u=none");
        assert_eq!(parts(Some("none")).for_caller(&caller(Some("anna"))).unwrap(), "u=anna");
        assert_eq!(parts(None).for_nobody(), None);
        assert_eq!(parts(Some("board")).for_nobody().as_deref(), Some("u=board"));
        let left_out = HeaderTemplate(vec![reference(CallerField::Session, Some(""))]);
        assert_eq!(left_out.for_caller(&nobody).unwrap(), "");
        assert_eq!(left_out.for_nobody(), None);
    }

    #[test]
    fn every_field_is_read_by_its_name_and_none_is_the_credential() {
        for field in CallerField::ALL {
            assert_eq!(CallerField::from_name(field.as_str()), Some(field));
        }
        for name in ["caller.token", "caller.principal", "caller", "subject", "caller.Subject"] {
            assert_eq!(CallerField::from_name(name), None);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_value_breaks_out_of_its_header(subject in ".*") {
            let template = HeaderTemplate(vec![reference(CallerField::Subject, Some("-"))]);
            if let Ok(value) = template.for_caller(&caller(Some(&subject))) {
                proptest::prop_assert!(value.bytes().all(|b| b.is_ascii_graphic()));
            }
        }
    }
}

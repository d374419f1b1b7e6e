//! Which encodings a browser takes (`Accept-Encoding`, RFC 9110 section 12.5.3).

/// An encoding of which the build of Workbench has files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Brotli,
    Gzip,
}

impl Encoding {
    /// Smallest result first.
    const ALL: [Self; 2] = [Self::Brotli, Self::Gzip];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }

    /// What is appended to the name of a file.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gz",
        }
    }
}

/// The encodings that the header admits, smallest result first.
pub(crate) fn admitted(header: Option<&str>) -> impl Iterator<Item = Encoding> {
    let header = header.unwrap_or_default();
    Encoding::ALL.into_iter().filter(move |encoding| {
        header.split(',').any(|choice| {
            let (name, weight) = choice.split_once(';').unwrap_or((choice, ""));
            let weight = weight.trim().strip_prefix("q=").unwrap_or("1");
            name.trim().eq_ignore_ascii_case(encoding.name())
                && weight.parse::<f32>().is_ok_and(|weight| weight > 0.0)
        })
    })
}

//! Who asks a provider.

/// The conversation and the credential of a request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AskedBy<'a> {
    pub(crate) credential: Option<&'a str>,
    /// Stands for `${session}` in configured headers.
    pub(crate) session: &'a str,
}

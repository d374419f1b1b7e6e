//! The headers of a caller for one server, from the templates of the server's entry.

use std::fmt;
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use switchboard_mcp_client::CallerHeaders;
use switchboard_model::{Caller, HeaderRefusal, ServerName, ServerSpec};

/// A header that cannot be sent for a caller. Nothing is sent to the server then: it would take the request for that of
/// somebody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusedHeader {
    server: ServerName,
    header: String,
    refusal: HeaderRefusal,
}

impl RefusedHeader {
    /// What the operator can do.
    pub(crate) fn way_out(&self) -> String {
        match self.refusal {
            HeaderRefusal::Missing(field) => format!(
                "give the header a default, such as `${{{}:-unknown}}`, or give the caller a credential that has the value",
                field.as_str()
            ),
            HeaderRefusal::Control(_) | HeaderRefusal::TooLong => {
                "correct the value where the credential comes from".to_owned()
            }
        }
    }
}

impl fmt::Display for RefusedHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, header, refusal } = self;
        write!(f, "the header `{header}` of MCP server '{server}' cannot be sent: {refusal}")
    }
}

/// The headers of this caller for a server; `None` if the server wants none.
pub(crate) fn caller_headers(
    spec: &ServerSpec,
    caller: &Caller,
) -> Result<Option<CallerHeaders>, RefusedHeader> {
    if spec.caller_headers.is_empty() {
        return Ok(None);
    }
    let mut headers = Vec::with_capacity(spec.caller_headers.len());
    for header in &spec.caller_headers {
        let refused = |refusal| RefusedHeader {
            server: spec.name.clone(),
            header: header.name.clone(),
            refusal,
        };
        let value = header.value.for_caller(caller).map_err(refused)?;
        if value.is_empty() {
            continue;
        }
        // Names and texts were checked with the configuration, and values are encoded.
        let name = HeaderName::try_from(header.name.as_str());
        let value = HeaderValue::try_from(value);
        if let (Ok(name), Ok(mut value)) = (name, value) {
            value.set_sensitive(true);
            headers.push((name, value));
        }
    }
    Ok(Some(Arc::from(headers)))
}

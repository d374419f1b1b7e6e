//! Frames of a stream of server-sent events.

use crate::raw_json::RawObject;

/// A frame with the name of its event.
pub(crate) fn named_frame(name: &str, data: &RawObject, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.push(b'\n');
    data_frame(data, out);
}

/// A frame without a name.
pub(crate) fn data_frame(data: &RawObject, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    // A line break within JSON stands between two tokens, and would end the line of the frame.
    let is_break = |byte: u8| byte == b'\n' || byte == b'\r';
    out.extend(data.to_json().bytes().map(|byte| if is_break(byte) { b' ' } else { byte }));
    out.extend_from_slice(b"\n\n");
}

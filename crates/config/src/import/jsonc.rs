//! Converts JSON with comments and trailing commas, as editors accept it, to plain JSON.

/// Replaces comments and trailing commas with spaces, so that lines and columns stay the same.
pub(crate) fn to_json(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    without_trailing_commas(&without_comments(text))
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut state = JsoncState::Code;
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        let blank = if c == '\n' || c == '\r' { c } else { ' ' };
        match (state, c, next) {
            (JsoncState::Code, '/', Some('/')) => {
                state = JsoncState::Line;
                out.push(' ');
            }
            (JsoncState::Code, '/', Some('*')) => {
                chars.next();
                state = JsoncState::Block;
                out.push_str("  ");
            }
            (JsoncState::Line, '\n', _) => {
                state = JsoncState::Code;
                out.push(c);
            }
            (JsoncState::Block, '*', Some('/')) => {
                chars.next();
                state = JsoncState::Code;
                out.push_str("  ");
            }
            (JsoncState::Line | JsoncState::Block, ..) => out.push(blank),
            (JsoncState::Text, '\\', Some(escaped)) => {
                chars.next();
                out.extend([c, escaped]);
            }
            (JsoncState::Code | JsoncState::Text, '"', _) => {
                state = if matches!(state, JsoncState::Code) {
                    JsoncState::Text
                } else {
                    JsoncState::Code
                };
                out.push(c);
            }
            (JsoncState::Code | JsoncState::Text, ..) => out.push(c),
        }
    }
    out
}

#[derive(Clone, Copy)]
enum JsoncState {
    Code,
    Text,
    Line,
    Block,
}

fn without_trailing_commas(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut in_text = false;
    let mut escaped = false;
    // Position of the last comma, while only whitespace has followed it.
    let mut comma = None;
    for c in text.chars() {
        match c {
            _ if in_text => {
                in_text = escaped || c != '"';
                escaped = c == '\\' && !escaped;
            }
            '"' => (in_text, comma) = (true, None),
            ',' => comma = Some(out.len()),
            '}' | ']' => {
                if let Some(place) = comma.take().and_then(|comma: usize| out.get_mut(comma)) {
                    *place = ' ';
                }
            }
            c if c.is_whitespace() => {}
            _ => comma = None,
        }
        out.push(c);
    }
    out.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_go_and_texts_stay() {
        let text = "{ // a \"b\"\n \"x\": \"//,]\\\"\", /* , */ \"y\": [1, 2, ], }";
        let json: serde_json::Value = serde_json::from_str(&to_json(text)).unwrap();
        assert_eq!(json, serde_json::json!({"x": "//,]\"", "y": [1, 2]}));
        assert_eq!(to_json("a/*b\nc*/d//e"), "a   \n   d   ");
    }
}

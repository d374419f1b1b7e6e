//! Reads server-sent events as an SDK does.

/// An event: its name, and its data.
pub(crate) type Event = (String, String);

/// The events of a complete stream. Comments are left out.
pub(crate) fn events(stream: &str) -> Vec<Event> {
    assert!(stream.is_empty() || stream.ends_with("\n\n"), "the last event is cut: {stream:?}");
    let frames = stream.split("\n\n").filter(|frame| !frame.is_empty());
    let read = frames.filter_map(|frame| {
        let mut name = String::new();
        let mut data: Option<String> = None;
        for line in frame.lines() {
            match line.split_once(": ").unwrap_or((line, "")) {
                ("event", value) => value.clone_into(&mut name),
                ("data", value) => match &mut data {
                    Some(data) => *data = format!("{data}\n{value}"),
                    None => data = Some(value.to_owned()),
                },
                ("" | ":", _) => {}
                (field, _) if field.starts_with(':') => {}
                (field, _) => panic!("unknown field {field:?} in {frame:?}"),
            }
        }
        data.map(|data| (name, data))
    });
    read.collect()
}

//! `current_time`.

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit};
use serde_json::{Map, Value, json};
use switchboard_model::{ToolDescriptor, ToolResult};

use super::{LocalTool, described};

#[derive(Debug)]
pub(super) struct CurrentTime;

impl LocalTool for CurrentTime {
    fn descriptor(&self) -> ToolDescriptor {
        described(
            "current_time",
            "Tells the current date and time",
            &json!({
                "type": "object",
                "properties": {"timezone": {
                    "type": "string",
                    "description": "An IANA time zone such as Europe/Berlin; UTC when left out",
                }},
                "additionalProperties": false,
            }),
        )
    }

    fn run(&self, arguments: Map<String, Value>) -> BoxFuture<'static, ToolResult> {
        let name = arguments.get("timezone").and_then(Value::as_str).unwrap_or("UTC").to_owned();
        async move {
            match tell(Timestamp::now(), &name) {
                Some(text) => ToolResult {
                    structured: Some(json!({"time": text, "timezone": name})),
                    ..ToolResult::text(text)
                },
                None => ToolResult::error(format!(
                    "unknown time zone '{name}'; use an IANA name such as Europe/Berlin"
                )),
            }
        }
        .boxed()
    }
}

fn tell(now: Timestamp, zone: &str) -> Option<String> {
    let zone = if zone == "UTC" { TimeZone::UTC } else { TimeZone::get(zone).ok()? };
    let now = now.to_zoned(zone).round(Unit::Second).ok()?;
    Some(now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_told_in_the_zone_that_was_asked_for() {
        let moment: Timestamp = "2026-07-28T12:00:00.4Z".parse().unwrap();
        assert_eq!(tell(moment, "UTC").unwrap(), "2026-07-28T12:00:00+00:00");
        assert_eq!(tell(moment, "Europe/Berlin").unwrap(), "2026-07-28T14:00:00+02:00");
        assert_eq!(tell(moment, "Mars/Olympus"), None);
    }
}

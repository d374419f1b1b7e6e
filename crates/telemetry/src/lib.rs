//! Log lines on standard error, metrics for Prometheus, and spans for an OpenTelemetry collector.

mod logging;
mod metrics;
mod plain_fields;
mod plain_text;
mod spans;

pub use logging::{LogFormat, LogOptions, init_logging};
pub use metrics::{
    CallFinished, HttpFace, MetricsPage, ToolMeter, app_turn_ended, board_lease, boards_seen,
    build_info, call_started, catalog_published, content_check_skipped, content_checked,
    http_answered, install_metrics, model_answered, records_dropped, records_pruned, server_state,
    slots_held, slots_traded, source_fetched, store_up, store_write_failed, tasks_alive,
    tls_certificate_ends, tls_reload_failed, turn_ended,
};
pub use plain_text::{escape_controls, escape_to_line};
pub use spans::{Tracing, call_span, end_call_span, end_model_span, model_span};

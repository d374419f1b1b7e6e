//! What the program says about itself: log lines on standard error and metrics for Prometheus.

mod logging;
mod metrics;

pub use logging::{LogFormat, LogOptions, init_logging};
pub use metrics::{
    CallFinished, MetricsPage, call_started, catalog_published, install_metrics, records_dropped,
    server_state,
};

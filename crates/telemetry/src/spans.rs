//! Spans of calls and model requests for an OpenTelemetry collector, named by the `mcp.*` and `gen_ai.*` conventions.

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing::span::Span;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

/// The target of the exported spans; nothing else is exported.
const TARGET: &str = "switchboard::spans";

/// The standard OpenTelemetry variables that name a collector.
const ENDPOINT_VARIABLES: [&str; 2] =
    ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// Exports spans until it is dropped, if a collector is configured.
#[derive(Debug, Default)]
pub struct Tracing(Option<SdkTracerProvider>);

impl Tracing {
    /// A layer for the subscriber, and the handle that keeps it running. Starts nothing without a collector.
    pub(crate) fn from_environment<S>() -> (Option<impl Layer<S>>, Self)
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let named = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if !ENDPOINT_VARIABLES.iter().any(named) {
            return (None, Self(None));
        }
        let Ok(exporter) = SpanExporter::builder().with_http().build() else {
            return (None, Self(None));
        };
        let us = Resource::builder().with_service_name("switchboard").build();
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(us).build();
        let layer = tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("switchboard"))
            .with_filter(filter_fn(|metadata| metadata.target() == TARGET));
        (Some(layer), Self(Some(provider)))
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        if let Some(provider) = self.0.take() {
            // If the collector is unreachable, only its spans are lost.
            let _collector_is_away = provider.shutdown();
        }
    }
}

/// The span of one tool call. It costs nothing without a collector.
pub fn call_span(server: &str, tool: &str) -> Span {
    tracing::info_span!(
        target: TARGET,
        "tools/call",
        otel.name = format!("tools/call {tool}"),
        otel.kind = "client",
        otel.status_code = tracing::field::Empty,
        mcp.method.name = "tools/call",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = tool,
        switchboard.server = server,
        switchboard.outcome = tracing::field::Empty,
        error.type = tracing::field::Empty,
    )
}

/// Records the outcome of a call.
pub fn end_call_span(span: &Span, outcome: &'static str, is_ok: bool) {
    span.record("switchboard.outcome", outcome);
    if !is_ok {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", outcome);
    }
}

/// The span of one model request. It costs nothing without a collector.
pub fn model_span(provider: &str, kind: &str, model: &str) -> Span {
    tracing::info_span!(
        target: TARGET,
        "chat",
        otel.name = format!("chat {model}"),
        otel.kind = "client",
        otel.status_code = tracing::field::Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = kind,
        gen_ai.request.model = model,
        gen_ai.usage.input_tokens = tracing::field::Empty,
        gen_ai.usage.output_tokens = tracing::field::Empty,
        switchboard.provider = provider,
        error.type = tracing::field::Empty,
    )
}

/// Records the outcome of a model request.
pub fn end_model_span(span: &Span, outcome: &'static str, tokens: Option<(u64, u64)>) {
    if let Some((input, output)) = tokens {
        span.record("gen_ai.usage.input_tokens", input);
        span.record("gen_ai.usage.output_tokens", output);
    }
    if outcome != "ok" {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", outcome);
    }
}

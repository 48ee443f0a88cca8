//! Section `telemetry`: logs and spans.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::models::parsed_endpoint;
use super::{Problem, within};

#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    /// The log filter: a level (`error`, `warn`, `info`, `debug`, `trace`), or directives such as `info,tertulia=debug`.
    pub log: String,
    /// The format of log lines.
    pub log_format: LogFormat,
    /// The OTLP collector (HTTP) for spans and metrics: an http or https URL without `/v1/traces`. `None`: they are not exported.
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` overrides this key.
    pub otlp_endpoint: Option<String>,
    /// The maximum number of spans that wait for export (1 to 1,000,000). Further ones are dropped and counted. Each takes about half a kilobyte.
    pub span_queue: usize,
    /// The share of traces that is exported, from 0 to 1. Failed turns and actions of supervisors are always exported.
    pub sample_ratio: f64,
    /// Whether spans contain the text of messages.
    pub capture_content: bool,
    /// The `service.name` of exported spans and metrics.
    pub service_name: String,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Text for people.
    Text,
    /// One JSON object per line, for programs.
    Json,
}

impl Telemetry {
    /// Checks all values, and returns the first invalid one.
    pub fn check(&self) -> Result<(), Problem> {
        if let Err(error) = EnvFilter::try_new(&self.log) {
            return Err(Problem::new(
                "log",
                format!("is not a level or a list of directives such as info,tertulia=debug: {error}"),
            ));
        }
        let is_unknown = |word: &&str| !word.is_empty() && !word.contains('=') && word.parse::<LevelFilter>().is_err();
        if let Some(word) = self.log.split(',').map(str::trim).find(is_unknown).filter(|_| !self.log.contains('[')) {
            // EnvFilter would read it as the name of a module, and log nothing else.
            return Err(Problem::new(
                "log",
                format!("has {word:?}, must be error, warn, info, debug, trace or off, or such as info,tertulia=debug"),
            ));
        }
        if let Some(endpoint) = &self.otlp_endpoint {
            parsed_endpoint("otlp_endpoint", endpoint, "http://127.0.0.1:4318")?;
        }
        within("span_queue", self.span_queue, 1..=1_000_000)?;
        within("sample_ratio", self.sample_ratio, 0.0..=1.0)?;
        if self.service_name.trim().is_empty() {
            return Err(Problem::new("service_name", "is empty, must name the service, for example tertulia"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_filter_has_levels() {
        let check = |log: &str| Telemetry { log: log.to_owned(), ..crate::samples::defaults().telemetry.clone() }.check();

        for good in ["info", "WARN", "off", "info,tertulia=debug", "tertulia=trace", "info,tertulia[turn{channel=a}]=trace"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["warning", "verbose", "info,tertulia", "info,tertulia=loud"] {
            assert_eq!(check(bad).unwrap_err().key, "log", "{bad}");
        }
    }

    #[test]
    fn an_otlp_endpoint_is_a_url_without_secrets() {
        let check = |endpoint: &str| {
            let defaults = crate::samples::defaults().telemetry.clone();
            Telemetry { otlp_endpoint: Some(endpoint.to_owned()), ..defaults }
                .check()
                .map_err(|problem| format!("{} {}", problem.key, problem.message))
        };

        assert_eq!(check("http://127.0.0.1:4318"), Ok(()));
        assert_eq!(check("https://collector.example/otlp/"), Ok(()));
        for refused in ["", "collector:4318", "grpc://collector:4317", "http://ana:key@collector", "http://collector?key=1"] {
            let problem = check(refused).unwrap_err();
            assert!(problem.starts_with("otlp_endpoint ") && problem.contains("http://127.0.0.1:4318"), "{problem}");
        }
    }
}

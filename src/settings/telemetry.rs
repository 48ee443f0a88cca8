//! Settings of logs and spans.

use tracing_subscriber::EnvFilter;

use super::{Problem, within};

/// Section `telemetry`.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    /// What is logged: a level (`error`, `warn`, `info`, `debug`, `trace`), or directives such as `info,tertulia=debug`.
    pub log: String,
    /// How log lines look.
    pub log_format: LogFormat,
    /// So many spans wait for export at most (1 to 1,000,000); further ones are dropped and counted. Each takes about half a kilobyte.
    pub span_queue: usize,
    /// Which share of traces is exported, from 0 to 1; turns that failed and what supervisors do always are.
    pub sample_ratio: f64,
    /// Whether spans may hold what people and companions said.
    pub capture_content: bool,
    /// The `service.name` under which spans and metrics are exported.
    pub service_name: String,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line, for programs.
    Json,
}

impl Telemetry {
    /// Holds every value to what is allowed.
    pub fn check(&self) -> Result<(), Problem> {
        if let Err(error) = EnvFilter::try_new(&self.log) {
            return Err(Problem::new(
                "log",
                format!("is not a level or a list of directives such as info,tertulia=debug: {error}"),
            ));
        }
        within("span_queue", self.span_queue, 1..=1_000_000)?;
        within("sample_ratio", self.sample_ratio, 0.0..=1.0)?;
        if self.service_name.trim().is_empty() {
            return Err(Problem::new("service_name", "is empty, must name the service, for example tertulia"));
        }
        Ok(())
    }
}

//! The results of a check: lines about each subject, and the figures behind them.

use std::fmt::{self, Write as _};
use std::time::Duration;

use serde::Serialize;

use super::super::names;
use super::super::snowflake::Snowflake;
use crate::domain::text::{first, spaced};

/// The limit of channels named in a line. Further channels are only counted.
const MOST_NAMED: usize = 8;
/// The length limit of a line's text, in characters, because some of the text comes from Discord.
const MOST_CHARS: usize = 600;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The link that invites the bot. `None` if the application is unknown.
    pub invitation: Option<String>,
    #[serde(flatten)]
    pub figures: Figures,
    pub lines: Vec<Line>,
}

/// Figures that Discord returned, or that the check measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    pub bot: Option<Named>,
    pub application: Option<Named>,
    /// The number of servers that the bot is in. It is approximate if Discord's list of them fills a page or
    /// cannot be read.
    pub servers: Option<u64>,
    /// The number of connections that Discord recommends.
    pub shards: Option<u32>,
    /// The remaining identifies until the reset.
    pub identifies_left: Option<u32>,
    /// Seconds until the reset of the identifies.
    pub identifies_reset_in_secs: Option<u64>,
    /// The number of identifies allowed within five seconds.
    pub max_concurrency: Option<u32>,
    /// Milliseconds that the REST API takes to answer.
    pub answer_ms: Option<u64>,
    /// Milliseconds until the gateway sent HELLO.
    pub hello_ms: Option<u64>,
}

/// An id and a name without control characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Named {
    pub id: Snowflake,
    pub name: String,
}

/// The state of a line, ordered from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Good,
    /// It works with restrictions.
    Warning,
    Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    pub state: State,
    /// The subject: `discord`, `token`, `intents`, `permissions`, …
    pub about: &'static str,
    pub said: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub click: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Named>,
    /// All affected channels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<Named>,
}

impl Report {
    /// Whether Discord would work: no line is a problem.
    pub fn would_work(&self) -> bool {
        self.problems() == 0
    }

    pub fn problems(&self) -> usize {
        self.lines.iter().filter(|line| line.state == State::Problem).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        self.invitation.iter().try_for_each(|link| writeln!(f, "\nto invite the bot: {link}"))
    }
}

impl Named {
    /// Removes control characters from a name that Discord sent.
    pub(super) fn new(id: Snowflake, name: &str) -> Self {
        Self { id, name: names::plain(name) }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() { self.id.fmt(f) } else { f.write_str(&self.name) }
    }
}

impl Line {
    pub(super) fn good(about: &'static str, text: impl AsRef<str>) -> Self {
        Self::new(State::Good, about, text.as_ref())
    }

    pub(super) fn warning(about: &'static str, text: impl AsRef<str>) -> Self {
        Self::new(State::Warning, about, text.as_ref())
    }

    pub(super) fn problem(about: &'static str, text: impl AsRef<str>) -> Self {
        Self::new(State::Problem, about, text.as_ref())
    }

    pub(super) fn new(state: State, about: &'static str, text: &str) -> Self {
        let said = spaced(first(text, MOST_CHARS));
        Self { state, about, said, click: None, server: None, channels: Vec::new() }
    }

    pub(super) fn click(self, click: impl Into<String>) -> Self {
        Self { click: Some(click.into()), ..self }
    }

    /// Sets the server that the line is about.
    pub(super) fn of(self, server: &Named) -> Self {
        Self { server: Some(server.clone()), ..self }
    }

    pub(super) fn in_channels(self, channels: Vec<Named>) -> Self {
        Self { channels, ..self }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Good => "good",
            State::Warning => "warning",
            State::Problem => "problem",
        };
        write!(f, "{state:<8} {:<12} ", self.about)?;
        if let Some(server) = &self.server {
            write!(f, "{server}: ")?;
        }
        f.write_str(&self.said)?;
        let mut named = String::new();
        for channel in self.channels.iter().take(MOST_NAMED) {
            write!(named, "{}#{channel}", if named.is_empty() { "" } else { ", " })?;
        }
        if !named.is_empty() {
            let more = self.channels.len().saturating_sub(MOST_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            write!(f, " ({named}{more})")?;
        }
        self.click.iter().try_for_each(|click| write!(f, "\n{:21} > {click}", ""))
    }
}

/// Formats a duration: below a minute in seconds (rounded up), below an hour in whole minutes, otherwise in hours and minutes.
pub(super) fn span(time: Duration) -> String {
    let secs = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    match (secs / 3_600, secs / 60 % 60) {
        (0, 0) => format!("{secs} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_some_channels_counts_the_rest_and_says_what_to_click() {
        let named = |id, name: &str| Named::new(Snowflake::new(id).unwrap(), name);
        let channels: Vec<_> = (1..=10).map(|n| named(n, &format!("c{n}"))).collect();

        let line = Line::warning("permissions", "nobody can speak")
            .click("Click it.")
            .of(&named(7, "Ho\u{202e}me"))
            .in_channels(channels);

        assert_eq!(
            line.to_string(),
            "warning  permissions  Home: nobody can speak (#c1, #c2, #c3, #c4, #c5, #c6, #c7, #c8 and 2 more)\n                      > Click it."
        );
    }

    #[test]
    fn text_from_outside_is_cut_and_has_no_control_characters() {
        let line = Line::problem("token", format!("\u{1b}[31m{}", "x".repeat(10_000)));

        assert_eq!(line.said.chars().count(), MOST_CHARS);
        assert!(!line.to_string().contains('\u{1b}'));
    }

    #[test]
    fn a_duration_is_written_in_large_units() {
        let texts = [0.4, 59.0, 60.0, 3_599.0, 86_400.0].map(|secs| span(Duration::from_secs_f64(secs)));

        assert_eq!(texts, ["1 s", "59 s", "1 min", "59 min", "24 h 0 min"]);
    }
}

//! What was found: a line for each thing looked at, and the figures behind them.

use std::fmt::{self, Write as _};
use std::time::Duration;

use serde::Serialize;

use super::super::names;
use super::super::snowflake::Snowflake;
use crate::domain::text::is_invisible;

/// Channels that a line names; the rest is counted.
const MOST_NAMED: usize = 8;
/// A line's words are cut after so many characters: some of them are Discord's.
const MOST_WORDS: usize = 600;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The link that invites the bot; none if nobody knows which bot it is.
    pub invitation: Option<String>,
    /// The figures.
    #[serde(flatten)]
    pub told: Told,
    /// What is good and what is not.
    pub lines: Vec<Line>,
}

/// What Discord told.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Told {
    /// The bot's user.
    pub bot: Option<Named>,
    /// The application.
    pub application: Option<Named>,
    /// Servers that the bot is in; Discord's own count is about right.
    pub servers: Option<u64>,
    /// Connections that Discord recommends.
    pub shards: Option<u32>,
    /// Identifies that are left until the reset.
    pub identifies_left: Option<u32>,
    /// Seconds until there are all of them again.
    pub identifies_reset_in_secs: Option<u64>,
    /// Identifies that may be made within five seconds.
    pub max_concurrency: Option<u32>,
    /// Milliseconds that a REST answer takes.
    pub answer_ms: Option<u64>,
    /// Milliseconds until the gateway said HELLO.
    pub hello_ms: Option<u64>,
}

/// Something with an id and a name, made plain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Named {
    /// Its id.
    pub id: Snowflake,
    /// Its name.
    pub name: String,
}

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Good,
    /// It works, but for something.
    Warning,
    /// It does not work.
    Problem,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// How it stands.
    pub state: State,
    /// What it is about: `discord`, `token`, `intents`, `permissions`, …
    pub about: &'static str,
    /// What was found.
    pub said: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub click: Option<String>,
    /// In which server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Named>,
    /// In which channels, all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<Named>,
}

impl Report {
    /// Whether Discord would work: there is no problem.
    pub fn would_work(&self) -> bool {
        self.problems() == 0
    }

    /// How many problems there are.
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
    /// With a name of Discord's, made plain.
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
    pub(super) fn good(about: &'static str, said: impl AsRef<str>) -> Self {
        Self::new(State::Good, about, said.as_ref())
    }

    pub(super) fn warning(about: &'static str, said: impl AsRef<str>) -> Self {
        Self::new(State::Warning, about, said.as_ref())
    }

    pub(super) fn problem(about: &'static str, said: impl AsRef<str>) -> Self {
        Self::new(State::Problem, about, said.as_ref())
    }

    pub(super) fn new(state: State, about: &'static str, said: &str) -> Self {
        let said =
            said.chars().map(|char| if char.is_control() || is_invisible(char) { ' ' } else { char }).take(MOST_WORDS).collect();
        Self { state, about, said, click: None, server: None, channels: Vec::new() }
    }

    /// With what to do about it.
    pub(super) fn click(self, click: impl Into<String>) -> Self {
        Self { click: Some(click.into()), ..self }
    }

    /// In this server.
    pub(super) fn of(self, server: &Named) -> Self {
        Self { server: Some(server.clone()), ..self }
    }

    /// In these channels.
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

/// A span of time, in whole numbers of its largest units.
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
    fn a_line_says_what_to_click_and_names_some_channels_and_counts_the_rest() {
        let named = |id, name: &str| Named::new(Snowflake::new(id).unwrap(), name);
        let channels: Vec<_> = (1..=10).map(|n| named(n, &format!("c{n}"))).collect();

        let line =
            Line::warning("permissions", "nobody hears").click("Click it.").of(&named(7, "Ho\u{202e}me")).in_channels(channels);

        assert_eq!(
            line.to_string(),
            "warning  permissions  Home: nobody hears (#c1, #c2, #c3, #c4, #c5, #c6, #c7, #c8 and 2 more)\n                      > Click it."
        );
    }

    #[test]
    fn words_from_outside_are_bounded_and_obey_no_terminal() {
        let line = Line::problem("token", format!("\u{1b}[31m{}", "x".repeat(10_000)));

        assert_eq!(line.said.chars().count(), MOST_WORDS);
        assert!(!line.to_string().contains('\u{1b}'));
    }

    #[test]
    fn a_span_is_told_in_what_a_person_plans_with() {
        let told = [0.4, 59.0, 60.0, 3_599.0, 86_400.0].map(|secs| span(Duration::from_secs_f64(secs)));

        assert_eq!(told, ["1 s", "59 s", "1 min", "59 min", "24 h 0 min"]);
    }
}

//! Section `safety`: the AI disclosure, help in a crisis, moderation, and minors.

use std::collections::BTreeSet;
use std::sync::Arc;

use reqwest::Url;
use serde::Deserialize;

use super::Problem;
use crate::domain::id::GuildId;
use crate::domain::notice::Notice;
use crate::domain::text::one_line;

/// How a statement is handled if it could not be moderated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModerationFails {
    /// The statement is posted.
    Open,
    /// The statement is not posted.
    Closed,
}

impl ModerationFails {
    /// What happens to statements while the moderation service does not answer.
    pub const fn meanwhile(self) -> &'static str {
        match self {
            Self::Open => "statements are posted without being examined (safety.moderation_fails = \"open\")",
            Self::Closed => "no statements are posted (safety.moderation_fails = \"closed\")",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Safety {
    /// How often people receive the disclosure that companions are AI.
    pub notice: Notice,
    /// The operator of this server, shown in the disclosure: 1 to 100 characters in one line. `None`: the operator is not named.
    pub operator: Option<Arc<str>>,
    /// The address of the privacy text: an absolute URL of at most 200 characters.
    pub privacy: Option<Arc<str>>,
    /// Whether a person at risk is shown where to find help, instead of a companion's answer.
    pub crisis: bool,
    /// The help text that is shown then: 1 to 1,500 characters. `None`: a built-in text in the reader's language.
    pub crisis_text: Option<Arc<str>>,
    /// Whether a room is notified that a person was shown the help text.
    pub tell: bool,
    /// How a statement is handled if the moderation service does not answer.
    pub moderation_fails: ModerationFails,
    /// The guilds with minors. Single rooms can be marked in addition.
    #[serde(default)]
    pub minors: BTreeSet<GuildId>,
}

impl Safety {
    /// Checks the texts, and returns the first problem.
    pub(super) fn check(&self) -> Result<(), Problem> {
        if let Some(operator) = &self.operator
            && (operator.trim().is_empty() || one_line(operator, 100) != operator.trim())
        {
            return Err(Problem::new("operator", "must have 1 to 100 visible characters in one line; remove it to name nobody"));
        }
        if let Some(privacy) = &self.privacy {
            let is_plain = privacy.len() <= 200 && privacy.bytes().all(|byte| byte.is_ascii_graphic());
            let is_url = Url::parse(privacy).is_ok_and(|url| ["https", "http"].contains(&url.scheme()) && url.has_host());
            if !(is_plain && is_url) {
                let message = "must be a URL of at most 200 characters that begins with https:// or http:// and has no spaces";
                return Err(Problem::new("privacy", message));
            }
        }
        if self.crisis_text.as_ref().is_some_and(|text| text.trim().is_empty() || text.chars().count() > 1_500) {
            return Err(Problem::new("crisis_text", "must have 1 to 1500 characters; remove it to use the built-in text"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_runs_the_server_is_one_line_and_the_privacy_text_has_an_address() {
        let safety = |operator: &str, privacy: &str| Safety {
            notice: Notice::Once,
            operator: Some(operator.into()),
            privacy: Some(privacy.into()),
            crisis: true,
            crisis_text: None,
            tell: false,
            moderation_fails: ModerationFails::Open,
            minors: BTreeSet::new(),
        };
        let wrong = |safety: Safety| safety.check().unwrap_err().key;

        assert_eq!(safety("The Book Club", "https://club.example/privacy").check(), Ok(()));
        assert_eq!(Safety { operator: None, privacy: None, ..safety("", "") }.check(), Ok(()));
        for operator in [" ", "two\nlines", "turned \u{202e}round", &"x".repeat(101)] {
            assert_eq!(wrong(safety(operator, "https://club.example")), "operator", "{operator:?}");
        }
        for privacy in ["club.example", "ftp://club.example", "https://", "https://club.example/a b", &"x".repeat(201)] {
            assert_eq!(wrong(safety("Us", privacy)), "privacy", "{privacy:?}");
        }
    }
}

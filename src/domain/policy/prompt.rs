//! Section `prompt`: the texts and sizes of prompts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use serde::Deserialize;

use super::Problem;
use super::zone::Zone;
use crate::answer::Words;
use crate::id::GuildId;
use crate::trigger::Trigger;

/// Section `prompt`. Each text is one line of at most 300 characters.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// For a decision and a statement of an addressed companion.
    pub direct_address: String,
    /// For a decision about an interjection, and for its statement. `{count}` is replaced by the number of messages.
    pub interjection: String,
    /// For a decision and a statement after another companion has spoken. `{name}` is replaced by that companion's name.
    pub turn: String,
    /// For a decision and a statement after a long silence. `{minutes}` is replaced by its duration in minutes.
    pub silence: String,
    /// For a statement of a companion that a person chose to speak next.
    pub chosen: String,
    /// For a statement that acknowledges an event.
    pub event: String,
    /// The question at the end of a decision's prompt after a lull, a long silence or another companion's statement. The answer format is appended.
    pub question: String,
    /// Like `question`, for an addressed companion.
    pub direct_address_question: String,
    /// Like `question`, for an interjection.
    pub interjection_question: String,
    /// Whether an answer gives its reason before YES or NO.
    pub reason_first: bool,
    /// Whether a statement's prompt shows the reason of the decision to speak.
    pub show_reason: bool,
    /// For a statement that interjects.
    pub unsolicited: String,
    /// For a statement after a direct address, an event or another companion's statement.
    pub solicited: String,
    /// For a statement that should prepare the end of the conversation (docs/design/closing.md C-2).
    pub pre_closing: String,
    /// For a statement that should say goodbye.
    pub closing: String,
    /// For decisions and statements while the conversation repeats itself.
    pub repetition: String,
    /// One sentence for each interjection level.
    pub tone: Tone,
    /// Words that count as YES in an answer. 1 to 20 words, each of 1 to 20 letters or digits, in any case. The prompt asks for the first one.
    pub yes_words: Vec<Cow<'static, str>>,
    /// Words that count as NO, like `yes_words`.
    pub no_words: Vec<Cow<'static, str>>,
    /// The form of a decision's prompt.
    pub decision: DecisionForm,
    /// The maximum size of a decision's prompt in tokens, 1,500 to 1,000,000. A token is estimated as four ASCII or two other characters.
    pub decision_tokens: usize,
    /// The maximum size of a statement's prompt in tokens, 1,500 to 1,000,000.
    pub statement_tokens: usize,
    /// The maximum size of recalled older messages in a statement's prompt, in tokens, 0 (none) to 100,000. They are a part of `statement_tokens`.
    pub recall_tokens: usize,
    /// The maximum size of entries of lorebooks in a statement's prompt, in tokens, 0 (none) to 100,000. They are a part of `statement_tokens`.
    pub lore_tokens: usize,
    /// The maximum size of a summary's prompt in tokens, 1,500 to 1,000,000.
    pub summary_tokens: usize,
    /// The maximum size of the side model's answer in tokens, 16 to 100,000.
    pub max_side_answer_tokens: u32,
    /// The maximum size of the main model's answer in tokens, 16 to 100,000.
    pub max_main_answer_tokens: u32,
    /// The time zone for times in prompts. `None`: UTC.
    pub time_zone: Option<Zone>,
    /// Like `time_zone`, for single guilds, by id.
    pub guild_time_zones: BTreeMap<GuildId, Zone>,
    /// The number of newly settled messages after which the rolling summary is updated, 1 to 100,000.
    pub summary_after: u64,
}

/// The form of a decision's prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionForm {
    /// With all explanations, and with the persona if it fits.
    Full,
    /// Short explanations and the brief of the persona, for a model on a slow computer.
    Short,
}

/// One sentence for each interjection level (docs/design/gate.md G-26).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tone {
    /// For companions that interject after about 15 messages.
    pub very_quiet: String,
    /// For companions that interject after about 12 messages.
    pub quiet: String,
    /// For companions that interject after about 9 messages.
    pub average: String,
    /// For companions that interject after about 6 messages.
    pub eager: String,
    /// For companions that interject after about 3 messages.
    pub very_eager: String,
}

impl Tone {
    /// The sentence for an interjection level by its name in settings. Empty for an unknown name.
    pub fn of(&self, level: &str) -> &str {
        match level {
            "very_quiet" => &self.very_quiet,
            "quiet" => &self.quiet,
            "average" => &self.average,
            "eager" => &self.eager,
            "very_eager" => &self.very_eager,
            _ => "",
        }
    }
}

impl Prompt {
    /// The time zone of a guild.
    pub fn zone_of(&self, guild: &GuildId) -> &TimeZone {
        self.guild_time_zones.get(guild).map_or_else(|| self.zone(), Zone::time_zone)
    }

    /// The default time zone of guilds.
    pub fn zone(&self) -> &TimeZone {
        static UTC: TimeZone = TimeZone::UTC;
        self.time_zone.as_ref().map_or(&UTC, Zone::time_zone)
    }

    /// These settings, with all prompts limited to this number of tokens.
    pub fn within(&self, room: usize) -> Cow<'_, Self> {
        if self.decision_tokens.max(self.statement_tokens).max(self.summary_tokens) <= room {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self {
            decision_tokens: self.decision_tokens.min(room),
            statement_tokens: self.statement_tokens.min(room),
            summary_tokens: self.summary_tokens.min(room),
            recall_tokens: self.recall_tokens.min(room / 10),
            lore_tokens: self.lore_tokens.min(room / 10),
            ..self.clone()
        })
    }

    /// Whether decisions use the short form.
    pub fn is_short(&self) -> bool {
        self.decision == DecisionForm::Short
    }

    /// The words for YES and NO in answers, and their position.
    pub fn verdict_words(&self) -> Words<'_> {
        Words { yes: &self.yes_words, no: &self.no_words, verdict_first: !self.reason_first }
    }

    /// The question at the end of a decision's prompt (docs/design/gate.md G-27).
    pub fn question_for(&self, trigger: Trigger) -> &str {
        match trigger {
            Trigger::DirectAddress => &self.direct_address_question,
            Trigger::Interjection => &self.interjection_question,
            Trigger::Turn | Trigger::Lull | Trigger::Silence | Trigger::Chosen | Trigger::Event => &self.question,
        }
    }

    /// The sentence in a statement's prompt that says whether the statement was asked for. Empty after a lull or a long silence
    /// (docs/design/speaking.md S-3).
    pub fn manner_for(&self, trigger: Trigger) -> &str {
        match trigger {
            Trigger::Interjection => &self.unsolicited,
            Trigger::DirectAddress | Trigger::Turn | Trigger::Chosen | Trigger::Event => &self.solicited,
            Trigger::Lull | Trigger::Silence => "",
        }
    }

    /// Checks lengths, placeholders and ranges, and returns the first problem.
    pub fn check(&self) -> Result<(), Problem> {
        check_sentence("direct_address", &self.direct_address, "")?;
        check_sentence("interjection", &self.interjection, "{count}")?;
        check_sentence("turn", &self.turn, "{name}")?;
        check_sentence("silence", &self.silence, "{minutes}")?;
        check_sentence("chosen", &self.chosen, "")?;
        check_sentence("event", &self.event, "")?;
        for (key, question) in [
            ("question", &self.question),
            ("direct_address_question", &self.direct_address_question),
            ("interjection_question", &self.interjection_question),
        ] {
            check_sentence(key, question, "")?;
            if question.trim().is_empty() {
                return Err(Problem::new(key, "is empty, must ask whether to speak"));
            }
        }
        check_sentence("unsolicited", &self.unsolicited, "")?;
        check_sentence("solicited", &self.solicited, "")?;
        check_sentence("pre_closing", &self.pre_closing, "")?;
        check_sentence("closing", &self.closing, "")?;
        check_sentence("repetition", &self.repetition, "")?;
        check_sentence("tone.very_quiet", &self.tone.very_quiet, "")?;
        check_sentence("tone.quiet", &self.tone.quiet, "")?;
        check_sentence("tone.average", &self.tone.average, "")?;
        check_sentence("tone.eager", &self.tone.eager, "")?;
        check_sentence("tone.very_eager", &self.tone.very_eager, "")?;
        check_words("yes_words", &self.yes_words, &self.no_words)?;
        check_words("no_words", &self.no_words, &[])?;
        check_range("decision_tokens", self.decision_tokens as u64, 1_500, 1_000_000)?;
        check_range("statement_tokens", self.statement_tokens as u64, 1_500, 1_000_000)?;
        check_range("recall_tokens", self.recall_tokens as u64, 0, 100_000)?;
        check_range("lore_tokens", self.lore_tokens as u64, 0, 100_000)?;
        check_range("summary_tokens", self.summary_tokens as u64, 1_500, 1_000_000)?;
        check_range("max_side_answer_tokens", self.max_side_answer_tokens.into(), 16, 100_000)?;
        check_range("max_main_answer_tokens", self.max_main_answer_tokens.into(), 16, 100_000)?;
        check_range("summary_after", self.summary_after, 1, 100_000)
    }
}

/// Checks that a sentence is one line of at most 300 characters, with no placeholder except this one.
fn check_sentence(key: &str, sentence: &str, placeholder: &str) -> Result<(), Problem> {
    let problem = |message: String| Err(Problem::new(key, message));
    let length = sentence.chars().count();
    if length > 300 {
        return problem(format!("has {length} characters, must have at most 300"));
    }
    if sentence.chars().any(char::is_control) {
        return problem("has a line break or another control character, must be one line".into());
    }
    let rest = if placeholder.is_empty() { sentence.to_owned() } else { sentence.replace(placeholder, "") };
    if rest.contains(['{', '}']) {
        let allowed = if placeholder.is_empty() { "none is allowed here" } else { placeholder };
        return problem(format!("has braces that are not a placeholder (allowed: {allowed})"));
    }
    Ok(())
}

/// Checks that there are 1 to 20 words of letters and digits, and that none is also one of the opposite words.
fn check_words(key: &str, words: &[Cow<'_, str>], opposite: &[Cow<'_, str>]) -> Result<(), Problem> {
    let problem = |message: String| Err(Problem::new(key, message));
    if !(1..=20).contains(&words.len()) {
        return problem(format!("has {} words, must have 1 to 20", words.len()));
    }
    for word in words {
        let length = word.chars().count();
        if !(1..=20).contains(&length) || !word.chars().all(char::is_alphanumeric) {
            return problem(format!("has {word:?}, must have words of 1 to 20 letters or digits"));
        }
        if opposite.iter().any(|other| other.to_lowercase() == word.to_lowercase()) {
            return problem(format!("has {word:?}, which is one of the opposite words, too"));
        }
    }
    Ok(())
}

fn check_range(key: &str, value: u64, least: u64, most: u64) -> Result<(), Problem> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Problem::new(key, format!("is {value}, must be from {least} to {most}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_allowed() {
        assert_eq!(defaults().check(), Ok(()));
    }

    #[test]
    fn an_invalid_value_is_named_by_its_key() {
        let mut long = defaults();
        long.turn = "x".repeat(301);
        let mut unknown = defaults();
        unknown.direct_address = "{name} was addressed".into();
        let mut broken = defaults();
        broken.tone.quiet = "a\nb".into();
        let mut goodbye = defaults();
        goodbye.closing = "bye, {name}".into();
        let mut small = defaults();
        small.decision_tokens = 10;
        let mut silent = defaults();
        silent.interjection_question = " ".into();

        for (settings, key) in [
            (long, "turn"),
            (unknown, "direct_address"),
            (broken, "tone.quiet"),
            (goodbye, "closing"),
            (small, "decision_tokens"),
            (silent, "interjection_question"),
        ] {
            assert_eq!(settings.check().unwrap_err().key, key);
        }
    }

    fn defaults() -> Prompt {
        crate::samples::default_policies().prompt.clone()
    }
}

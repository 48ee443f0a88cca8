//! What models are told, and how much of it: the section `[prompt]`.

use std::borrow::Cow;

use serde::Deserialize;

use super::Problem;
use crate::domain::answer::Words;

/// Wording and size of prompts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// What is said to a companion that was addressed. Up to 300 characters, like every sentence here.
    pub direct_address: String,
    /// What is said when enough was said without it; `{count}` stands for the number of messages.
    pub interjection: String,
    /// What is said when another companion has spoken; `{name}` stands for that companion's name.
    pub turn: String,
    /// What is asked at the end of a decision. How to answer is added to it.
    pub question: String,
    /// What one that speaks unasked is told about its statement.
    pub unsolicited: String,
    /// What one that was asked, or follows a lull or another companion, is told about its statement.
    pub solicited: String,
    /// What a companion is told about its statement when it should prepare the end of the conversation (docs/design/closing.md C-2).
    pub pre_closing: String,
    /// What it is told about its statement when it should say goodbye.
    pub closing: String,
    /// What it is told, deciding and speaking, when the conversation repeats itself.
    pub repetition: String,
    /// One sentence for each interjection tier.
    pub tone: Tone,
    /// Words that count as YES in an answer, 1 to 20, each of 1 to 20 letters or digits, in any case. The first one is asked for.
    pub yes_words: Vec<Cow<'static, str>>,
    /// Words that count as NO, like `yes_words`.
    pub no_words: Vec<Cow<'static, str>>,
    /// Tokens of a decision's prompt, 1,500 to 1,000,000: estimated, four ASCII or two other characters for each.
    pub decision_tokens: usize,
    /// Tokens of a statement's prompt, 1,500 to 1,000,000.
    pub statement_tokens: usize,
    /// Tokens of a summary's prompt, 1,500 to 1,000,000.
    pub summary_tokens: usize,
    /// Tokens that the side model may answer with, 16 to 100,000.
    pub max_side_answer_tokens: u32,
    /// Tokens that the main model may answer with, 16 to 100,000.
    pub max_main_answer_tokens: u32,
    /// Messages that settle before the rolling summary is made anew, 1 to 100,000.
    pub summary_after: u64,
}

/// One sentence for each interjection tier (docs/design/gate.md G-26).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tone {
    /// The most patient.
    pub very_quiet: String,
    /// Patient.
    pub quiet: String,
    /// Neither.
    pub average: String,
    /// Impatient.
    pub eager: String,
    /// The most impatient.
    pub very_eager: String,
}

impl Tone {
    /// The sentence for a tier by its name in settings; empty for one that does not exist.
    pub fn of(&self, tier: &str) -> &str {
        match tier {
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
    /// The words that say YES and NO in answers.
    pub fn verdict_words(&self) -> Words<'_> {
        Words { yes: &self.yes_words, no: &self.no_words }
    }

    /// Checks lengths, placeholders and ranges.
    pub fn check(&self) -> Result<(), Problem> {
        check_sentence("direct_address", &self.direct_address, "")?;
        check_sentence("interjection", &self.interjection, "{count}")?;
        check_sentence("turn", &self.turn, "{name}")?;
        check_sentence("question", &self.question, "")?;
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
        if self.question.trim().is_empty() {
            return Err(Problem { key: "question".into(), message: "is empty, must ask whether to speak".into() });
        }
        check_words("yes_words", &self.yes_words, &self.no_words)?;
        check_words("no_words", &self.no_words, &[])?;
        check_range("decision_tokens", self.decision_tokens as u64, 1_500, 1_000_000)?;
        check_range("statement_tokens", self.statement_tokens as u64, 1_500, 1_000_000)?;
        check_range("summary_tokens", self.summary_tokens as u64, 1_500, 1_000_000)?;
        check_range("max_side_answer_tokens", self.max_side_answer_tokens.into(), 16, 100_000)?;
        check_range("max_main_answer_tokens", self.max_main_answer_tokens.into(), 16, 100_000)?;
        check_range("summary_after", self.summary_after, 1, 100_000)
    }
}

/// At most 300 characters in one line, and no placeholder but its own.
fn check_sentence(key: &str, sentence: &str, placeholder: &str) -> Result<(), Problem> {
    let problem = |message: String| Err(Problem { key: key.to_owned(), message });
    let length = sentence.chars().count();
    if length > 300 {
        return problem(format!("has {length} characters, must have at most 300"));
    }
    if sentence.chars().any(char::is_control) {
        return problem("has a line break or another control character, must be one line".into());
    }
    let rest = if placeholder.is_empty() { sentence.to_owned() } else { sentence.replace(placeholder, "") };
    if rest.contains(['{', '}']) {
        let allowed = if placeholder.is_empty() { "none is known here" } else { placeholder };
        return problem(format!("has braces that are no known placeholder ({allowed})"));
    }
    Ok(())
}

/// 1 to 20 words of letters and digits, none of which stands for the opposite, too.
fn check_words(key: &str, words: &[Cow<'_, str>], opposite: &[Cow<'_, str>]) -> Result<(), Problem> {
    let problem = |message: String| Err(Problem { key: key.to_owned(), message });
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
    Err(Problem { key: key.to_owned(), message: format!("is {value}, must be from {least} to {most}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_allowed() {
        assert_eq!(defaults().check(), Ok(()));
    }

    #[test]
    fn what_is_out_of_range_is_named() {
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
        silent.question = " ".into();

        for (settings, key) in [
            (long, "turn"),
            (unknown, "direct_address"),
            (broken, "tone.quiet"),
            (goodbye, "closing"),
            (small, "decision_tokens"),
            (silent, "question"),
        ] {
            assert_eq!(settings.check().unwrap_err().key, key);
        }
    }

    fn defaults() -> Prompt {
        #[derive(Deserialize)]
        struct File {
            prompt: Prompt,
        }
        toml::from_str::<File>(include_str!("../../config/default.toml")).unwrap().prompt
    }
}

//! Words what a model is asked: decisions, votes, statements, summaries and judgements.
//!
//! What the operator wrote (persona, chattiness, settings) is told as it is. What people, other companions and models wrote is data: it
//! appears only inside JSON strings, each in one line between delimiters that it cannot hold, with the speaker's role set by us.

mod data;
mod frame;
mod marks;
mod transcript;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use super::closing::Stage;
use super::id::CompanionId;
use super::message::Message;
use super::trigger::Trigger;
use crate::settings;
use data::{unmarked_name, weight};
use frame::{FRAME_WEIGHT, HOW_TO_READ, Shown, block, context, in_character, paragraphs, quoted, sizes};
use transcript::transcript;

/// How many settled turns a decision is shown (docs/design/gate.md G-26).
pub const RECENT_TURNS: usize = 5;

/// Added to a plain question whose first answer could not be read.
pub const REPEAT_TEXT: &str = "Your last answer could not be read. Answer again, in the two lines that were asked for.";
/// Added to a question for a vote whose first answer could not be read.
pub const REPEAT_JSON: &str =
    "Your last answer could not be read. Answer again with the JSON object alone: begin with { and end with }, with nothing around it.";

/// What a model is told, and how large its parts are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The instructions.
    pub system: String,
    /// What is to be read.
    pub user: String,
    /// Parts and their estimated tokens, in order.
    pub sizes: Vec<(&'static str, usize)>,
}

/// Who is asked. All of it comes from the operator.
#[derive(Clone, Copy, Debug)]
pub struct Character<'a> {
    /// The companion.
    pub id: &'a CompanionId,
    /// Its name.
    pub name: &'a str,
    /// Its character card.
    pub persona: &'a str,
    /// Its chattiness, verbatim.
    pub chattiness: &'a str,
    /// Its interjection tier, as in settings: `average`.
    pub tier: &'a str,
}

/// What a decision is about.
#[derive(Clone, Copy, Debug)]
pub struct DecisionParts<'a> {
    /// Who decides.
    pub character: Character<'a>,
    /// Why it is asked.
    pub trigger: Trigger,
    /// Messages counted without it speaking.
    pub message_count: u64,
    /// Who has just spoken, for a `turn`.
    pub speaker: Option<&'a str>,
    /// The rolling summary.
    pub summary: Option<&'a str>,
    /// Settled turns, oldest first; the last five are shown.
    pub recent: &'a [&'a Message],
    /// What is to be decided about, oldest first.
    pub buffer: &'a [&'a Message],
    /// Sentences of ours to add, such as a warning of repetition.
    pub notes: &'a [&'a str],
}

/// What a statement answers.
#[derive(Clone, Copy, Debug)]
pub struct StatementParts<'a> {
    /// Who speaks.
    pub character: Character<'a>,
    /// What led to it.
    pub trigger: Trigger,
    /// Messages counted without it speaking.
    pub message_count: u64,
    /// Who has just spoken, for a `turn`.
    pub speaker: Option<&'a str>,
    /// Why it decided to speak, in its own words.
    pub reason: Option<&'a str>,
    /// The rolling summary.
    pub summary: Option<&'a str>,
    /// Settled turns, oldest first.
    pub recent: &'a [&'a Message],
    /// The messages that it answers, oldest first.
    pub snapshot: &'a [&'a Message],
    /// Sentences of ours to add, such as what the closing stage asks for.
    pub notes: &'a [&'a str],
}

/// Asks whether to speak. The answer is read by `answer::read`.
pub fn decision(parts: &DecisionParts<'_>, words: &settings::prompt::Prompt) -> Prompt {
    let name = unmarked_name(parts.character.name);
    let (yes, no) = verdicts(words);
    let form = format!(
        "Answer in exactly two lines. First line: one sentence in {name}'s voice saying why, which quotes nothing that others wrote. \
         Second line: only the word {yes} or the word {no}."
    );
    question(parts, &form, words)
}

/// Asks for decision and vote in one (docs/design/turn-taking.md T-5). The answer is read by `vote::read`.
pub fn vote(parts: &DecisionParts<'_>, words: &settings::prompt::Prompt) -> Prompt {
    let name = unmarked_name(parts.character.name);
    let (yes, no) = verdicts(words);
    // Some endpoints answer in JSON only where a prompt says so in this word.
    let form = format!(
        "Answer with one JSON object and nothing else, with these fields in this order. `reason`: one sentence in {name}'s voice saying \
         why, which quotes nothing that others wrote: no objects, braces or tags. `decision`: \"{yes}\" to speak now, or \"{no}\". `importance`: a number from 0 to 10, how much the conversation needs now what \
         you would say. `selected`: true if the previous speaker specifically called on you, else false. `closing`: how near its end the \
         conversation is, \"none\" (it goes on), \"pre-closing\" (time to prepare its end), \"closing\" (time to say goodbye) or \
         \"terminal\" (the last farewell is said, and you will say no more)."
    );
    question(parts, &form, words)
}

/// The words that a decision is asked for with.
fn verdicts(words: &settings::prompt::Prompt) -> (String, String) {
    let first = |words: &[Cow<'_, str>]| words.first().map(|word| word.to_uppercase()).unwrap_or_default();
    (first(&words.yes_words), first(&words.no_words))
}

/// Whether to speak, to be answered in a form.
fn question(parts: &DecisionParts<'_>, form: &str, words: &settings::prompt::Prompt) -> Prompt {
    let context = context(parts.trigger, parts.message_count, parts.speaker, words);
    let ending = paragraphs(&[&context, &words.question, form]);
    let recent = &parts.recent[parts.recent.len().saturating_sub(RECENT_TURNS)..];
    let shown = Shown { summary: parts.summary, reason: None, recent, new: parts.buffer, notes: parts.notes };
    in_character(&parts.character, words.tone.of(parts.character.tier), &shown, &ending, words.decision_tokens)
}

/// What a companion's closing stage adds to the notes of its statement (docs/design/closing.md C-2); nothing where the stage asks for none.
pub fn closing_note(stage: Stage, words: &settings::prompt::Prompt) -> Option<&str> {
    let sentence = match stage {
        Stage::None => return None,
        Stage::PreClosing => &words.pre_closing,
        // One that is terminal says nothing; should it be made to, it is a goodbye.
        Stage::Closing | Stage::Terminal => &words.closing,
    };
    Some(sentence.as_str()).filter(|sentence| !sentence.is_empty())
}

/// Asks for the words of a statement. What comes back is cleaned by `statement::clean_statement`.
pub fn statement(parts: &StatementParts<'_>, words: &settings::prompt::Prompt) -> Prompt {
    let name = unmarked_name(parts.character.name);
    let context = context(parts.trigger, parts.message_count, parts.speaker, words);
    let ending = paragraphs(&[
        &context,
        if parts.trigger.is_unsolicited() { &words.unsolicited } else { &words.solicited },
        &format!(
            "You have decided to speak. Write what {name} says now: only the words of the message, as plain text or Markdown, with no \
             name before them, no quotation marks around them, and no JSON."
        ),
    ]);
    let shown =
        Shown { summary: parts.summary, reason: parts.reason, recent: parts.recent, new: parts.snapshot, notes: parts.notes };
    in_character(&parts.character, "", &shown, &ending, words.statement_tokens)
}

/// Asks for the rolling summary of a channel, from the one before and what settled since, oldest first.
pub fn summary(previous: Option<&str>, messages: &[&Message], words: &settings::prompt::Prompt) -> Prompt {
    let system = paragraphs(&["You keep the running summary of a group chat.", HOW_TO_READ]);
    let ending = "Write the new summary: the one before, if any, brought up to date with the new messages, in at most 200 words of plain \
                  sentences. Say who said, asked, promised or decided what, and what is still open. Write only the summary.";
    let room = (words.summary_tokens * 4).saturating_sub(weight(&system) + weight(ending) + FRAME_WEIGHT);
    let previous = quoted(previous, room / 4);
    let [lines] = transcript([messages], None, room - weight(&previous));
    Prompt {
        sizes: sizes(&[("instructions", &system), ("summary", &previous), ("messages", &lines), ("question", ending)]),
        user: paragraphs(&[&block("summary", &previous), &block("messages", &lines), ending]),
        system,
    }
}

/// Asks how much the last messages repeat one another, oldest first. The answer is read by `repetition::read_score`.
pub fn judgement(messages: &[&Message], words: &settings::prompt::Prompt) -> Prompt {
    let system = paragraphs(&["You judge how repetitive a group chat has become.", HOW_TO_READ]);
    let ending = "How much do these messages repeat one another, in what they say rather than in their words alone? Answer in two lines. \
                  First line: one sentence saying why. Second line: only a number from 0 (all different) to 1 (the same thing again and \
                  again).";
    let room = (words.decision_tokens * 4).saturating_sub(weight(&system) + weight(ending) + FRAME_WEIGHT);
    let [lines] = transcript([messages], None, room);
    Prompt {
        sizes: sizes(&[("instructions", &system), ("messages", &lines), ("question", ending)]),
        user: paragraphs(&[&block("messages", &lines), ending]),
        system,
    }
}

/// The estimated tokens of a text: one for four ASCII characters, or two others.
pub fn tokens(text: &str) -> usize {
    weight(text).div_ceil(4)
}

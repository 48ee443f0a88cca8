//! Builds the prompts of all questions to models: decisions, votes, statements, summaries, briefs and judgements.
//!
//! Text by the operator (persona, chattiness, settings) is included unchanged. Text by people, other companions and models is data. It appears only
//! inside JSON strings, each in one line between delimiters that it cannot contain, with the role of the speaker that the server sets.

mod card;
mod data;
mod frame;
pub mod room;
mod transcript;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use super::closing::Stage;
use super::id::CompanionId;
use super::message::Message;
use super::trigger::Trigger;
use crate::settings;
pub use card::brief;
use card::{for_decision, for_statement};
use data::{unmarked_name, weight};
use frame::{FRAME_WEIGHT, HOW_TO_READ, Shown, block, context, in_character, paragraphs, quoted, sizes};
pub use room::tokens;
use transcript::transcript;

/// The number of settled messages that a decision is shown (docs/design/gate.md G-26).
pub const RECENT_TURNS: usize = 5;

/// Added to a question whose first answer could not be read.
pub const REPEAT_JSON: &str = "Your last answer could not be read. Answer again with the JSON object alone: begin with { and end with }, with nothing around it.";

/// Added to the request for a statement whose first answer was no statement.
pub const REPEAT_WORDS: &str = "Your last answer was not a message that can be posted. Answer again with the words of the message alone: what you say, as plain text, without JSON, without a decision and without a call of a tool.";

/// The prompt for one question to a model, with the sizes of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The system message: the instructions.
    pub system: String,
    /// The user message: the conversation and the question.
    pub user: String,
    /// The parts in order, with their estimated tokens.
    pub sizes: Vec<(&'static str, usize)>,
}

/// The companion that is asked, as the operator describes it.
#[derive(Clone, Copy, Debug)]
pub struct Character<'a> {
    /// The companion's id.
    pub id: &'a CompanionId,
    /// The companion's name.
    pub name: &'a str,
    /// Its character card, unchanged.
    pub persona: &'a str,
    /// What decisions are given instead of a persona that is too long for them, if there is one.
    pub brief: Option<&'a str>,
    /// Its chattiness, unchanged.
    pub chattiness: &'a str,
    /// Its interjection level, as in the settings: `average`.
    pub tier: &'a str,
    /// How it speaks up, for statements; may be empty.
    pub tone: &'a str,
}

/// The input of a decision's prompt.
#[derive(Clone, Copy, Debug)]
pub struct DecisionParts<'a> {
    /// The companion that decides.
    pub character: Character<'a>,
    /// The trigger of the question.
    pub trigger: Trigger,
    /// The companion's closing stage.
    pub stage: Stage,
    /// The number of messages since the companion spoke last.
    pub message_count: u64,
    /// The minutes since something was said, for a `silence`.
    pub minutes: u64,
    /// The name of the companion that has just spoken, for a `turn`.
    pub speaker: Option<&'a str>,
    /// The rolling summary, if there is one.
    pub summary: Option<&'a str>,
    /// Settled messages, oldest first. The last five are shown.
    pub recent: &'a [&'a Message],
    /// The messages that the decision is about, oldest first.
    pub buffer: &'a [&'a Message],
    /// Sentences that the server adds, such as a warning of repetition.
    pub notes: &'a [&'a str],
}

/// The input of a statement's prompt.
#[derive(Clone, Copy, Debug)]
pub struct StatementParts<'a> {
    /// The companion that speaks.
    pub character: Character<'a>,
    /// The trigger that led to the statement.
    pub trigger: Trigger,
    /// The number of messages since the companion spoke last.
    pub message_count: u64,
    /// The minutes since something was said, for a `silence`.
    pub minutes: u64,
    /// The name of the companion that has just spoken, for a `turn`.
    pub speaker: Option<&'a str>,
    /// The reason that the companion gave for its YES.
    pub reason: Option<&'a str>,
    /// The rolling summary, if there is one.
    pub summary: Option<&'a str>,
    /// The messages since the end of the summary, oldest first.
    pub recent: &'a [&'a Message],
    /// The number of messages between the summary and `recent`, which do not fit.
    pub left_out: usize,
    /// The messages that it answers, oldest first.
    pub snapshot: &'a [&'a Message],
    /// Sentences that the server adds, such as the one for a closing stage.
    pub notes: &'a [&'a str],
    /// Whether the statement is spoken in a voice call.
    pub is_spoken: bool,
}

/// The prompt that asks whether to speak, for a decision and a vote in one (docs/design/turn-taking.md T-5). `vote::read` parses the answer.
pub fn vote(parts: &DecisionParts<'_>, words: &settings::prompt::Prompt) -> Prompt {
    let form = vote_form(&unmarked_name(parts.character.name), parts.stage, words);
    let context = context(parts.trigger, parts.message_count, parts.minutes, parts.speaker, words);
    let ending = paragraphs(&[&context, words.question_for(parts.trigger), &form]);
    let recent = &parts.recent[parts.recent.len().saturating_sub(RECENT_TURNS)..];
    let shown = Shown { summary: parts.summary, reason: None, recent, left_out: 0, new: parts.buffer, notes: parts.notes };
    in_character(&parts.character, &for_decision(&parts.character, words), &shown, &ending, words.decision_tokens)
}

/// The form of a vote. Its fields are in the order of [`vote_fields`].
fn vote_form(name: &str, stage: Stage, words: &settings::prompt::Prompt) -> String {
    let (yes, no) = verdicts(words);
    let reason = format!(
        "`reason`: one sentence in {name}'s voice saying why, which quotes nothing that others wrote: no objects, braces or tags."
    );
    let decision = format!("`decision`: \"{yes}\" to speak now, or \"{no}\".");
    let (first, second) = if words.reason_first { (reason, decision) } else { (decision, reason) };
    // Some endpoints answer in JSON only if the prompt contains this word.
    format!(
        "Answer with one JSON object and nothing else, with these fields in this order. {first} {second} `importance`: a number from 0 \
         to 10, how much the conversation needs now what you would say. `selected`: true if the previous speaker specifically called on \
         you, else false. `closing`: how near its end the conversation is for you, now \"{stage}\": \"none\" (it goes on), \"pre-closing\" \
         (time to prepare its end), \"closing\" (time to say goodbye) or \"terminal\" (the last farewell is said, and you will say no more)."
    )
}

/// The fields of a vote, in the order in which they are asked for.
pub fn vote_fields(words: &settings::prompt::Prompt) -> [&'static str; 5] {
    let [first, second] = if words.reason_first { ["reason", "decision"] } else { ["decision", "reason"] };
    [first, second, "importance", "selected", "closing"]
}

/// The words that a decision is asked for with.
fn verdicts(words: &settings::prompt::Prompt) -> (String, String) {
    let first = |words: &[Cow<'_, str>]| words.first().map(|word| word.to_uppercase()).unwrap_or_default();
    (first(&words.yes_words), first(&words.no_words))
}

/// The note that a closing stage adds to the prompt of a statement (docs/design/closing.md C-2). None if the stage needs no note.
pub fn closing_note(stage: Stage, words: &settings::prompt::Prompt) -> Option<&str> {
    let sentence = match stage {
        Stage::None => return None,
        Stage::PreClosing => &words.pre_closing,
        // A terminal companion says nothing. If it has to speak anyway, it says goodbye.
        Stage::Closing | Stage::Terminal => &words.closing,
    };
    Some(sentence.as_str()).filter(|sentence| !sentence.is_empty())
}

/// The prompt for the text of a statement. [`raw_answer`](crate::domain::raw_answer) takes the answer apart.
pub fn statement(parts: &StatementParts<'_>, words: &settings::prompt::Prompt) -> Prompt {
    let name = unmarked_name(parts.character.name);
    let context = context(parts.trigger, parts.message_count, parts.minutes, parts.speaker, words);
    let ending = paragraphs(&[&context, words.manner_for(parts.trigger), &statement_form(&name, parts.is_spoken)]);
    let shown = Shown {
        summary: parts.summary,
        reason: parts.reason,
        recent: parts.recent,
        left_out: parts.left_out,
        new: parts.snapshot,
        notes: parts.notes,
    };
    in_character(&parts.character, &for_statement(&parts.character, words), &shown, &ending, words.statement_tokens)
}

/// The form of a statement.
fn statement_form(name: &str, is_spoken: bool) -> String {
    if is_spoken {
        return format!(
            "You have decided to speak, aloud. Write what {name} says now: only the words, in whole sentences as people say them, with no \
             lists, links, emoji or Markdown, no name before them, no quotation marks around them, and no JSON."
        );
    }
    format!(
        "You have decided to speak. Write what {name} says now: only the words of the message, as plain text or Markdown, with no name \
         before them, no quotation marks around them, and no JSON."
    )
}

/// The prompt for the rolling summary of a channel, from the previous one and the messages that settled since, oldest first.
pub fn summary(previous: Option<&str>, messages: &[&Message], words: &settings::prompt::Prompt) -> Prompt {
    let system = paragraphs(&["You keep the running summary of a group chat.", HOW_TO_READ]);
    let ending = "Write the new summary: the one before, if any, brought up to date with the new messages, in at most 200 words of plain \
                  sentences. Say who said, asked, promised or decided what, and what is still open. Where a person goes by the name of a companion, say \
                  which of the two it was. Write only the summary.";
    let room = (words.summary_tokens * 4).saturating_sub(weight(&system) + weight(ending) + FRAME_WEIGHT);
    let previous = quoted(previous, room / 4);
    let [lines] = transcript([messages], 0, None, room - weight(&previous));
    Prompt {
        sizes: sizes(&[("instructions", &system), ("summary", &previous), ("messages", &lines), ("question", ending)]),
        user: paragraphs(&[&block("summary", &previous), &block("messages", &lines), ending]),
        system,
    }
}

/// The prompt that asks how much the last statements repeat each other. They are ordered oldest first. `repetition::read_score` parses the answer.
pub fn judgement(messages: &[&Message], words: &settings::prompt::Prompt) -> Prompt {
    let system = paragraphs(&["You judge how repetitive a group chat has become.", HOW_TO_READ]);
    let ending = "How much do these messages repeat one another, in what they say rather than in their words alone? Answer in two lines. \
                  First line: one sentence saying why. Second line: only a number from 0 (all different) to 1 (the same thing again and \
                  again).";
    let room = (words.decision_tokens * 4).saturating_sub(weight(&system) + weight(ending) + FRAME_WEIGHT);
    let [lines] = transcript([messages], 0, None, room);
    Prompt {
        sizes: sizes(&[("instructions", &system), ("messages", &lines), ("question", ending)]),
        user: paragraphs(&[&block("messages", &lines), ending]),
        system,
    }
}

//! Builds the prompts of all questions to models: decisions, votes, statements, summaries, briefs and judgements.
//!
//! Text by the operator (settings) is included unchanged. A persona, chattiness or tone may be a stranger's: what separates turns or parts is broken in it.
//! Text by people, other companions and models is data. It appears only
//! inside JSON strings, each in one line that it cannot leave, with the role of the speaker that the server sets. Only what a companion said itself
//! stands in its statements' prompts as plain words, in turns of its own.

mod card;
mod data;
mod form;
mod frame;
mod line;
pub mod note;
mod recalled;
pub mod room;
mod scene;
mod talk;
mod texts;
mod together;
mod transcript;
mod window;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::tz::TimeZone;

use super::closing::Stage;
use super::filter::Filtered;
use super::id::{CompanionId, Seq};
use super::message::{Message, Modality, Quoted};
use super::moment::Moment;
use super::trigger::Trigger;
use crate::policy;
pub use card::brief;
use card::for_decision;
use data::{unmarked_name, weight};
pub use form::{Extra, verdicts, vote_fields};
use form::{pass_form, statement_form, vote_form};
use frame::{block, context, paragraphs, quoted, sizes};
use note::choose_note;
pub use room::tokens;
use texts::{FRAME_WEIGHT, HOW_TO_READ, HOW_TO_READ_TURNS};
pub use together::{Asked, votes};
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
    /// The conversation and the question. The first and the last turn are a user's, and the two kinds take turns.
    pub turns: Vec<Turn>,
    /// The parts in order, with their estimated tokens.
    pub sizes: Vec<(&'static str, usize)>,
    /// The older messages that were recalled for it and are part of it, the best first.
    pub recalled: Vec<Seq>,
}

/// A message of a prompt after the instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// What others said, and what the server adds.
    User(String),
    /// What the companion itself said.
    Own(String),
}

impl Turn {
    pub fn text(&self) -> &str {
        let (Self::User(text) | Self::Own(text)) = self;
        text
    }
}

impl Prompt {
    fn new(system: String, user: String, sizes: Vec<(&'static str, usize)>) -> Self {
        Self { system, turns: vec![Turn::User(user)], sizes, recalled: Vec::new() }
    }

    /// The estimated tokens of the whole prompt.
    pub fn tokens(&self) -> usize {
        tokens(&self.system) + self.turns.iter().map(|turn| tokens(turn.text())).sum::<usize>()
    }
}

/// A message with its number and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// The number of its event.
    pub seq: Seq,
    /// When it was said.
    pub at: Moment,
    pub message: Arc<Message>,
    /// The number of the message that it replies to, if that is on record.
    pub reply_to: Option<Seq>,
    /// What is shown of that message with it.
    pub quoted: Option<Quoted>,
}

impl Said {
    /// A message that is shown without what it replies to.
    pub const fn new(seq: Seq, at: Moment, message: Arc<Message>) -> Self {
        Self { seq, at, message, reply_to: None, quoted: None }
    }
}

/// Where and when a companion is asked.
#[derive(Clone, Debug)]
pub struct Scene {
    pub now: Moment,
    /// The time zone in which times are told.
    pub zone: TimeZone,
    /// The other companions of the channel.
    pub others: Vec<Other>,
    /// Whether it is about words in a voice call.
    pub is_call: bool,
    /// What the channel is called, if it has a title.
    pub place: Option<Place>,
    /// Whether there are minors in it.
    pub has_minors: bool,
}

/// What people call a channel, and what it is for.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its title, with that of the channel or forum that it is in.
    pub title: Arc<str>,
    pub topic: Option<Arc<str>>,
}

/// Another companion of the channel.
#[derive(Clone, Debug)]
pub struct Other {
    pub name: Arc<str>,
    /// Its chattiness, of which the beginning is shown. `None`: nothing is known of it.
    pub chattiness: Option<Arc<str>>,
}

/// The companion that is asked, as the operator describes it.
#[derive(Clone, Copy, Debug)]
pub struct Character<'a> {
    pub id: &'a CompanionId,
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

/// What the conversation holds for a prompt: that of a decision, or of a statement.
#[derive(Clone, Debug)]
pub struct PromptInput {
    /// What led to the question or to the statement.
    pub trigger: Trigger,
    pub stage: Stage,
    pub modality: Modality,
    /// The number of messages since the companion spoke last.
    pub message_count: u64,
    /// The minutes since something was said, for a `silence`.
    pub minutes: u64,
    /// The name of the author of the newest message that it is about: for a `turn`, the companion that has just spoken.
    pub speaker: Option<Arc<str>>,
    /// Whether the conversation repeats itself.
    pub is_repetitive: bool,
    pub summary: Option<Arc<str>>,
    /// The messages before `buffer`, oldest first. Decisions show the last five, which are settled; statements as many as fit.
    pub recent: Vec<Said>,
    /// The messages that it is about, and the companion's own between them, oldest first.
    pub buffer: Vec<Said>,
    /// What the filters of endpoints refuse.
    pub filtered: Filtered,
    /// Whether somebody may be at risk, so that a vote is asked about that.
    pub about_risk: bool,
}

impl PromptInput {
    /// What a vote is asked for besides its usual fields.
    pub const fn extra(&self, is_call: bool) -> Extra {
        Extra { is_call, about_risk: self.about_risk }
    }

    /// The numbers of the first and the last message that are shown, or quoted. A summary shows everything before.
    pub fn shown(&self) -> (Seq, Seq) {
        let mut numbers = self.recent.iter().chain(&self.buffer).map(|said| said.seq);
        let first = numbers.next().unwrap_or(Seq::NONE);
        let last = numbers.next_back().unwrap_or(first);
        let quoted = self.buffer.iter().filter(|said| said.quoted.is_some()).filter_map(|said| said.reply_to);
        (if self.summary.is_some() { Seq::NONE } else { quoted.fold(first, Seq::min) }, last)
    }
}

/// The input of a statement's prompt.
#[derive(Clone, Debug)]
pub struct StatementInput {
    pub input: PromptInput,
    /// The reason that the companion gave for its YES.
    pub reason: Option<Arc<str>>,
    /// How often somebody wanted another statement in the place of one that was made.
    pub tries: u32,
    /// Whether it is spoken in a voice call.
    pub is_spoken: bool,
    /// Whether the model may say nothing instead.
    pub may_pass: bool,
    /// The newest event that the summary covers.
    pub summary_upto: Seq,
    /// The number of messages before `recent` that the summary does not cover.
    pub left_out: usize,
    /// Older messages that may be shown as recalled, the best first. Some may be among `recent`.
    pub recalled: Vec<Said>,
}

/// The prompt that asks whether to speak, for a decision and a vote in one (docs/design/turn-taking.md T-5). `vote::read` parses the answer.
pub fn vote(character: Character<'_>, scene: &Scene, input: &PromptInput, words: &policy::prompt::Prompt) -> Prompt {
    let form = vote_form(&unmarked_name(character.name), input.stage, input.extra(scene.is_call), words);
    let context = context(input.trigger, input.message_count, input.speaker.as_deref(), words);
    let ending = paragraphs(&[&context, words.question_for(input.trigger), &form]);
    let recent = &input.recent[input.recent.len().saturating_sub(RECENT_TURNS)..];
    // What the companion said itself is nothing new to it.
    let is_own = |said: &&Said| said.message.is_by(character.id);
    let earlier: Vec<&Said> = recent.iter().chain(input.buffer.iter().filter(is_own)).collect();
    let new: Vec<&Said> = input.buffer.iter().filter(|said| !is_own(said)).collect();
    let note = choose_note(input.trigger, Stage::None, input.is_repetitive).map(|note| note.sentence(input.minutes, words));
    let shown = frame::Shown {
        summary: input.summary.as_deref(),
        earlier: &earlier,
        new: &new,
        note: note.as_deref().unwrap_or_default(),
        scene,
    };
    frame::decision(&character, &for_decision(&character, words), &shown, &ending, words)
}

/// The prompt for the text of a statement. [`raw_answer`](crate::raw_answer) takes the answer apart.
pub fn statement(character: Character<'_>, scene: &Scene, statement: &StatementInput, words: &policy::prompt::Prompt) -> Prompt {
    let name = unmarked_name(character.name);
    let input = &statement.input;
    let context = context(input.trigger, input.message_count, input.speaker.as_deref(), words);
    let form = statement_form(&name, statement.is_spoken);
    let pass = if statement.may_pass { pass_form(&name) } else { String::new() };
    let ending = paragraphs(&[&context, words.manner_for(input.trigger), &form, &pass]);
    talk::statement(&character, scene, statement, &ending, words)
}

/// The texts of a statement's prompt that are not the companion's, nor anybody's message: no companion says them.
pub fn statement_texts(
    id: &CompanionId,
    name: &str,
    scene: &Scene,
    statement: &StatementInput,
    words: &policy::prompt::Prompt,
) -> Vec<String> {
    let input = &statement.input;
    let fixed = [
        HOW_TO_READ_TURNS,
        texts::HOW_TO_READ_TURNS_SHORT,
        texts::NEW,
        texts::OPENING,
        texts::SUMMARY,
        texts::MISSED,
        texts::REASON,
        texts::RECALLED,
        texts::MINORS,
    ];
    let context = context(input.trigger, input.message_count, input.speaker.as_deref(), words);
    let form = statement_form(&unmarked_name(name), statement.is_spoken);
    let reason = statement.reason.as_deref().unwrap_or_default().to_owned();
    let pass = pass_form(&unmarked_name(name));
    let scene = scene.sentences(id, &[], &[], words.statement_tokens);
    fixed
        .map(str::to_owned)
        .into_iter()
        .chain([context, words.manner_for(input.trigger).to_owned(), form, pass, reason, scene])
        .collect()
}

/// The message before which older ones may be recalled for a statement: the first that its prompt shows. None: nothing is to be recalled, because all
/// that was said is shown, or recall is turned off.
pub fn recalls_before(
    character: Character<'_>,
    scene: &Scene,
    statement: &StatementInput,
    words: &policy::prompt::Prompt,
) -> Option<Seq> {
    talk::recalls_before(&character, scene, statement, words)
}

/// The prompt for the rolling summary of a channel, from the previous one and the messages that settled since, oldest first. Times are told in this
/// zone.
pub fn summary(previous: Option<&str>, messages: &[Said], zone: &TimeZone, words: &policy::prompt::Prompt) -> Prompt {
    let system = paragraphs(&["You keep the running summary of a group chat.", HOW_TO_READ]);
    let ending = "Write the new summary: the one before, if any, brought up to date with the new messages, in at most 200 words of plain \
                  sentences. Say who said, asked, promised or decided what, and what is still open. Where a person goes by the name of a companion, say \
                  which of the two it was. Write only the summary.";
    let room = (words.summary_tokens * 4).saturating_sub(weight(&system) + weight(ending) + FRAME_WEIGHT);
    let previous = quoted(previous, room / 4);
    let messages: Vec<&Said> = messages.iter().collect();
    let [lines] = transcript([&messages], None, Some(zone), room - weight(&previous));
    let sizes = sizes(&[("instructions", &system), ("summary", &previous), ("messages", &lines), ("question", ending)]);
    Prompt::new(system, paragraphs(&[&block("summary", &previous), &block("messages", &lines), ending]), sizes)
}

/// The prompt that asks how much the last statements repeat each other. They are ordered oldest first. `repetition::read_score` parses the answer.
pub fn judgement(messages: &[Arc<Message>], words: &policy::prompt::Prompt) -> Prompt {
    let system = paragraphs(&["You judge how repetitive a group chat has become.", HOW_TO_READ]);
    let ending = "How much do these messages repeat one another, in what they say rather than in their words alone? Answer in two lines. \
                  First line: one sentence saying why. Second line: only a number from 0 (all different) to 1 (the same thing again and \
                  again).";
    let room = (words.decision_tokens * 4).saturating_sub(weight(&system) + weight(ending) + FRAME_WEIGHT);
    // No times are shown.
    let undated = messages.iter().map(|message| Said::new(Seq::NONE, Moment::ZERO, message.clone()));
    let messages: Vec<Said> = undated.collect();
    let [lines] = transcript([&messages.iter().collect::<Vec<_>>()], None, None, room);
    let sizes = sizes(&[("instructions", &system), ("messages", &lines), ("question", ending)]);
    Prompt::new(system, paragraphs(&[&block("messages", &lines), ending]), sizes)
}

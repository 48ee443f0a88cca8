//! Builds the prompts of all questions to models: decisions, votes, statements, summaries, briefs and judgements.
//!
//! Text by the operator (settings) is included unchanged. A persona, chattiness or tone may be written by a stranger, so separators of turns or parts
//! are broken in it. Text by people, other companions and models is data. It appears only inside JSON strings, each in one line that it cannot leave,
//! with the role of the speaker as set by the server. Only a companion's own statements appear as plain text, as turns of their own in the prompts
//! for its statements.

mod calls;
mod card;
mod data;
mod form;
mod frame;
mod line;
mod lore;
pub mod note;
mod noting;
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

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use jiff::tz::TimeZone;

use super::closing::Stage;
use super::filter::Filtered;
use super::id::{CompanionId, PersonId, Seq};
use super::lore::matching::Fired;
use super::message::{Message, Modality, Quoted, Recalled};
use super::moment::Moment;
use super::note::Note;
use super::room_words::RoomWords;
use super::trigger::Trigger;
use crate::policy;
pub use calls::{call_end, earlier_calls};
use card::for_decision;
pub use card::{brief, caption};
use data::{cut_middle, escape_into, escaped_weight, unmarked_name, weight};
use form::{CONTINUATION_FORM, draft_form, pass_form, statement_form, vote_form};
pub use form::{Extra, verdicts, vote_fields};
use frame::{block, context, paragraphs, quoted, sizes};
use note::choose_note;
pub use noting::labels;
pub use room::tokens;
use texts::{FRAME_WEIGHT, HOW_TO_READ, HOW_TO_READ_TURNS};
pub use together::{Asked, votes};
use transcript::transcript;

/// The number of settled messages in a decision's prompt (docs/design/gate.md G-26).
pub const RECENT_TURNS: usize = 5;

/// Added to a question whose first answer was unreadable.
pub const REPEAT_JSON: &str = "Your last answer could not be read. Answer again with the JSON object alone: begin with { and end with }, with nothing around it.";

/// Added to the request for a statement whose first answer was not a statement.
pub const REPEAT_WORDS: &str = "Your last answer was not a message that can be posted. Answer again with the words of the message alone: what you say, as plain text, without JSON, without a decision and without a call of a tool.";

/// A prompt for a model, with the sizes of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The system message: the instructions.
    pub system: String,
    /// The conversation and the question. The first and the last turn are user turns, and the two kinds alternate.
    pub turns: Vec<Turn>,
    /// The parts in order, with their estimated tokens.
    pub sizes: Vec<(&'static str, usize)>,
    /// The recalled older messages and notes in this prompt, the best first.
    pub recalled: Vec<Recalled>,
    /// The names of the entries of lorebooks in this prompt.
    pub lore: Vec<Arc<str>>,
}

/// A message of a prompt after the instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Messages of others, and text that the server adds.
    User(String),
    /// Statements of the companion itself.
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
        Self { system, turns: vec![Turn::User(user)], sizes, recalled: Vec::new(), lore: Vec::new() }
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
    /// The number of the message that it replies to, if that is journaled.
    pub reply_to: Option<Seq>,
    /// The quote of that message to show with this one.
    pub quoted: Option<Quoted>,
    pub line: KeptLine,
}

/// The text by which a prompt shows a message whole. It is kept, because the room of a talk is planned several times.
#[derive(Clone, Debug, Default)]
pub struct KeptLine(OnceLock<(Arc<Message>, bool, Arc<str>)>);

impl KeptLine {
    /// The text that `write` makes of the message, as the companion's own or as another's.
    fn get(&self, message: &Arc<Message>, is_own: bool, write: impl Fn() -> String) -> Arc<str> {
        let (of, of_own, text) = self.0.get_or_init(|| (message.clone(), is_own, write().into()));
        // A message that was replaced has another line.
        if Arc::ptr_eq(of, message) && *of_own == is_own { text.clone() } else { write().into() }
    }
}

impl PartialEq for KeptLine {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Said {
    /// A message without a quote of the message that it replies to.
    pub const fn new(seq: Seq, at: Moment, message: Arc<Message>) -> Self {
        Self { seq, at, message, reply_to: None, quoted: None, line: KeptLine(OnceLock::new()) }
    }
}

/// The place and the time of a question.
#[derive(Clone, Debug)]
pub struct Scene {
    pub now: Moment,
    /// The time zone for times in the prompt.
    pub zone: TimeZone,
    /// The other companions of the channel.
    pub others: Vec<Other>,
    /// Whether the question is about speech in a voice call.
    pub is_call: bool,
    /// The title and topic of the channel. None if it has no title.
    pub place: Option<Place>,
    /// Whether there are minors in the channel.
    pub has_minors: bool,
    /// The words of the room itself.
    pub words: RoomWords,
    /// What people of the room say of themselves.
    pub described: BTreeMap<PersonId, Arc<str>>,
}

impl Scene {
    /// A scene without a place, without others and without words of a room.
    pub fn new(now: Moment, zone: TimeZone) -> Self {
        let (words, described) = (RoomWords::NONE, BTreeMap::new());
        Self { now, zone, others: Vec::new(), is_call: false, place: None, has_minors: false, words, described }
    }
}

/// The title and topic of a channel.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its title, with the title of the channel or forum that contains it.
    pub title: Arc<str>,
    pub topic: Option<Arc<str>>,
}

/// Another companion of the channel.
#[derive(Clone, Debug)]
pub struct Other {
    pub name: Arc<str>,
    /// Its chattiness, whose beginning is shown. `None` if it is not known.
    pub chattiness: Option<Arc<str>>,
}

/// The companion that is asked, as the operator configured it.
#[derive(Clone, Copy, Debug)]
pub struct Character<'a> {
    pub id: &'a CompanionId,
    pub name: &'a str,
    /// Its character card, unchanged.
    pub persona: &'a str,
    /// The brief. Decisions show it instead of a persona that is too long, and short decisions always show it. None if there is none.
    pub brief: Option<&'a str>,
    /// Its chattiness, unchanged.
    pub chattiness: &'a str,
    /// Its interjection level, as in the settings: `average`.
    pub tier: &'a str,
    /// Its tone, for statements. May be empty.
    pub tone: &'a str,
}

/// The conversation's input for the prompt of a decision or a statement.
#[derive(Clone, Debug, Default)]
pub struct PromptInput {
    /// The trigger of the question or statement.
    pub trigger: Trigger,
    pub stage: Stage,
    pub modality: Modality,
    /// The number of messages since the companion spoke last.
    pub message_count: u64,
    /// The minutes of silence, for a `silence`.
    pub minutes: u64,
    /// The name of the author of the message that triggered it. For a `turn`, the companion that has just spoken.
    pub speaker: Option<Arc<str>>,
    /// Whether the conversation repeats itself.
    pub is_repetitive: bool,
    pub summary: Option<Arc<str>>,
    /// The messages before `buffer`, oldest first. Decisions show the last five, which are settled. Statements show as many as fit.
    pub recent: Vec<Said>,
    /// The unsettled messages, and the companion's own between them, oldest first.
    pub buffer: Vec<Said>,
    /// The messages that filters of endpoints refuse.
    pub filtered: Filtered,
    /// Whether a person may be at risk, so that the vote has a field about it.
    pub about_risk: bool,
}

impl PromptInput {
    /// The note of a statement. A reminder must be acknowledged, whatever else the statement answers.
    fn note(&self, words: &policy::prompt::Prompt) -> Option<String> {
        let is_reminder = self.buffer.iter().any(|said| said.message.reminder.is_some());
        let trigger = if is_reminder { Trigger::Event } else { self.trigger };
        choose_note(trigger, self.stage, self.is_repetitive).map(|note| note.sentence(self.minutes, words))
    }

    /// The additional fields of a vote.
    pub const fn extra(&self, is_call: bool) -> Extra {
        Extra { is_call, about_risk: self.about_risk }
    }

    /// Removes messages up to an event, which a guest in the room must not know. Also removes the summary if it covers any of them; it covers events
    /// after `summary_from`.
    pub fn hide_upto(&mut self, hidden: Seq, summary_from: Seq) {
        for messages in [&mut self.recent, &mut self.buffer] {
            messages.retain(|said| said.seq > hidden);
            messages.iter_mut().for_each(|said| said.reply_to = said.reply_to.filter(|seq| *seq > hidden));
        }
        self.summary = self.summary.take().filter(|_| summary_from >= hidden);
    }

    /// The numbers of the first and the last message that are shown or quoted. A summary counts as showing all earlier messages.
    pub fn shown(&self) -> (Seq, Seq) {
        let mut numbers = self.recent.iter().chain(&self.buffer).map(|said| said.seq);
        let first = numbers.next().unwrap_or(Seq::NONE);
        let last = numbers.next_back().unwrap_or(first);
        let quoted = self.buffer.iter().filter(|said| said.quoted.is_some()).filter_map(|said| said.reply_to);
        (if self.summary.is_some() { Seq::NONE } else { quoted.fold(first, Seq::min) }, last)
    }
}

/// What the model writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// A statement of the companion.
    #[default]
    Statement,
    /// The continuation of the companion's newest statement.
    Continuation,
    /// A draft of a message by this person.
    Draft(Arc<str>),
}

/// The input of a statement's prompt.
#[derive(Clone, Debug, Default)]
pub struct StatementInput {
    pub input: PromptInput,
    /// The reason that the companion gave for its YES.
    pub reason: Option<Arc<str>>,
    /// The number of statements that this one replaces at a user's request.
    pub tries: u32,
    /// Whether the statement is spoken in a voice call.
    pub is_spoken: bool,
    /// Whether the model may decline to speak.
    pub may_pass: bool,
    pub goal: Goal,
    /// The newest event that the summary covers.
    pub summary_upto: Seq,
    /// The number of messages before `recent` that the summary does not cover.
    pub left_out: usize,
    /// Older messages that may be shown as recalled, the best first. They may include messages of `recent`.
    pub recalled: Vec<Said>,
    /// Notes that may be shown with them, the best first.
    pub notes: Vec<(Recalled, Arc<Note>)>,
    /// Notes about the people who take part, each about its own author, the most important first.
    pub people: Vec<(Recalled, Arc<Note>)>,
    /// The notes of other rooms among which `notes` and `people` are looked up.
    pub elsewhere: Vec<(Recalled, Arc<Note>)>,
    /// The tokens for the notes about one person. 0: no notes are taken.
    pub page_tokens: usize,
    /// Whether a new conversation began, so that notes may be of messages that the prompt does not show even if there is room for all.
    pub is_anew: bool,
    /// The entries of lorebooks that were found, the most important first. `None`: no lorebook counts here.
    pub lore: Option<Vec<Fired>>,
}

/// The prompt that asks whether to speak, for a combined decision and vote (docs/design/turn-taking.md T-5). `vote::read` parses the answer.
pub fn vote(character: Character<'_>, scene: &Scene, input: &PromptInput, words: &policy::prompt::Prompt) -> Prompt {
    let form = vote_form(&unmarked_name(character.name), input.stage, input.extra(scene.is_call), words);
    let context = context(input.trigger, input.message_count, input.speaker.as_deref(), words);
    let ending = paragraphs(&[&context, words.question_for(input.trigger), &form]);
    let recent = &input.recent[input.recent.len().saturating_sub(RECENT_TURNS)..];
    // The companion's own statements are not new to it.
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

/// The prompt for the text of a statement. [`raw_answer`](crate::raw_answer) parses the answer.
pub fn statement(character: Character<'_>, scene: &Scene, statement: &StatementInput, words: &policy::prompt::Prompt) -> Prompt {
    let name = unmarked_name(character.name);
    let input = &statement.input;
    let context = context(input.trigger, input.message_count, input.speaker.as_deref(), words);
    if let Goal::Draft(person) = &statement.goal {
        return talk::statement(&character, scene, statement, &draft_form(&unmarked_name(person)), words);
    }
    let form = match statement.goal {
        Goal::Continuation => CONTINUATION_FORM.to_owned(),
        _ => statement_form(&name, statement.is_spoken, &scene.words),
    };
    let pass = if statement.may_pass { pass_form(&name) } else { String::new() };
    let ending = paragraphs(&[&context, words.manner_for(input.trigger), &form, &pass]);
    talk::statement(&character, scene, statement, &ending, words)
}

/// The texts that all prompts of statements have.
pub const FIXED_TEXTS: [&str; 19] = [
    HOW_TO_READ_TURNS,
    texts::HOW_TO_READ_TURNS_SHORT,
    texts::NEW,
    texts::OPENING,
    texts::SUMMARY,
    texts::MISSED,
    texts::REASON,
    texts::RECALLED,
    texts::RECALLED_WITH_NOTES,
    texts::PEOPLE,
    texts::ELSEWHERE,
    texts::LORE,
    texts::MINORS,
    texts::ROOM,
    texts::ROLE_PLAY,
    texts::NOTE,
    texts::ABOUT_THEMSELVES,
    CONTINUATION_FORM,
    REPEAT_WORDS,
];

/// The texts of a statement's prompt beside [`FIXED_TEXTS`]. A statement that contains one of them is not the companion's own text.
pub fn statement_texts(
    character: Character<'_>,
    scene: &Scene,
    statement: &StatementInput,
    words: &policy::prompt::Prompt,
) -> Vec<String> {
    let input = &statement.input;
    // The names differ.
    let spoke_lately = format!("{} …", scene::SPOKE_LATELY);
    let context = context(input.trigger, input.message_count, input.speaker.as_deref(), words);
    let name = unmarked_name(character.name);
    let note = input.note(words);
    let form = statement_form(&name, statement.is_spoken, &scene.words);
    let scene = scene.sentences(character.id, &[], &[], words.statement_tokens);
    let [tone, manner] = [words.tone.of(character.tier), words.manner_for(input.trigger)].map(str::to_owned);
    [context, tone, manner, form, pass_form(&name), scene, spoke_lately].into_iter().chain(note).collect()
}

/// The recalled messages that a statement's prompt has room for within so many tokens, the best first, for measurements.
pub fn shown_of_recalled(messages: &[Said], id: &CompanionId, name: &str, zone: &TimeZone, tokens: usize) -> Vec<Seq> {
    let found = recalled::Found { messages, notes: &[] };
    let (_, shown) = recalled::recalled(found, &[], line::Reader { id, name }, zone, tokens * 4);
    shown.iter().filter_map(Recalled::here).collect()
}

/// The message before which older ones may be recalled for a statement: the first one that its prompt shows. None if nothing is recalled, because the
/// prompt shows all messages or recall is turned off.
pub fn recalls_before(
    character: Character<'_>,
    scene: &Scene,
    statement: &StatementInput,
    words: &policy::prompt::Prompt,
) -> Option<Seq> {
    talk::recalls_before(&character, scene, statement, words)
}

/// Text files that people sent, as data, in at most so many tokens together. Each is a line of JSON. Empty if there are none.
pub fn files(files: &[(&str, &str)], tokens: usize) -> String {
    let most = (tokens * 4).saturating_sub(weight(texts::FILES)) / files.len().max(1);
    let line = |(name, text): &(&str, &str)| {
        let mut line = "{\"file\":\"".to_owned();
        escape_into(&mut line, &data::plain_name(name));
        line.push_str("\",\"text\":\"");
        let room = most.checked_sub(weight(&line) + 4)?;
        escape_into(&mut line, &cut_middle(text, room, escaped_weight));
        line.push_str("\"}\n");
        Some(line)
    };
    let lines: String = files.iter().filter_map(line).collect();
    if lines.is_empty() { lines } else { paragraphs(&[texts::FILES, &block("files", &lines)]) }
}

/// The prompt for the rolling summary of a channel, from the previous summary and the messages that settled since, oldest first. Times are in this
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

/// The prompt that asks for notes about these messages, oldest first. `known` are earlier notes. [`memory::read`](crate::memory::read) parses the
/// answer.
pub fn notes(messages: &[Said], known: &[(Seq, Arc<Note>)], zone: &TimeZone, words: &policy::prompt::Prompt) -> Prompt {
    noting::notes(messages, known, zone, words)
}

/// The prompt that asks how much the last statements repeat each other. `messages` are ordered oldest first. `repetition::read_score` parses the
/// answer.
pub fn judgement(messages: &[Arc<Message>], words: &policy::prompt::Prompt) -> Prompt {
    let system = paragraphs(&["You judge how repetitive a group chat has become.", HOW_TO_READ]);
    let ending = "How much do these messages repeat one another, in what they say rather than in their words alone? Answer in two lines. \
                  First line: one sentence saying why. Second line: only a number from 0 (all different) to 1 (the same thing again and \
                  again).";
    let room = (words.decision_tokens * 4).saturating_sub(weight(&system) + weight(ending) + FRAME_WEIGHT);
    // The prompt shows no times.
    let undated = messages.iter().map(|message| Said::new(Seq::NONE, Moment::ZERO, message.clone()));
    let messages: Vec<Said> = undated.collect();
    let [lines] = transcript([&messages.iter().collect::<Vec<_>>()], None, None, room);
    let sizes = sizes(&[("instructions", &system), ("messages", &lines), ("question", ending)]);
    Prompt::new(system, paragraphs(&[&block("messages", &lines), ending]), sizes)
}

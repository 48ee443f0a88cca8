//! Assembles an answer from the chunks that an endpoint sends.

use std::time::Duration;

use serde::de::IgnoredAny;
use tokio::sync::mpsc;

use super::counts::Counts;
use super::pieces::{Added, Pieces};
use super::text::Joiner;
use super::wire::{CallPiece, Choice, MAX_TOOL_CALLS, Piece};
use crate::adapters::endpoint::failure::{Broken, shortened};
use crate::domain::answer_end::{self, AnswerEnd, endless};
use crate::domain::text::first_bytes;
use crate::ports::language_model::{Answer, AnswerFormat, Draft, ModelRole, Part, Request, ToolCall};

/// The maximum number of stored bytes of a refusal.
const MAX_REFUSAL_BYTES: usize = 4 * 1024;
/// The maximum number of stored bytes of a thought, in case the answer contains nothing else.
const MAX_THOUGHT_BYTES: usize = 16 * 1024;
/// The interval, in bytes, between checks for an endless repetition.
const CHECKED_EVERY: usize = 512;

/// An answer that is still incomplete.
pub(super) struct PartialAnswer<'a> {
    text: String,
    joiner: Joiner,
    pieces: Pieces,
    /// The length of thought and text at the next check for an endless repetition.
    checked_at: usize,
    /// The text of the thought. It is used only if there is no other output.
    thoughts: String,
    thought_joiner: Joiner,
    /// The index of the answer that is read. An endpoint may send several answers; the lowest index counts.
    index: Option<u64>,
    /// The model's text of a refusal.
    refusal: String,
    refusal_joiner: Joiner,
    calls: Vec<PartialCall>,
    /// The number of bytes of text and tool calls that may still be added.
    room: usize,
    drafts: Option<&'a mpsc::UnboundedSender<Draft>>,
    has_choice: bool,
    /// Whether something arrived, but no choice. Some gateways say in this way that a filter withheld the answer.
    is_without_choice: bool,
    /// Why a filter blocked the prompt.
    blocked: Option<String>,
    begun: bool,
    /// Whether it contains a thought.
    thinks: bool,
    /// Whether text arrived in deltas. A whole message after them repeats the text.
    has_deltas: bool,
    /// Whether any chunk with output had no finish reason. If all of them have one, a finish reason does not mean the end.
    goes_on: bool,
    /// Whether, after the last chunk, only token counts and the end are expected.
    ending: bool,
    done: bool,
    cut: bool,
    counts: Option<Counts>,
    /// The time from sending the request to the first chunk. `None`: the answer was not streamed.
    pub time_to_first_chunk: Option<Duration>,
    model: Option<String>,
    id: Option<String>,
    finish_reason: Option<String>,
}

/// A tool call that may still be incomplete.
struct PartialCall {
    index: Option<u64>,
    call: ToolCall,
}

impl<'a> PartialAnswer<'a> {
    /// An empty answer that may grow to `max_bytes`.
    pub fn new(max_bytes: usize, drafts: Option<&'a mpsc::UnboundedSender<Draft>>) -> Self {
        Self {
            text: String::new(),
            joiner: Joiner::default(),
            pieces: Pieces::default(),
            checked_at: CHECKED_EVERY,
            thoughts: String::new(),
            thought_joiner: Joiner::default(),
            index: None,
            refusal: String::new(),
            refusal_joiner: Joiner::default(),
            calls: Vec::new(),
            room: max_bytes,
            drafts,
            has_choice: false,
            is_without_choice: false,
            blocked: None,
            begun: false,
            thinks: false,
            has_deltas: false,
            goes_on: false,
            ending: false,
            done: false,
            cut: false,
            counts: None,
            time_to_first_chunk: None,
            model: None,
            id: None,
            finish_reason: None,
        }
    }

    /// Whether output arrived, including reasoning, which is not shown.
    pub const fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether only token counts and the end are expected: after `[DONE]`, after token counts, or after a known finish reason in
    /// a chunk without text.
    pub const fn is_ending(&self) -> bool {
        self.done || self.ending
    }

    /// Whether the answer is complete even if the connection breaks now. Some servers send a finish reason in every chunk, which
    /// does not mean the end.
    pub const fn survives_break(&self) -> bool {
        self.is_ending() || self.goes_on && self.finish_reason.is_some()
    }

    /// Whether the answer is complete if no further data arrives for a long time.
    pub const fn survives_silence(&self) -> bool {
        self.is_ending() || self.finish_reason.is_some()
    }

    /// Whether the answer is complete if the body ends properly. Some servers send no finish reason.
    pub fn survives_end(&self) -> bool {
        self.survives_silence() || !self.text.trim().is_empty() || !self.calls.is_empty() || !self.refusal.is_empty()
    }

    /// Whether the stream has ended.
    pub const fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the answer reached its size limit, so that the rest is ignored.
    pub const fn is_cut(&self) -> bool {
        self.cut
    }

    /// The token count of the prompt, if the endpoint reported it.
    pub fn prompt_tokens(&self) -> Option<u64> {
        self.counts.and_then(Counts::prompt_tokens)
    }

    /// The finish reason, if it says that the context is full.
    pub fn context_reason(&self) -> Option<String> {
        self.finish_reason.clone().filter(|reason| reason.contains("context"))
    }

    /// Adds one event of a stream.
    pub fn take_event(&mut self, data: &[u8], is_error: bool) -> Result<(), Broken> {
        if data.trim_ascii() == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        if data.trim_ascii().is_empty() {
            return Ok(());
        }
        if is_error {
            return Err(Piece::error(data));
        }
        self.add_piece(Piece::read(data)?);
        Ok(())
    }

    /// Adds a non-streamed answer.
    pub fn take_whole(&mut self, whole: Piece) -> Result<(), Broken> {
        let is_answer = whole.has_choices || whole.blocked.is_some();
        self.add_piece(whole);
        if is_answer { Ok(()) } else { Err(Broken::Unreadable("it holds no choices".to_owned())) }
    }

    /// The finished answer. Tokens that the endpoint did not report are estimated. Reported counts are limited to the maximum
    /// that the text can have.
    pub fn finish(mut self, request: &Request, limit: u32) -> Result<Answer, Broken> {
        if let Some(text) = self.pieces.at_end(&self.text).map(str::to_owned) {
            self.replace(text);
        }
        self.stop_if_endless();
        let end = self.finish_reason.as_deref().map(AnswerEnd::of);
        // Some servers send a thought that was cut off as the answer, too.
        if end == Some(AnswerEnd::Limit) && self.text.trim() == self.thoughts.trim() {
            self.text.clear();
        }
        let has_only_thoughts = self.text.trim().is_empty() && self.calls.is_empty() && self.refusal.trim().is_empty();
        if has_only_thoughts && end == Some(AnswerEnd::Done) && !self.thoughts.trim().is_empty() {
            if !is_answer(&self.thoughts, &request.format) {
                return Err(Broken::OnlyThoughts);
            }
            // The server misclassified the whole answer as a thought.
            let answer = std::mem::take(&mut self.thoughts);
            self.replace(answer);
        }
        // A tool call without a name cannot be executed.
        let tool_calls: Vec<_> =
            self.calls.into_iter().map(|partial| partial.call).filter(|call| !call.name.is_empty()).collect();
        if self.text.trim().is_empty() && tool_calls.is_empty() {
            match end {
                _ if !self.refusal.trim().is_empty() => return Err(Broken::Declined(self.refusal)),
                _ if self.is_without_choice || self.blocked.is_some() => {
                    let reason = self.blocked.map_or_else(|| "it sent no choice".to_owned(), |reason| format!("“{reason}”"));
                    return Err(Broken::Withheld(format!("its filter withheld the answer: {reason}")));
                }
                Some(AnswerEnd::Withheld) => {
                    let reason = self.finish_reason.unwrap_or_default();
                    return Err(Broken::Withheld(format!("its filter withheld the answer (finish_reason “{reason}”)")));
                }
                Some(AnswerEnd::Endless) => return Err(Broken::Endless),
                Some(AnswerEnd::Limit) => return Err(Broken::OutOfTokens(out_of_tokens(request.role, limit, self.thinks))),
                _ => {}
            }
        }
        let arguments = tool_calls.iter().map(|call| call.arguments.as_str());
        let written = [self.text.as_str()].into_iter().chain(arguments).collect::<String>();
        let estimate = request.estimated_usage(&written);
        let reported = self.counts.map_or(estimate, |counts| counts.or(estimate));
        let usage = request.possible_usage(reported, &written);
        let parts = Some(self.text).filter(|text| !text.is_empty()).map(Part::Text).into_iter().collect();
        Ok(Answer {
            parts,
            tool_calls,
            usage,
            model: self.model,
            response_id: self.id,
            finish_reason: self.finish_reason,
            time_to_first_chunk: self.time_to_first_chunk,
        })
    }

    fn add_piece(&mut self, piece: Piece) {
        self.counts = match (piece.counts, self.counts) {
            (Some(newer), Some(earlier)) => Some(newer.after(earlier)),
            (newer, earlier) => newer.or(earlier),
        };
        self.blocked = self.blocked.take().or_else(|| bounded_name(piece.blocked));
        self.model = self.model.take().or_else(|| bounded_name(piece.model));
        self.id = self.id.take().or_else(|| bounded_name(piece.id));
        match piece.choice {
            Some(choice) => self.add_choice(choice),
            None => self.ending |= self.begun && piece.counts.is_some(),
        }
        self.is_without_choice = !self.has_choice;
    }

    fn add_choice(&mut self, choice: Choice) {
        match *self.index.get_or_insert(choice.index) {
            index if choice.index > index => return,
            index if choice.index < index && choice.has_output() => self.begin_again(choice.index),
            index if choice.index < index => return,
            _ => {}
        }
        self.has_choice = true;
        let reason = bounded_name(choice.finish_reason.clone());
        let is_repetition = choice.is_message && self.has_deltas;
        if choice.has_output() && !is_repetition {
            self.begun = true;
            self.thinks |= choice.thinks;
            self.goes_on |= reason.is_none();
            self.has_deltas |= !choice.is_message && choice.has_words();
            // Text after a finish reason is text like any other.
            self.ending = false;
            let text = self.joiner.push(&choice.text);
            match self.pieces.add(&self.text, text, reason.is_some()) {
                Added::More(text) => self.grow(text),
                Added::Instead(text) => self.replace(text),
            }
            self.thoughts.push_str(&self.thought_joiner.push(&choice.thoughts));
            self.thoughts.truncate(first_bytes(&self.thoughts, MAX_THOUGHT_BYTES).len());
            if self.text.len() + self.thoughts.len() >= self.checked_at {
                self.checked_at = self.text.len() + self.thoughts.len() + CHECKED_EVERY;
                self.stop_if_endless();
            }
            self.refusal.push_str(&self.refusal_joiner.push(&choice.refusal));
            self.refusal.truncate(first_bytes(&self.refusal, MAX_REFUSAL_BYTES).len());
            choice.tool_calls.into_iter().for_each(|piece| self.call(piece));
        } else {
            self.ending |= reason.as_deref().is_some_and(|reason| AnswerEnd::of(reason) != AnswerEnd::Other);
        }
        // A truncated answer has its own finish reason.
        if !self.cut {
            self.finish_reason = reason.or(self.finish_reason.take());
        }
    }

    fn grow(&mut self, mut text: String) {
        if text.len() > self.room {
            text.truncate(first_bytes(&text, self.room).len());
            self.cut_off();
        }
        if !text.is_empty() {
            self.room -= text.len();
            self.text.push_str(&text);
            // There may be no receiver.
            drop(self.drafts.map(|drafts| drafts.send(Draft::More(text))));
        }
    }

    /// Replaces the text.
    fn replace(&mut self, text: String) {
        self.room += self.text.len();
        self.text.clear();
        drop(self.drafts.map(|drafts| drafts.send(Draft::Restart)));
        self.grow(text);
    }

    /// Drops the answer so far, because one with a lower index begins.
    fn begin_again(&mut self, index: u64) {
        self.replace(String::new());
        let empty = Self::new(self.room, self.drafts);
        let Self { counts, time_to_first_chunk, model, id, blocked, begun, .. } = std::mem::replace(self, empty);
        let kept = Self { counts, time_to_first_chunk, model, id, blocked, begun, ..Self::new(self.room, self.drafts) };
        *self = Self { index: Some(index), ..kept };
    }

    /// Ends the answer if its text, or its thought before any text, repeats itself endlessly.
    fn stop_if_endless(&mut self) {
        let written = if self.text.is_empty() { &mut self.thoughts } else { &mut self.text };
        if let Some(begin) = endless::repetition(written) {
            written.truncate(begin);
            self.finish_reason = Some(answer_end::ENDLESS.to_owned());
            self.cut = true;
        }
    }

    /// Adds a tool call, or the next chunk of one. A call that does not fit completely is dropped completely, because truncated
    /// arguments could mean something else.
    fn call(&mut self, piece: CallPiece) {
        if self.cut {
            return;
        }
        let existing = self.position(&piece);
        let bytes = piece.id.len() + piece.name.len() + piece.arguments.len();
        if bytes > self.room || (existing.is_none() && self.calls.len() == MAX_TOOL_CALLS) {
            existing.map(|at| self.calls.remove(at));
            self.cut_off();
            return;
        }
        self.room -= bytes;
        let CallPiece { index, id, name, arguments } = piece;
        let Some(PartialCall { call, .. }) = existing.and_then(|at| self.calls.get_mut(at)) else {
            self.calls.push(PartialCall { index, call: ToolCall { id, name, arguments } });
            return;
        };
        // Some servers repeat the id and the name in every chunk.
        for (whole, sent) in [(&mut call.id, id), (&mut call.name, name)] {
            if whole.is_empty() {
                *whole = sent;
            }
        }
        call.arguments.push_str(&arguments);
    }

    /// The position of the call that a chunk continues. With an index, it is the call of that index, unless the chunk has another
    /// id (some servers give every call the index 0). Without an index, it is the call with the chunk's id. Without either, it is
    /// the last call, unless the chunk has a name.
    fn position(&self, piece: &CallPiece) -> Option<usize> {
        let has_id = |partial: &PartialCall| partial.call.id == piece.id;
        match piece.index {
            Some(_) => self.calls.iter().rposition(|partial| {
                partial.index == piece.index && (piece.id.is_empty() || partial.call.id.is_empty() || has_id(partial))
            }),
            None if !piece.id.is_empty() => self.calls.iter().rposition(has_id),
            None if piece.name.is_empty() => self.calls.len().checked_sub(1),
            None => None,
        }
    }

    fn cut_off(&mut self) {
        self.finish_reason = Some("length".to_owned());
        self.cut = true;
    }
}

/// Whether thoughts are an answer in the wrong field: JSON if JSON was requested, otherwise text without signs of thinking.
fn is_answer(thoughts: &str, format: &AnswerFormat) -> bool {
    let is_json = || serde_json::from_str::<IgnoredAny>(thoughts).is_ok_and(|_| thoughts.trim_start().starts_with('{'));
    match format {
        AnswerFormat::JsonObject | AnswerFormat::JsonSchema { .. } => is_json(),
        AnswerFormat::Text => {
            let words = thoughts.to_lowercase();
            !SIGNS_OF_THINKING.iter().any(|sign| words.contains(sign))
        }
    }
}

/// Phrases that models write when they think.
const SIGNS_OF_THINKING: [&str; 18] = [
    "the user",
    "user's",
    "let me ",
    "let's ",
    "i should ",
    "i need to ",
    "i'll ",
    "we need to ",
    "we should ",
    "okay, so",
    "ok, so",
    "hmm",
    "wait,",
    "the question",
    "the prompt",
    "they want",
    "用户",
    "嗯，",
];

/// The error message for an exhausted token limit, with the setting that raises it.
fn out_of_tokens(role: ModelRole, limit: u32, thinks: bool) -> String {
    let setting = role.limit_setting();
    let spent = if thinks { "on thinking" } else { "before the first word" };
    format!(
        "the model spent all of the {limit} tokens that an answer may have {spent}; raise {setting}, or have the model think less"
    )
}

/// A name from outside, shortened for records and spans.
fn bounded_name(name: Option<String>) -> Option<String> {
    name.filter(|name| !name.is_empty()).map(|name| shortened(&name, 200))
}

//! Puts an answer together from what an endpoint sends.

use tokio::sync::mpsc;

use super::failure::{Broken, shortened};
use super::wire::{CallPiece, MAX_TOOL_CALLS, Piece, Tokens};
use crate::ports::language_model::{Answer, Draft, Part, Request, ToolCall, Usage};

/// An answer in the making.
pub(super) struct Growing<'a> {
    text: String,
    calls: Vec<GrowingCall>,
    /// As many bytes of text and calls of tools may still come.
    room: usize,
    drafts: Option<&'a mpsc::UnboundedSender<Draft>>,
    chosen: bool,
    begun: bool,
    done: bool,
    cut: bool,
    tokens: Option<Tokens>,
    model: Option<String>,
    id: Option<String>,
    finish_reason: Option<String>,
}

/// A call of a tool in the making.
struct GrowingCall {
    index: Option<u64>,
    call: ToolCall,
}

impl<'a> Growing<'a> {
    /// An answer of at most so many bytes.
    pub fn new(most: usize, drafts: Option<&'a mpsc::UnboundedSender<Draft>>) -> Self {
        Self {
            text: String::new(),
            calls: Vec::new(),
            room: most,
            drafts,
            chosen: false,
            begun: false,
            done: false,
            cut: false,
            tokens: None,
            model: None,
            id: None,
            finish_reason: None,
        }
    }

    /// Whether a word arrived, be it one of the reasoning that is not shown.
    pub const fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether nothing of the text is missing any more; its tokens may still be told.
    pub const fn is_whole(&self) -> bool {
        self.done || self.finish_reason.is_some()
    }

    /// Whether there is nothing more to be read.
    pub const fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the answer reached its bound, and the rest does not matter.
    pub const fn is_cut(&self) -> bool {
        self.cut
    }

    /// Takes one event of a stream.
    pub fn take_event(&mut self, data: &[u8]) -> Result<(), Broken> {
        if data.trim_ascii() == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        if data.trim_ascii().is_empty() {
            return Ok(());
        }
        self.take(Piece::read(data)?);
        Ok(())
    }

    /// Takes an answer that came in one piece.
    pub fn take_whole(&mut self, whole: Piece) -> Result<(), Broken> {
        self.take(whole);
        if self.chosen { Ok(()) } else { Err(Broken::Unreadable("it holds no choices".to_owned())) }
    }

    /// The answer, its tokens estimated where the endpoint did not tell them.
    pub fn finish(self, request: &Request) -> Result<Answer, Broken> {
        let filtered = self.finish_reason.as_deref() == Some("content_filter");
        // What has no name cannot be called.
        let tool_calls: Vec<_> =
            self.calls.into_iter().map(|growing| growing.call).filter(|call| !call.name.is_empty()).collect();
        if filtered && self.text.trim().is_empty() && tool_calls.is_empty() {
            return Err(Broken::Failed(Some(403), "its content filter withheld the answer".to_owned()));
        }
        let arguments = tool_calls.iter().map(|call| call.arguments.as_str());
        let estimate = Usage::estimate(request, &[self.text.as_str()].into_iter().chain(arguments).collect::<String>());
        let usage = self.tokens.map_or(estimate, |tokens| tokens.or(estimate));
        let parts = Some(self.text).filter(|text| !text.is_empty()).map(Part::Text).into_iter().collect();
        Ok(Answer { parts, tool_calls, usage, model: self.model, response_id: self.id, finish_reason: self.finish_reason })
    }

    fn take(&mut self, piece: Piece) {
        self.tokens = piece.tokens.or(self.tokens);
        self.model = self.model.take().or_else(|| named(piece.model));
        self.id = self.id.take().or_else(|| named(piece.id));
        if let Some(choice) = piece.choice {
            self.chosen = true;
            self.begun |= choice.is_a_word;
            self.grow(choice.text);
            choice.tool_calls.into_iter().for_each(|piece| self.call(piece));
            self.finish_reason = self.finish_reason.take().or_else(|| named(choice.finish_reason));
        }
    }

    fn grow(&mut self, mut words: String) {
        if words.len() > self.room {
            let end = (0..=self.room).rev().find(|end| words.is_char_boundary(*end)).unwrap_or_default();
            words.truncate(end);
            self.cut_off();
        }
        if !words.is_empty() {
            self.room -= words.len();
            self.text.push_str(&words);
            // Nobody has to listen.
            drop(self.drafts.map(|drafts| drafts.send(Draft::More(words))));
        }
    }

    /// Takes a call of a tool, or the next piece of one. One that does not fit as a whole is left out as a whole: half of its arguments
    /// might say something else.
    fn call(&mut self, piece: CallPiece) {
        if self.cut {
            return;
        }
        let known = self.position(&piece);
        let bytes = piece.id.len() + piece.name.len() + piece.arguments.len();
        if bytes > self.room || (known.is_none() && self.calls.len() == MAX_TOOL_CALLS) {
            known.map(|at| self.calls.remove(at));
            self.cut_off();
            return;
        }
        self.room -= bytes;
        let CallPiece { index, id, name, arguments } = piece;
        let Some(GrowingCall { call, .. }) = known.and_then(|at| self.calls.get_mut(at)) else {
            self.calls.push(GrowingCall { index, call: ToolCall { id, name, arguments } });
            return;
        };
        // Some servers repeat the id and the name with every piece.
        for (whole, told) in [(&mut call.id, id), (&mut call.name, name)] {
            if whole.is_empty() {
                *whole = told;
            }
        }
        call.arguments.push_str(&arguments);
    }

    /// Which call a piece goes on with: that of its index, unless the piece has an id of its own (some servers give every call the
    /// index 0); without an index that of its id, and without either the last one, unless the piece has a name.
    fn position(&self, piece: &CallPiece) -> Option<usize> {
        let has_id = |growing: &GrowingCall| growing.call.id == piece.id;
        match piece.index {
            Some(_) => self.calls.iter().rposition(|growing| {
                growing.index == piece.index && (piece.id.is_empty() || growing.call.id.is_empty() || has_id(growing))
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

/// A name from outside, short enough for records and spans.
fn named(name: Option<String>) -> Option<String> {
    name.filter(|name| !name.is_empty()).map(|name| shortened(&name, 200))
}

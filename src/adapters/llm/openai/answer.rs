//! Puts an answer together from what an endpoint sends.

use tokio::sync::mpsc;

use super::failure::{Broken, shortened};
use super::wire::{Piece, Tokens};
use crate::ports::language_model::{Answer, Draft, Request, Usage};

/// An answer in the making.
pub(super) struct Growing<'a> {
    text: String,
    most: usize,
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

impl<'a> Growing<'a> {
    /// An answer of at most so many bytes.
    pub fn new(most: usize, drafts: Option<&'a mpsc::UnboundedSender<Draft>>) -> Self {
        Self {
            text: String::new(),
            most,
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
        if filtered && self.text.trim().is_empty() {
            return Err(Broken::Failed(Some(403), "its content filter withheld the answer".to_owned()));
        }
        let estimate = Usage::estimate(request, &self.text);
        let usage = self.tokens.map_or(estimate, |tokens| tokens.or(estimate));
        Ok(Answer { text: self.text, usage, model: self.model, response_id: self.id, finish_reason: self.finish_reason })
    }

    fn take(&mut self, piece: Piece) {
        self.tokens = piece.tokens.or(self.tokens);
        self.model = self.model.take().or_else(|| named(piece.model));
        self.id = self.id.take().or_else(|| named(piece.id));
        if let Some(choice) = piece.choice {
            self.chosen = true;
            self.begun |= choice.is_a_word;
            self.grow(choice.text);
            self.finish_reason = self.finish_reason.take().or_else(|| named(choice.finish_reason));
        }
    }

    fn grow(&mut self, mut words: String) {
        let room = self.most - self.text.len();
        if words.len() > room {
            let end = (0..=room).rev().find(|end| words.is_char_boundary(*end)).unwrap_or_default();
            words.truncate(end);
            self.finish_reason = Some("length".to_owned());
            self.cut = true;
        }
        if !words.is_empty() {
            self.text.push_str(&words);
            // Nobody has to listen.
            drop(self.drafts.map(|drafts| drafts.send(Draft::More(words))));
        }
    }
}

/// A name from outside, short enough for records and spans.
fn named(name: Option<String>) -> Option<String> {
    name.filter(|name| !name.is_empty()).map(|name| shortened(&name, 200))
}

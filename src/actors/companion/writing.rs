//! Reads a statement while its model writes it: shows or speaks the text that is certain, and stops reading where another speaker
//! begins (docs/design/speaking.md S-4, S-5).

use std::pin::pin;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::drafts::DraftView;
use super::speaking::Speaking;
use crate::actors::messages::models::Outcome;
use crate::domain::raw_answer::{self, Reader, Reading, Speakers};
use crate::ports::language_model::{Answer, Draft, NoAnswer, Request};

/// The receiver of the text while it is written.
pub(super) enum View {
    Unseen,
    Shown(DraftView),
    Spoken(Speaking),
}

impl View {
    fn restart(&mut self) {
        match self {
            Self::Unseen => {}
            Self::Shown(shown) => shown.restart(),
            Self::Spoken(speaking) => speaking.restart(),
        }
    }
}

/// A statement that is being written.
pub(super) struct Writing {
    /// The speakers whose names end the statement. Complete once the prompt is built.
    speakers: Arc<Mutex<Speakers>>,
    begins_in_thought: bool,
    view: View,
    /// The pieces of the model's answer. `None`: no further pieces are read, so that the call is cancelled.
    pieces: Option<UnboundedReceiver<Draft>>,
    raw: String,
    reader: Option<Reader>,
    /// How many bytes of the text were forwarded, and after how many restarts.
    passed: usize,
    restarts: usize,
    has_lost: bool,
    /// What a spoken reply said before its calls of tools.
    before: String,
}

impl Writing {
    /// An empty statement.
    pub(super) fn new(speakers: Arc<Mutex<Speakers>>, begins_in_thought: bool, view: View) -> Self {
        let (pieces, raw, reader) = (None, String::new(), None);
        let (passed, restarts, has_lost, before) = (0, 0, false, String::new());
        Self { speakers, begins_in_thought, view, pieces, raw, reader, passed, restarts, has_lost, before }
    }

    /// Starts a call to the model, perhaps another one. Returns the sender for the pieces of its answer.
    pub(super) fn begin(&mut self) -> UnboundedSender<Draft> {
        let (sender, pieces) = unbounded_channel();
        self.pieces = Some(pieces);
        self.restart();
        sender
    }

    /// Ends an answer that calls tools, and starts the next call to the model. The words of a spoken reply remain. Other text is dropped.
    pub(super) fn go_on(&mut self) -> UnboundedSender<Draft> {
        let words = self.reader.take().map(|reader| reader.finish().words.unwrap_or_default()).unwrap_or_default();
        match &mut self.view {
            View::Spoken(speaking) => {
                let words = words.trim_end();
                if speaking.pause(words.get(self.passed..).unwrap_or_default()) {
                    self.before.push_str(words);
                    self.before.push(' ');
                }
            }
            View::Shown(shown) => shown.restart(),
            View::Unseen => {}
        }
        self.raw.clear();
        (self.passed, self.restarts) = (0, 0);
        let (sender, pieces) = unbounded_channel();
        self.pieces = Some(pieces);
        sender
    }

    /// What a spoken reply said before its calls of tools.
    pub(super) fn said(&self) -> &str {
        &self.before
    }

    /// Continues to read a stream after this text.
    pub(super) fn begin_with(&mut self, raw: String, pieces: UnboundedReceiver<Draft>) {
        self.pieces = Some(pieces);
        self.restart();
        self.push_available(Draft::More(raw));
    }

    /// Waits for the answer, and forwards its text in the meantime.
    pub(super) async fn until<T>(&mut self, answer: impl Future<Output = T>) -> T {
        let mut answer = pin!(answer);
        loop {
            let next = async {
                match &mut self.pieces {
                    Some(pieces) => pieces.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(piece) = next => self.push_available(piece),
                answer = &mut answer => {
                    if let Some(piece) = self.pieces.as_mut().and_then(|pieces| pieces.try_recv().ok()) {
                        self.push_available(piece);
                    }
                    return answer;
                }
            }
        }
    }

    /// Discards the text, because the answer starts again. If a sentence was already spoken, the new answer does not continue it
    /// and is not read.
    fn restart(&mut self) {
        if !self.has_said_nothing() {
            (self.has_lost, self.pieces) = (true, None);
            return;
        }
        self.raw.clear();
        (self.reader, self.passed, self.restarts) = (None, 0, 0);
        self.view.restart();
    }

    /// Whether no sentence was sent to the channel.
    pub(super) const fn has_said_nothing(&self) -> bool {
        !matches!(&self.view, View::Spoken(Speaking { has_begun: true, .. }))
    }

    /// Whether the endpoint begins the thoughts of this model itself, as far as is known.
    pub(super) const fn begins_in_thought(&self) -> bool {
        self.begins_in_thought
    }

    /// Whether the answer was lost after a sentence of it was spoken.
    pub(super) const fn has_lost(&self) -> bool {
        self.has_lost
    }

    /// The result of reading the answer. If reading stopped early, the text read so far counts as the answer. None if there is no
    /// answer.
    pub(super) fn read(&self, outcome: Outcome, asked: &Request) -> (Outcome, Option<Reading>) {
        if let Some(reader) = self.reader.as_ref().filter(|reader| reader.is_over()) {
            let reading = reader.clone().finish();
            if !matches!(outcome.result, Err(NoAnswer::Cancelled)) {
                return (outcome, Some(reading));
            }
            let answer = Answer::of_text(self.raw.clone(), asked.estimated_usage(&self.raw));
            let mut facts = outcome.facts;
            facts.usage = answer.usage;
            return (Outcome { result: Ok(answer), facts }, Some(reading));
        }
        let text = outcome.result.as_ref().ok().map(Answer::text);
        let reading = text.map(|text| raw_answer::statement(&text, self.speakers.lock().clone()));
        (outcome, reading)
    }

    /// Ends the statement with its complete text. `is_cut`: the model reached its token limit after it.
    pub(super) fn finish(self, words: &str, is_cut: bool) {
        if let View::Spoken(speaking) = self.view
            && !self.has_lost
        {
            speaking.finish(words.get(self.passed..).unwrap_or_default(), is_cut);
        }
    }

    fn push_available(&mut self, first: Draft) {
        self.push_piece(first);
        while let Some(piece) = self.pieces.as_mut().and_then(|pieces| pieces.try_recv().ok()) {
            self.push_piece(piece);
        }
        if let View::Shown(shown) = &mut self.view {
            shown.show();
        }
    }

    fn push_piece(&mut self, piece: Draft) {
        let Draft::More(more) = piece else { return self.restart() };
        let begin = || Reader::new(self.speakers.lock().clone(), self.begins_in_thought);
        let reader = self.reader.get_or_insert_with(begin);
        reader.feed(&more);
        self.raw.push_str(&more);
        if reader.restarts() > self.restarts {
            (self.passed, self.restarts) = (0, reader.restarts());
            self.view.restart();
        }
        let more = &reader.words()[self.passed..];
        match &mut self.view {
            View::Unseen => {}
            View::Shown(shown) => shown.push(more),
            View::Spoken(speaking) => speaking.push(more),
        }
        self.passed += more.len();
        if reader.is_over() {
            self.pieces = None;
        }
    }
}

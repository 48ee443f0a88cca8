//! Sends the sentences of a spoken reply to its channel while the model writes them (docs/design/voice.md ).

use std::sync::Arc;

use ractor::ActorRef;

use crate::actors::messages::channel::ChannelMessage;
use crate::domain::answer_end::is_whole;
use crate::domain::id::Ticket;
use crate::domain::voice::spoken_sentences::SpokenSentences;

/// A spoken reply that is being written.
pub(super) struct Speaking {
    channel: ActorRef<ChannelMessage>,
    ticket: Ticket,
    sentences: SpokenSentences,
    pub(super) has_begun: bool,
}

impl Speaking {
    /// An empty reply.
    pub(super) fn new(channel: ActorRef<ChannelMessage>, ticket: Ticket) -> Self {
        Self { channel, ticket, sentences: SpokenSentences::default(), has_begun: false }
    }

    /// Appends text, and sends the sentences that are complete now.
    pub(super) fn push(&mut self, more: &str) {
        let whole = self.sentences.push(more);
        self.has_begun |= !whole.is_empty();
        self.hand_over(whole);
    }

    /// Appends text that a call of a tool ends, and sends all of it. More text follows after a space. Returns whether anything was sent so far.
    pub(super) fn pause(&mut self, rest: &str) -> bool {
        self.push(rest);
        let last = std::mem::take(&mut self.sentences).finish();
        self.has_begun |= !last.is_empty();
        self.hand_over(last);
        if self.has_begun {
            self.push(" ");
        }
        self.has_begun
    }

    /// Discards the incomplete sentence, because the text starts again. Sentences that were sent remain.
    pub(super) fn restart(&mut self) {
        self.sentences = SpokenSentences::default();
    }

    /// Appends the last text and sends the remaining sentences. If no sentence was sent before, it sends none, because the answer arrives as the text
    /// of the reply. If the answer was cut off, its incomplete last sentence is dropped.
    pub(super) fn finish(mut self, rest: &str, is_cut: bool) {
        if self.has_begun {
            self.push(rest);
            let mut last = std::mem::take(&mut self.sentences).finish();
            last.pop_if(|last| is_cut && !is_whole(last));
            self.hand_over(last);
        }
    }

    fn hand_over(&self, sentences: Vec<Arc<str>>) {
        for text in sentences {
            // A channel that has stopped needs no sentences.
            let _ = self.channel.cast(ChannelMessage::SentenceWritten { ticket: self.ticket, text });
        }
    }
}

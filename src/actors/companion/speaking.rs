//! Hands the sentences of a spoken reply to its channel while the model writes them (docs/design/voice.md ).

use std::pin::pin;
use std::sync::Arc;

use ractor::ActorRef;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::actors::messages::channel::ChannelMessage;
use crate::domain::answer_end::is_whole;
use crate::domain::id::Ticket;
use crate::domain::voice::spoken_sentences::SpokenSentences;
use crate::ports::language_model::Draft;

/// A spoken reply that is being written.
pub(super) struct Speaking {
    channel: ActorRef<ChannelMessage>,
    ticket: Ticket,
    name: Arc<str>,
    /// What the model writes. `None`: its answer was lost after a sentence of it was handed over. What another answer says does not follow that
    /// sentence, so that it is not received.
    pieces: Option<UnboundedReceiver<Draft>>,
    sentences: SpokenSentences,
    has_begun: bool,
}

impl Speaking {
    /// Before the first word of a companion with this name.
    pub(super) fn new(
        channel: ActorRef<ChannelMessage>,
        ticket: Ticket,
        name: &Arc<str>,
        pieces: UnboundedReceiver<Draft>,
    ) -> Self {
        let sentences = SpokenSentences::new(name);
        Self { channel, ticket, name: name.clone(), pieces: Some(pieces), sentences, has_begun: false }
    }

    /// Waits for an answer, and hands over its sentences meanwhile.
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
                Some(piece) = next => self.take(piece),
                answer = &mut answer => {
                    while let Some(piece) = self.pieces.as_mut().and_then(|pieces| pieces.try_recv().ok()) {
                        self.take(piece);
                    }
                    return answer;
                }
            }
        }
    }

    /// Whether the answer was lost after a sentence of it was handed over.
    pub(super) const fn has_lost(&self) -> bool {
        self.pieces.is_none()
    }

    /// The answer has ended. Its rest is handed over, if anything of it was: an answer of one sentence comes as the text of the reply. Of an answer
    /// that was cut off, half a sentence is not spoken.
    pub(super) fn finish(self, is_cut: bool) {
        if self.has_begun && self.pieces.is_some() {
            let mut rest = self.sentences.finish();
            rest.pop_if(|last| is_cut && !is_whole(last));
            hand_over(&self.channel, self.ticket, rest);
        }
    }

    fn take(&mut self, piece: Draft) {
        match piece {
            Draft::More(more) => {
                let whole = self.sentences.push(&more);
                self.has_begun |= !whole.is_empty();
                hand_over(&self.channel, self.ticket, whole);
            }
            Draft::Restart if self.has_begun => self.pieces = None,
            Draft::Restart => self.sentences = SpokenSentences::new(&self.name),
        }
    }
}

fn hand_over(channel: &ActorRef<ChannelMessage>, ticket: Ticket, sentences: Vec<Arc<str>>) {
    for text in sentences {
        // A channel that has stopped needs none.
        let _ = channel.cast(ChannelMessage::SentenceWritten { ticket, text });
    }
}

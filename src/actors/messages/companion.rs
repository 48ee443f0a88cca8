//! What a companion is asked.

use std::sync::Arc;

use super::channel::ChannelMessage;
use crate::domain::id::Ticket;
use crate::domain::message::{Message, Modality};
use crate::domain::trigger::Trigger;
use crate::journal::place::Place;
use crate::settings::companion::Companion as Settings;

/// What a companion is asked.
pub enum CompanionMessage {
    /// Decide whether to speak.
    Evaluate(Box<Evaluate>),
}

/// A decision to be made.
pub struct Evaluate {
    /// Who asks, under which number.
    pub asking: Asking,
    /// What it is made from.
    pub matter: Matter,
}

/// Everything that a decision is made from.
pub struct Matter {
    /// Why.
    pub trigger: Trigger,
    /// Whether it votes in a round with its answer.
    pub is_vote: bool,
    /// Typed or spoken.
    pub modality: Modality,
    /// Messages since it spoke last.
    pub message_count: u64,
    /// Who said what triggered it.
    pub speaker: Option<Arc<str>>,
    /// Whether the last messages were judged to repeat each other.
    pub is_repetitive: bool,
    /// The rolling summary.
    pub summary: Option<Arc<str>>,
    /// The most recent settled turns, oldest first.
    pub recent: Vec<Arc<Message>>,
    /// What it is about, and what the companion said itself meanwhile, oldest first.
    pub buffer: Vec<Arc<Message>>,
    /// The companion as it is in that channel.
    pub settings: Arc<Settings>,
}

/// Tells a channel, wherever it is then.
pub type Tell = Arc<dyn Fn(ChannelMessage) + Send + Sync>;

/// A question of a channel on its way to the pool. Dropped on the way, it tells the channel so.
pub struct Asking {
    /// Where.
    pub place: Place,
    /// The question's number.
    pub ticket: Ticket,
    tell: Tell,
    is_on_its_way: bool,
}

impl Asking {
    /// A question of this channel, which is told by this, wherever it is then.
    pub fn new(place: Place, ticket: Ticket, tell: impl Fn(ChannelMessage) + Send + Sync + 'static) -> Self {
        Self { place, ticket, tell: Arc::new(tell), is_on_its_way: true }
    }

    /// Tells the channel.
    pub fn tell(&self, message: ChannelMessage) {
        (self.tell)(message);
    }

    /// What tells the channel later.
    pub fn teller(&self) -> Tell {
        self.tell.clone()
    }

    /// It is with the pool, or its answer is given.
    pub fn arrived(&mut self) {
        self.is_on_its_way = false;
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if self.is_on_its_way {
            let ticket = self.ticket;
            let is_unaskable = std::thread::panicking();
            self.tell(if is_unaskable {
                ChannelMessage::QuestionUnasked { ticket }
            } else {
                ChannelMessage::QuestionLost { ticket }
            });
        }
    }
}

//! Converts Discord's messages to inbound messages of the core.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::cache::Names;
use super::super::clock::Clocks;
use super::super::incoming::{self, Incoming, OwnIds, Sender, classify};
use super::super::wire;
use crate::domain::message::Modality;
use crate::ports::inbound_events::{Answered, Answers, InboundMessage};

pub(super) fn classify_message(message: &wire::Message, bot: wire::Bot, names: Names<'_>) -> Incoming {
    // Discord reports the application with each message of a webhook that the application created, so no list of webhooks is needed.
    let own_ids = OwnIds { bot: bot.user, application: bot.application, webhooks: &BTreeSet::new() };
    classify(message, &own_ids, &names)
}

/// The message for the core.
pub(super) fn to_inbound(message: incoming::IncomingMessage, to_all: bool, clocks: &Clocks) -> InboundMessage {
    InboundMessage {
        id: message.id.to_string().into(),
        from: message.from,
        text: message.text.into(),
        own_words: message.own_words.into(),
        modality: Modality::Text,
        lull_endpoint: false,
        at: clocks.said_at(message.id),
        mentions: message.mentions,
        to_all: to_all || message.mentions_bot,
        answers: message.answers.map(|answered| Answers {
            message: answered.message.to_string().into(),
            by: answered.sender.and_then(answered_author),
        }),
    }
}

fn answered_author(sender: Sender) -> Option<Answered> {
    match sender {
        Sender::Ours(name) => Some(Answered::Ours(name.map(Arc::from))),
        Sender::Other(author) => Some(Answered::Other(author.id, author.role)),
        Sender::System => None,
    }
}

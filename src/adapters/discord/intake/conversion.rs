//! Words a message for the core.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::cache::Names;
use super::super::clock::Clocks;
use super::super::incoming::{self, Incoming, OwnIds, Sender, classify};
use super::super::platform::Bot;
use super::super::snowflake::Snowflake;
use super::super::wire;
use crate::domain::message::Modality;
use crate::ports::inbound_events::{Answered, Answers, InboundMessage};

/// Whose names a message may hold: those of its guild, and of whom it forwards.
struct MessageNames<'a> {
    cache: Names<'a>,
    message: &'a wire::Message,
}

impl incoming::NameLookup for MessageNames<'_> {
    fn person(&self, id: Snowflake) -> Option<String> {
        self.message.forwarded_mention(id).or_else(|| self.cache.person(id))
    }

    fn role(&self, id: Snowflake) -> Option<String> {
        self.cache.role(id)
    }

    fn channel(&self, id: Snowflake) -> Option<String> {
        self.cache.channel(id)
    }
}

/// What a message is for us.
pub(super) fn classify_message(message: &wire::Message, bot: Bot, names: Names<'_>) -> Incoming {
    // Discord names the application with each message of a webhook that it made.
    let us = OwnIds { bot: bot.user, application: bot.application, webhooks: &BTreeSet::new() };
    classify(&message.raw(), &us, &MessageNames { cache: names, message })
}

/// What the core is told of it.
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
        answers: message
            .answers
            .map(|answered| Answers { message: answered.message.to_string().into(), by: answered.by.and_then(answered_author) }),
    }
}

fn answered_author(sender: Sender) -> Option<Answered> {
    match sender {
        Sender::Ours(name) => Some(Answered::Ours(name.map(Arc::from))),
        Sender::Other(author) => Some(Answered::Other(author.id, author.role)),
        Sender::System => None,
    }
}

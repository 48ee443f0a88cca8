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
struct Mentionable<'a> {
    known: Names<'a>,
    message: &'a wire::Message,
}

impl incoming::NameLookup for Mentionable<'_> {
    fn person(&self, id: Snowflake) -> Option<String> {
        self.message.forwarded_mention(id).or_else(|| self.known.person(id))
    }

    fn role(&self, id: Snowflake) -> Option<String> {
        self.known.role(id)
    }

    fn channel(&self, id: Snowflake) -> Option<String> {
        self.known.channel(id)
    }
}

/// What a message is for us.
pub(super) fn read(message: &wire::Message, bot: Bot, names: Names<'_>) -> Incoming {
    // Discord names the application with each message of a webhook that it made.
    let us = OwnIds { bot: bot.user, application: bot.application, webhooks: &BTreeSet::new() };
    classify(&message.raw(), &us, &Mentionable { known: names, message })
}

/// What the core is told of it.
pub(super) fn worded(said: incoming::IncomingMessage, to_all: bool, clocks: &Clocks) -> InboundMessage {
    InboundMessage {
        id: said.id.to_string().into(),
        from: said.from,
        text: said.text.into(),
        own_words: said.own_words.into(),
        modality: Modality::Text,
        lull_endpoint: false,
        at: clocks.said_at(said.id),
        mentions: said.mentions,
        to_all: to_all || said.mentions_bot,
        answers: said
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

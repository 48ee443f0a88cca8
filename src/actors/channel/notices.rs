//! The notice that companions are AI: whether a statement owes it, and its words on a platform (docs/design/safety.md).

use std::collections::BTreeSet;

use super::channel_context::ChannelContext;
use crate::domain::conversation::Conversation;
use crate::domain::id::{PersonId, Ticket};
use crate::domain::message::Role;
use crate::domain::notice::Owed;
use crate::journal::record::NoticeRecord;
use crate::ports::chat_platform::notice;

/// The notice that the statement of this reply owes to the people whom it answers.
pub(super) fn owed(ticket: Ticket, conversation: &Conversation, channel: &ChannelContext) -> Option<Owed> {
    let (context, guild) = (&channel.context, &channel.key.guild);
    let repeat = context.settings.safety.notice.repeat()?;
    let reply = conversation.turns().owed_reply(ticket)?;
    let answered = conversation.window().entries().filter(|entry| reply.messages.contains(&entry.seq));
    let people = answered.map(|entry| &entry.message.from).filter(|from| from.role == Role::Person && !from.id.is_empty());
    // At a console that only this machine reaches, everybody but guests operates it.
    let is_public = !context.platforms.is_written_here(&channel.key.channel) || context.settings.server.is_reached();
    let strangers = people.filter(|from| is_public || context.guests.read(|guests| guests.include(guild, &from.id)));
    let strangers: BTreeSet<PersonId> = strangers.map(|from| PersonId::from(&*from.id)).collect();
    let told = strangers.into_iter().map(|person| {
        let at = context.told.at(guild, &person);
        (person, at)
    });
    repeat.owed(told, context.clock.now(), context.settings.prompt.zone_of(guild))
}

/// A notice in the language of the channel.
pub(super) fn record(owed: Owed, channel: &ChannelContext) -> NoticeRecord {
    let settings = &channel.context.settings;
    let spoken = channel.context.memberships.language(&channel.key.channel);
    let text = notice(&settings.safety, spoken.as_deref().unwrap_or(&settings.speech.language));
    NoticeRecord { owed, text: text.into() }
}

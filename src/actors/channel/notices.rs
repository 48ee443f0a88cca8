//! The notice that companions are AI: decides whether a statement carries it, and builds its text for a platform
//! (docs/design/safety.md).

use std::collections::BTreeSet;

use super::channel_context::ChannelContext;
use crate::domain::conversation::Conversation;
use crate::domain::id::{PersonId, Ticket};
use crate::domain::message::Role;
use crate::domain::moment::Moment;
use crate::domain::notice::{Notice, Occasion, Owed};
use crate::journal::record::NoticeRecord;
use crate::ports::chat_platform::notice;

/// The notice that the statement of this reply must carry for the people it answers. None if no notice is due.
/// `replaced`: why the statement whose place it takes carried one, which then stays.
pub(super) fn owed(
    ticket: Ticket,
    replaced: Option<Occasion>,
    conversation: &Conversation,
    channel: &ChannelContext,
) -> Option<Owed> {
    let (context, guild) = (&channel.context, &channel.key.guild);
    let has_minors = context.memberships.has_minors(&channel.key.channel);
    // On a platform, the notice also says that notes are taken. It is due once more after notes were turned on.
    let notes_since = noting_since(channel);
    let once = || notes_since.and_then(|_| Notice::Once.repeat(false));
    let repeat = context.in_force().safety.notice.repeat(has_minors).or_else(once)?;
    // If the console is reachable only from this machine, all its users except guests are operators.
    let is_public = !context.platforms.is_written_here(&channel.key.channel) || context.settings.server.is_reached();
    let mut strangers = answered(ticket, conversation);
    strangers.retain(|person| is_public || context.guests.read(|guests| guests.include(guild, person.as_str())));
    let told = strangers.iter().cloned().map(|person| {
        let at = context.told.get(guild, &person).filter(|at| notes_since.is_none_or(|since| *at >= since));
        (person, at)
    });
    let due = repeat.owed(told, context.clock.now(), context.in_force().prompt.zone_of(guild));
    let people = || strangers.into_iter().collect();
    due.or_else(|| {
        replaced.map(|occasion| Owed { people: people(), occasion, again: true }).filter(|owed| !owed.people.is_empty())
    })
}

/// The people whose messages the statement of this reply answers, without those that were forgotten in the meantime.
pub(super) fn answered(ticket: Ticket, conversation: &Conversation) -> BTreeSet<PersonId> {
    let Some(reply) = conversation.turns().owed_reply(ticket) else { return BTreeSet::new() };
    let entries = conversation.window().entries().filter(|entry| reply.messages.contains(&entry.seq));
    let people = entries.map(|entry| &entry.message.from).filter(|from| from.role == Role::Person && !from.id.is_empty());
    people.map(|from| PersonId::from(&*from.id)).collect()
}

/// Since when notes are taken in a channel of a platform.
fn noting_since(channel: &ChannelContext) -> Option<Moment> {
    channel.platform().and_then(|_| channel.context.note_switch(&channel.key)).map(|switch| switch.since)
}

/// A notice in the language of the channel.
pub(super) fn record(owed: Owed, channel: &ChannelContext) -> NoticeRecord {
    let settings = channel.context.in_force();
    let spoken = channel.context.memberships.language(&channel.key.channel);
    let text = notice(&settings.safety, noting_since(channel).is_some(), spoken.as_deref().unwrap_or(&settings.speech.language));
    NoticeRecord { owed, text: text.into() }
}

//! Notes of other rooms of the guild (docs/design/memory.md).

use std::sync::Arc;

use super::history;
use crate::actors::runtime::context::ActorContext;
use crate::domain::id::{ChannelId, CompanionId};
use crate::domain::message::{Recalled, Role};
use crate::domain::note::Note;
use crate::journal::channel_key::ChannelKey;

/// Whether prompts of a channel may have notes of other rooms: its guild allows it, and the channel has no open invitation.
fn is_allowed(channel_key: &ChannelKey, context: &ActorContext) -> bool {
    let is_across = context.note_switch(channel_key).is_some_and(|switch| switch.across_rooms);
    is_across && !context.guests.read(|guests| guests.has_open(&channel_key.channel, context.clock.now()))
}

/// Whether a note of another room may be used in a channel now. It is what a person who allows notes said of themselves, in a room that everybody can read.
pub fn is_usable(note: &Note, source: &ChannelId, channel_key: &ChannelKey, context: &ActorContext) -> bool {
    let is_of_oneself = note.about.as_ref().is_some_and(|about| about.role == Role::Person) && !note.is_hearsay();
    is_allowed(channel_key, context)
        && context.platforms.is_public(source)
        && is_of_oneself
        && context.author_may_be_noted(&channel_key.guild, &note.said_by)
}

/// The notes of other rooms that a companion may use in a channel. What cannot be read now is left out. The caller must not hold the lock of a history,
/// and must read [`Recall::forgotten`](crate::actors::recall::Recall::forgotten) before.
pub(super) async fn notes(
    channel_key: &ChannelKey,
    companion: &CompanionId,
    context: &ActorContext,
) -> Vec<(Recalled, Arc<Note>)> {
    let mut found = Vec::new();
    if !is_allowed(channel_key, context) {
        return found;
    }
    let rooms = context.memberships.all().into_iter().filter(|(channel, membership)| {
        membership.guild == channel_key.guild && *channel != channel_key.channel && context.platforms.is_public(channel)
    });
    for (channel, _) in rooms.collect::<Vec<_>>() {
        let source = ChannelKey::new(&channel_key.guild, &channel);
        let Some(_lock) = history::lock(context, &source).await else { continue };
        let notes = context.recall.notes(&source, &*context.store).await.unwrap_or_else(|error| {
            tracing::warn!(channel = channel.as_str(), %error, "notes of another room cannot be read for a statement");
            Vec::new()
        });
        let usable = notes
            .into_iter()
            .filter(|(_, note)| note.companions.contains(companion) && is_usable(note, &channel, channel_key, context));
        found.extend(usable.map(|(seq, note)| (Recalled::Elsewhere(channel.clone(), seq), note)));
    }
    found
}

/// Leaves out the notes that may not be used any more since they were read. `forgotten` is the count from before they were read.
pub(super) fn check_again(
    notes: &mut Vec<(Recalled, Arc<Note>)>,
    forgotten: u64,
    channel_key: &ChannelKey,
    context: &ActorContext,
) {
    if context.recall.forgotten() != forgotten {
        notes.clear();
    }
    notes.retain(|(of, note)| matches!(of, Recalled::Elsewhere(source, _) if is_usable(note, source, channel_key, context)));
}

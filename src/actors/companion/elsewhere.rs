//! Notes of other rooms of the guild (docs/design/memory.md).

use std::sync::Arc;

use super::history;
use crate::actors::runtime::context::ActorContext;
use crate::domain::message::{Recalled, Role};
use crate::domain::note::Note;
use crate::journal::channel_key::ChannelKey;

/// Whether prompts of a channel may have notes of other rooms: its guild allows it, and nobody is invited to the channel.
pub(super) fn is_allowed(channel_key: &ChannelKey, context: &ActorContext) -> bool {
    let is_across = context.note_switch(channel_key).is_some_and(|switch| switch.across_rooms);
    is_across && !context.guests.read(|guests| guests.has_open(&channel_key.channel, context.clock.now()))
}

/// What people said of themselves in other rooms that everybody in the guild can read. What cannot be read now is left out. The caller must not hold
/// the lock of a history.
pub(super) async fn notes(channel_key: &ChannelKey, context: &ActorContext) -> Vec<(Recalled, Arc<Note>)> {
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
        let is_of_oneself =
            |note: &Note| note.about.as_ref().is_some_and(|about| about.role == Role::Person) && !note.is_hearsay();
        let notes = notes.into_iter().filter(|(_, note)| is_of_oneself(note));
        found.extend(notes.map(|(seq, note)| (Recalled::Elsewhere(channel.clone(), seq), note)));
    }
    found
}

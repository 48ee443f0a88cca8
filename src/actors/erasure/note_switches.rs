//! Turns notes on and off, by guild and by person (docs/design/memory.md).

use super::deletion::{RewriteError, erase_notes};
use crate::actors::messages::writer::WriteError;
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::write_meta;
use crate::domain::id::{GuildId, PersonId, Ward};
use crate::domain::note::Note;
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::record::{NoteSwitchRecord, encode};
use crate::ports::store::Write;

/// Turns notes on or off, for a guild or for one of its people.
///
/// # Errors
/// Returns an error if that is not stored.
pub async fn switch(context: &ActorContext, guild: &GuildId, person: Option<&PersonId>, on: bool) -> Result<(), WriteError> {
    let nobody = PersonId::from("");
    let of = person.unwrap_or(&nobody);
    let across_rooms = on && context.note_switches.get(guild, of).is_some_and(|switch| switch.across_rooms);
    store(context, guild, of, NoteSwitchRecord { on, since: context.clock.now(), across_rooms }).await
}

/// Sets whether notes of a guild are used in other rooms than their own.
///
/// # Errors
/// Returns an error if that is not stored.
pub async fn set_across_rooms(
    context: &ActorContext,
    guild: &GuildId,
    switch: NoteSwitchRecord,
    across_rooms: bool,
) -> Result<(), WriteError> {
    store(context, guild, &PersonId::from(""), NoteSwitchRecord { across_rooms, ..switch }).await
}

async fn store(context: &ActorContext, guild: &GuildId, of: &PersonId, switch: NoteSwitchRecord) -> Result<(), WriteError> {
    let writes = vec![Write::Put(key::note_switch(guild, of), encode(&switch))];
    write_meta(context, Ward::of(guild), writes).await?;
    context.note_switches.insert(guild, [of], switch);
    Ok(())
}

/// Erases notes in all channels of a guild. Returns how many were erased.
///
/// # Errors
/// Returns an error if notes may remain.
pub async fn erase_in_guild(
    context: &ActorContext,
    guild: &GuildId,
    is_erased: impl Fn(&Note) -> bool,
) -> Result<u64, RewriteError> {
    let channels = context.memberships.all().into_iter().filter(|(_, membership)| membership.guild == *guild);
    let mut erased = 0;
    for (channel, _) in channels.collect::<Vec<_>>() {
        erased += erase_notes(context, &ChannelKey::new(guild, &channel), |_, note| is_erased(note)).await?;
    }
    Ok(erased)
}

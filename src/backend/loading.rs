//! Loads the rooms at the start, and the companions whenever their files change.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::actors::erasure::note_switches;
use crate::actors::membership::changes::{self, MembershipError};
use crate::actors::membership::memberships::{CompanionSet, ReloadError};
use crate::actors::membership::people;
use crate::actors::messages::guild::GuildMessage;
use crate::actors::messages::writer::WriteError;
use crate::actors::runtime::actor_keys::GuildKey;
use crate::actors::runtime::context::ActorContext;
use crate::domain::id::{ChannelId, CompanionId, GuildId};
use crate::domain::moment::Moment;
use crate::domain::names::SharedName;
use crate::journal::channel_key::ChannelKey;
use crate::journal::membership::{self, Membership};
use crate::journal::reader::{ReadError, Reader};
use crate::journal::record::{RoomRecord, decode};
use crate::settings::console;
use crate::telemetry::plain::Plain;

/// Why the rooms could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadRoomsError {
    /// Stored records of the rooms cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A record could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Two companions of one guild share a name.
    #[error("room {room}: {shared}; give one of them another name, or remove it from the guild")]
    SharedName { room: ChannelId, shared: SharedName },
    /// A room of the settings could not be created.
    #[error("room {room}: {error}")]
    MembershipError { room: ChannelId, error: MembershipError },
}

/// Loads the opt-outs, the notices to people that companions are AI, the invitations and all stored rooms. Then creates the rooms of the settings
/// that are not stored. Needs the writer.
///
/// If the settings contain rooms (`are_set`), their changes since the last start apply to stored rooms: added companions join, and removed
/// companions leave.
///
/// Companions that are no longer configured stay on record, and are logged.
///
/// # Errors
/// Returns a [`LoadRoomsError`]. A stored room that cannot be loaded because of a shared name is logged and skipped.
pub async fn load_rooms(context: &ActorContext, rooms: &[console::Room], are_set: bool) -> Result<(), LoadRoomsError> {
    let reader = Reader::new(&*context.store);
    people::load(&context.opt_outs, &context.told, &context.note_switches, &*context.store).await?;
    context.guests.load(&*context.store).await?;
    let cast = context.memberships.companions();
    // One read per ward: one read per room would need a disk access for each.
    let stored = reader.rooms().await?;
    if stored.is_empty() && reader.starts(Moment::ZERO, context.clock.now(), 1).await?.is_empty() && !rooms.is_empty() {
        // A new store. In older ones, people turn notes on.
        note_switches::switch(context, &GuildId::from(""), None, true).await?;
    }
    let wards: BTreeSet<_> = stored.iter().map(|record| ChannelKey::new(&record.guild, &record.room).ward()).collect();
    let read = stream::iter(wards).map(|ward| reader.memberships(ward)).buffer_unordered(context.store.reads_at_once());
    let mut memberships: BTreeMap<_, _> = read.try_concat().await?;
    for RoomRecord { room, guild, .. } in stored {
        let key = membership::key(&ChannelKey::new(&guild, &room));
        let Some(value) = memberships.remove(&key) else { continue };
        let membership: Membership = decode(&key, &value).map_err(ReadError::from)?;
        for companion in &membership.companions {
            let (room, plain_companion) = (Plain(room.as_str()), Plain(companion.as_str()));
            match (membership.is_external(companion), cast.contains_key(companion)) {
                (false, false) => {
                    tracing::warn!(
                        %room,
                        companion = %plain_companion,
                        "a companion of this room is no longer configured; the room continues without it"
                    );
                }
                (true, true) => {
                    tracing::warn!(
                        %room,
                        companion = %plain_companion,
                        "a companion with this id is configured now, but stays external in this room"
                    );
                }
                _ => {}
            }
        }
        if let Err(shared) = context.memberships.put(&room, membership) {
            let (room, guild) = (Plain(room.as_str()), Plain(guild.as_str()));
            tracing::error!(%room, %guild, %shared, "this room cannot be loaded; give one of the two companions another name");
        }
    }
    for room in rooms {
        let channel = room.channel();
        let named: BTreeSet<_> = room.companions.iter().cloned().collect();
        let membership = match context.memberships.get(&channel) {
            Some(stored) => {
                if let Some(changed) = reconfigured(&stored, named, are_set) {
                    let lock = context.memberships.lock().await;
                    if let Err(error) = changes::update_membership(context, &lock, &channel, changed).await {
                        tracing::error!(room = %channel, %error, "this room keeps its members: what console.rooms says cannot be done");
                    }
                }
                continue;
            }
            None if reader.room(&channel).await?.is_some() => continue,
            None => Membership {
                companions: named.clone(),
                configured: Some(named),
                ..Membership::empty(room.guild.clone(), context.clock.now())
            },
        };
        let lock = context.memberships.lock().await;
        changes::update_membership(context, &lock, &channel, membership).await.map_err(|error| match error {
            MembershipError::SharedName(shared) => LoadRoomsError::SharedName { room: channel.clone(), shared },
            error => LoadRoomsError::MembershipError { room: channel.clone(), error },
        })?;
    }
    let rooms = context.memberships.all();
    for companion in cast.keys().filter(|id| !rooms.iter().any(|(_, membership)| membership.companions.contains(*id))) {
        tracing::info!(%companion, "this companion is in no room; add it on the page, with /tertulia join, or in console.rooms");
    }
    Ok(())
}

/// A stored room with the changes of the settings since the last start. `None`: nothing has changed.
fn reconfigured(stored: &Membership, named: BTreeSet<CompanionId>, are_set: bool) -> Option<Membership> {
    let mut changed = stored.clone();
    match &stored.configured {
        Some(before) if are_set => {
            changed.companions.extend(named.difference(before).cloned());
            changed.companions.retain(|id| named.contains(id) || !before.contains(id) || stored.is_external(id));
        }
        // Default rooms, for settings without rooms, are only proposals for new rooms.
        Some(_) => return None,
        // The room was stored by a version that did not keep the configured companions.
        None => {}
    }
    changed.configured = Some(named);
    (changed != *stored).then_some(changed)
}

/// Replaces the configured companions. Companions that are no longer configured leave the rooms; companions that are configured again return. On an
/// error, nothing changes.
///
/// # Errors
/// Returns an error if two companions of one guild would share a name, or if a new companion has the id of an external one in a room.
pub fn reload_companions(context: &ActorContext, cast: CompanionSet) -> Result<(), ReloadError> {
    context.memberships.reload_companions(cast)?;
    let guilds: BTreeSet<_> = context.memberships.all().into_iter().map(|(_, membership)| membership.guild).collect();
    for guild in guilds {
        if let Some(actor) = context.directory.find(&GuildKey(guild)) {
            // A guild that is being restarted reads the change when it starts, and so does a channel that is not running.
            let _ = actor.cast(GuildMessage::MembershipChanged(None));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::moment::Moment;

    #[test]
    fn who_is_added_to_the_settings_joins_and_who_was_removed_by_hand_stays_away() {
        let ids = |names: &str| names.split_whitespace().map(CompanionId::from).collect::<BTreeSet<_>>();
        let stored = |companions: &str, configured: Option<&str>| Membership {
            companions: ids(companions),
            configured: configured.map(ids),
            ..Membership::empty("home".into(), Moment::ZERO)
        };
        let members = |stored: &Membership, named: &str| reconfigured(stored, ids(named), true).map(|changed| changed.companions);

        // Bruno was removed by hand, and Zoe added.
        let room = stored("aria cleo zoe", Some("aria bruno cleo"));
        assert_eq!(members(&room, "aria bruno cleo dora"), Some(ids("aria cleo dora zoe")));
        assert_eq!(members(&room, "bruno cleo"), Some(ids("cleo zoe")), "Aria was removed in the settings");
        assert_eq!(members(&room, "aria bruno cleo"), None);
        assert_eq!(reconfigured(&room, ids("aria ben"), false), None, "nobody wrote these rooms");
        let older = stored("aria", None);
        assert_eq!(members(&older, "aria bruno"), Some(ids("aria")), "what was before is not known");
    }
}

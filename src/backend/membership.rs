//! Adds companions to channels of other platforms, and removes them, one at a time.

use serde_json::json;

use super::ActorBackend;
use super::errors::invalid;
use crate::actors::membership::changes;
use crate::domain::id::{CompanionId, GuildId};
use crate::journal::membership::Membership;
use crate::ports::backend::room::RoomId;
use crate::ports::backend::{Detail, Refused};
use crate::ports::inbound_events::ChannelRef;

/// The number of companions that an error message about an unknown one lists.
const MAX_NAMED: usize = 20;

impl ActorBackend {
    /// The room of a channel of another platform.
    pub(super) fn joinable_room(&self, channel_ref: &ChannelRef) -> Result<RoomId, Refused> {
        let room = RoomId::of(&channel_ref.channel).filter(|room| !self.is_written_here(room));
        room.ok_or_else(|| invalid("channel", format!("companions cannot be added to {} in this way", channel_ref.channel)))
    }

    /// Whether a channel is already a room, and its membership: the existing one, or the one that it would get with its first message.
    pub(super) fn membership_at(&self, channel_ref: &ChannelRef) -> Result<(bool, Membership), Refused> {
        match self.context.memberships.get(&channel_ref.channel) {
            Some(existing) if existing.guild == channel_ref.guild => Ok((true, existing)),
            Some(existing) => {
                Err(Refused::conflict(format!("{} belongs to guild {}, for good", channel_ref.channel, existing.guild)))
            }
            None => {
                let room = RoomId::of(&channel_ref.channel);
                if let Some((room, at)) = room.zip(self.context.memberships.deleted_at(&channel_ref.channel)) {
                    return Err(Refused::conflict(self.being_deleted(&room, at)));
                }
                let empty = || Membership {
                    within: channel_ref.parent.clone(),
                    ..Membership::empty(channel_ref.guild.clone(), self.context.clock.now())
                };
                Ok((false, changes::default_membership(&self.context, channel_ref).unwrap_or_else(empty)))
            }
        }
    }

    /// Whether there is a configured companion with this id that may take part in channels of a guild.
    pub(super) fn has_companion(&self, companion: &CompanionId, guild: &GuildId) -> bool {
        self.context.memberships.companions().get(companion).is_some_and(|companion| companion.is_of(guild))
    }

    pub(super) fn no_companion(&self, companion: &CompanionId) -> Refused {
        let cast = self.context.memberships.companions();
        let named: Vec<_> = cast.keys().take(MAX_NAMED).map(CompanionId::as_str).collect();
        let more = if cast.len() > named.len() { " and others" } else { "" };
        let detail = format!("there is no companion {companion}, there are {}{more}", named.join(", "));
        Refused::not_found(Detail::from(detail).coded("refusals.no_companion", json!({ "id": companion })))
    }

    /// Checks that a companion may be in a room: one for adults only not among minors.
    pub(super) fn check_adults(&self, membership: &Membership, companion: &CompanionId) -> Result<(), Detail> {
        match self.context.memberships.excludes(membership, companion) {
            true => Err(Detail::of("refusals.adults_only", json!({ "companion": companion }))),
            false => Ok(()),
        }
    }

    /// Checks that a member of a room may speak there.
    pub(super) fn check_able(&self, room: &RoomId, membership: &Membership, companion: &CompanionId) -> Result<(), Detail> {
        self.check_adults(membership, companion)?;
        match membership.is_paused(companion) {
            true => Err(Detail::of("refusals.paused", json!({ "companion": companion, "room": self.name_of(room) }))),
            false => Ok(()),
        }
    }

    pub(super) fn not_in_room(&self, companion: &CompanionId, room: &RoomId) -> Detail {
        Detail::of("refusals.not_in_room", json!({ "companion": companion, "room": self.name_of(room) }))
    }
}

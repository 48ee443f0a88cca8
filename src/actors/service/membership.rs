//! Adds companions to channels of other platforms, and removes them, one at a time.

use async_trait::async_trait;

use super::ActorBackend;
use super::errors::invalid;
use crate::actors::membership::changes::{self, MembershipError};
use crate::domain::id::CompanionId;
use crate::domain::names::SharedName;
use crate::journal::membership::Membership;
use crate::ports::backend::Refused;
use crate::ports::backend::room::{MOST_IN_A_ROOM, Room, RoomId};
use crate::ports::inbound_events::ChannelRef;
use crate::ports::membership::MembershipPort;

/// How many companions an error message lists when one is unknown.
const MAX_NAMED: usize = 20;

#[async_trait]
impl MembershipPort for ActorBackend {
    async fn admit(&self, channel_ref: &ChannelRef, companion: &CompanionId) -> Result<(Room, bool), Refused> {
        let id = self.joinable_room(channel_ref)?;
        // The lock makes sure that two concurrent additions both take effect.
        let lock = self.context.memberships.lock().await;
        let (is_room, mut membership) = self.membership_at(channel_ref)?;
        if is_room && membership.companions.contains(companion) {
            return Ok((self.room_view(id, &membership).await?, false));
        }
        if !self.context.memberships.companions().contains_key(companion) {
            return Err(self.no_companion(companion));
        }
        let is_new = membership.companions.insert(companion.clone());
        if membership.companions.len() > MOST_IN_A_ROOM {
            return Err(Refused::Conflict(format!(
                "at most {MOST_IN_A_ROOM} companions can be in a channel; remove another one first"
            )));
        }
        membership.stands_alone |= is_new && membership.within.is_some();
        changes::update_membership(&self.context, &lock, &channel_ref.channel, membership.clone()).await.map_err(|error| match error {
            MembershipError::SharedName(SharedName { name, first, second }) => {
                let other = if first == *companion { second } else { first };
                Refused::Conflict(format!(
                    "{companion} and {other}, who is in this guild, share the name {name:?}; remove {other} from all its channels here first"
                ))
            }
            error => error.into(),
        })?;
        Ok((self.room_view(id, &membership).await?, is_new))
    }

    async fn dismiss(&self, channel_ref: &ChannelRef, companion: &CompanionId) -> Result<bool, Refused> {
        self.joinable_room(channel_ref)?;
        let lock = self.context.memberships.lock().await;
        let (_, mut membership) = self.membership_at(channel_ref)?;
        if !membership.companions.remove(companion) {
            return Ok(false);
        }
        membership.externals.remove(companion);
        membership.overrides.remove(companion);
        membership.stands_alone = membership.within.is_some();
        changes::update_membership(&self.context, &lock, &channel_ref.channel, membership).await?;
        Ok(true)
    }
}

impl ActorBackend {
    /// The room of a channel of another platform.
    fn joinable_room(&self, channel_ref: &ChannelRef) -> Result<RoomId, Refused> {
        let room = RoomId::of(&channel_ref.channel).filter(|room| !self.is_written_here(room));
        room.ok_or_else(|| invalid("channel", format!("companions cannot be added to {} in this way", channel_ref.channel)))
    }

    /// Whether a channel is a room already, and its membership: the existing one, or the one that it would get with its first message.
    fn membership_at(&self, channel_ref: &ChannelRef) -> Result<(bool, Membership), Refused> {
        match self.context.memberships.get(&channel_ref.channel) {
            Some(existing) if existing.guild == channel_ref.guild => Ok((true, existing)),
            Some(existing) => {
                Err(Refused::Conflict(format!("{} belongs to guild {}, for good", channel_ref.channel, existing.guild)))
            }
            None => {
                let empty = || Membership {
                    within: channel_ref.parent.clone(),
                    ..Membership::empty(channel_ref.guild.clone(), self.context.clock.now())
                };
                Ok((false, changes::default_membership(&self.context, channel_ref).unwrap_or_else(empty)))
            }
        }
    }

    fn no_companion(&self, companion: &CompanionId) -> Refused {
        let cast = self.context.memberships.companions();
        let named: Vec<_> = cast.keys().take(MAX_NAMED).map(CompanionId::as_str).collect();
        let more = if cast.len() > named.len() { " and others" } else { "" };
        Refused::NotFound(format!("there is no companion {companion}, there are {}{more}", named.join(", ")))
    }
}

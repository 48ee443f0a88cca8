//! Companions are let into channels of other platforms, and taken out, one at a time.

use async_trait::async_trait;

use super::ActorBackend;
use super::desk::{invalid, membership_error};
use crate::actors::membership::changes::{self, MembershipError};
use crate::domain::id::CompanionId;
use crate::domain::names::SharedName;
use crate::journal::membership::Membership;
use crate::ports::backend::Refused;
use crate::ports::backend::room::{MOST_IN_A_ROOM, Room, RoomId};
use crate::ports::inbound_events::ChannelRef;
use crate::ports::membership::MembershipPort;

/// Companions that are named where one is unknown.
const MOST_NAMED: usize = 20;

#[async_trait]
impl MembershipPort for ActorBackend {
    async fn admit(&self, channel_ref: &ChannelRef, companion: &CompanionId) -> Result<(Room, bool), Refused> {
        let id = self.entered(channel_ref)?;
        // Two that are let in at once are both in.
        let lock = self.context.memberships.lock().await;
        let (known, mut membership) = self.membership_at(channel_ref)?;
        if known && membership.companions.contains(companion) {
            return Ok((self.viewed(id, &membership).await?, false));
        }
        if !self.context.memberships.companions().contains_key(companion) {
            return Err(self.no_companion(companion));
        }
        let is_new = membership.companions.insert(companion.clone());
        if membership.companions.len() > MOST_IN_A_ROOM {
            return Err(Refused::Conflict(format!(
                "at most {MOST_IN_A_ROOM} companions can be in a channel; let another one leave it first"
            )));
        }
        membership.stands_alone |= is_new && membership.within.is_some();
        changes::update_membership(&self.context, &lock, &channel_ref.channel, membership.clone()).await.map_err(|error| match error {
            MembershipError::SharedName(SharedName { name, first, second }) => {
                let other = if first == *companion { second } else { first };
                Refused::Conflict(format!(
                    "{companion} and {other}, who lives in this guild, both answer to {name:?}; let {other} leave all its channels here first"
                ))
            }
            error => membership_error(error),
        })?;
        Ok((self.viewed(id, &membership).await?, is_new))
    }

    async fn dismiss(&self, channel_ref: &ChannelRef, companion: &CompanionId) -> Result<bool, Refused> {
        self.entered(channel_ref)?;
        let lock = self.context.memberships.lock().await;
        let (_, mut membership) = self.membership_at(channel_ref)?;
        if !membership.companions.remove(companion) {
            return Ok(false);
        }
        membership.externals.remove(companion);
        membership.overrides.remove(companion);
        membership.stands_alone = membership.within.is_some();
        changes::update_membership(&self.context, &lock, &channel_ref.channel, membership).await.map_err(membership_error)?;
        Ok(true)
    }
}

impl ActorBackend {
    /// The room that a channel is in which its platform lets companions.
    fn entered(&self, channel_ref: &ChannelRef) -> Result<RoomId, Refused> {
        let of = RoomId::of(&channel_ref.channel).filter(|room| !self.is_written_here(room));
        of.ok_or_else(|| invalid("channel", format!("{} is no channel that companions could be let into", channel_ref.channel)))
    }

    /// Who lives in a channel, or would as soon as something is said there; whether it is a room already.
    fn membership_at(&self, channel_ref: &ChannelRef) -> Result<(bool, Membership), Refused> {
        match self.context.memberships.get(&channel_ref.channel) {
            Some(known) if known.guild == channel_ref.guild => Ok((true, known)),
            Some(known) => Err(Refused::Conflict(format!("{} belongs to guild {}, for good", channel_ref.channel, known.guild))),
            None => {
                let empty = || Membership {
                    within: channel_ref.parent.clone(),
                    ..Membership::empty(channel_ref.guild.clone(), self.context.clock.now())
                };
                Ok((false, changes::would_be(&self.context, channel_ref).unwrap_or_else(empty)))
            }
        }
    }

    fn no_companion(&self, companion: &CompanionId) -> Refused {
        let cast = self.context.memberships.companions();
        let known: Vec<_> = cast.keys().take(MOST_NAMED).map(CompanionId::as_str).collect();
        let more = if cast.len() > known.len() { " and others" } else { "" };
        Refused::NotFound(format!("there is no companion {companion}, there are {}{more}", known.join(", ")))
    }
}

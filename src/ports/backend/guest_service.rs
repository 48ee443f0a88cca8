//! Invitations to rooms, and their guests.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::messages::RunBy;
use super::refused::Refused;
use super::room::{RoomCompanion, RoomId};
use super::stamp::Stamp;
pub use crate::domain::guests::{Amount, Visit};
use crate::domain::guests::{Guest, Invitation, MOST_GUESTS, yes};
use crate::domain::id::CompanionId;
use crate::domain::moment::Moment;

/// Invites guests to rooms, and checks the visits and limits of guests.
#[async_trait]
pub trait GuestService: Send + Sync + 'static {
    /// Creates an invitation to a room. Only a hash of the secret is stored, so only the caller knows it.
    async fn invite(&self, room: &RoomId, new: NewInvitation) -> Result<(InvitationView, SecretString), Refused>;

    /// The invitations to a room, newest first.
    async fn invitations(&self, room: &RoomId) -> Result<Vec<InvitationView>, Refused>;

    /// Ends an invitation, and the visits of its guests.
    async fn revoke(&self, room: &RoomId, id: &str) -> Result<(), Refused>;

    /// Ends the visit of a guest, who cannot come back with this invitation, and frees the place.
    async fn remove_guest(&self, room: &RoomId, id: &str, name: &str) -> Result<(), Refused>;

    /// A preview of the invitation with this secret. Nothing changes. `cookies` are the guest cookies of the browser.
    async fn look(&self, secret: &str, cookies: &[String]) -> Result<Preview, Refused>;

    /// Admits a guest under a name. Returns the visit and its cookie.
    async fn join(&self, secret: &str, name: Arc<str>, cookies: &[String]) -> Result<(Visit, SecretString), Refused>;

    /// Whether a guest of the room's guild has or had this name, or one that looks like it.
    fn is_guests_name(&self, room: &RoomId, name: &str) -> bool;

    /// The open visit with this cookie.
    fn visit(&self, cookie: &str) -> Option<Visit>;

    /// Whether a visit is still open.
    fn is_open(&self, visit: &Visit) -> bool;

    /// Whether an operator ended the newest visit with these cookies by removing the guest.
    fn was_removed(&self, cookies: &[String]) -> bool;

    /// Ends a visit at the guest's request.
    async fn leave(&self, visit: &Visit) -> Result<(), Refused>;

    /// Counts an amount that a guest is about to use. Returns [`Refused::TooMany`] if today's limit is reached.
    async fn consume_quota(&self, visit: &Visit, amount: Amount) -> Result<(), Refused>;

    /// Changes with every change that can end a visit.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// When an invitation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    Day,
    Week,
    Never,
}

/// An invitation to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewInvitation {
    /// Whether it ends after a day, after a week, or never.
    pub ends: Ends,
    /// The largest number of guests: 1 to 20.
    #[schemars(range(min = 1, max = MOST_GUESTS))]
    pub most_guests: u8,
    /// Whether companions may use what was said before, while its guests are in the room. True if it is absent.
    #[serde(default = "yes")]
    pub knows_before: bool,
}

/// An invitation, as the operator of its room sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InvitationView {
    pub id: Arc<str>,
    pub made_at: Stamp,
    /// Null: the invitation has no end.
    pub ends_at: Option<Stamp>,
    pub most_guests: u8,
    /// Whether companions may use what was said before, while its guests are in the room.
    pub knows_before: bool,
    pub revoked_at: Option<Stamp>,
    /// The number of messages of its guests today (UTC). The seconds of voice and the tokens are also those of today.
    pub messages: u64,
    pub voice_secs: u64,
    pub tokens: u64,
    /// In the order in which they joined.
    pub guests: Vec<GuestView>,
}

impl InvitationView {
    /// The view of an invitation at this time.
    pub fn of(id: &Arc<str>, invitation: &Invitation, now: Moment) -> Self {
        let used = invitation.used.on(now);
        let guest = |guest: &Guest| GuestView {
            name: guest.name.clone(),
            joined_at: guest.joined_at.into(),
            left_at: guest.left_at.map(Into::into),
            removed: guest.removed_at.is_some(),
            is_here: false,
        };
        Self {
            id: id.clone(),
            made_at: invitation.made_at.into(),
            ends_at: invitation.ends_at.map(Into::into),
            most_guests: invitation.most_guests,
            knows_before: invitation.knows_before,
            revoked_at: invitation.revoked_at.map(Into::into),
            messages: used.messages,
            voice_secs: used.voice_ms / 1_000,
            tokens: used.tokens,
            guests: invitation.guests.iter().map(guest).collect(),
        }
    }
}

/// A guest of an invitation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GuestView {
    pub name: Arc<str>,
    pub joined_at: Stamp,
    pub left_at: Option<Stamp>,
    /// Whether an operator has removed the guest.
    pub removed: bool,
    /// Whether the guest has the room open in a browser now.
    pub is_here: bool,
}

/// The preview of an invitation before the guest joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Preview {
    pub room: PreviewedRoom,
    pub ends_at: Option<Stamp>,
    /// The name that this browser chose before, with this invitation or another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// Whether this browser must use that name, because it was a guest of this invitation.
    pub name_is_fixed: bool,
    pub run_by: RunBy,
    /// Whether companions take notes of what guests say.
    pub takes_notes: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PreviewedRoom {
    pub id: RoomId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    pub companions: Vec<KnownCompanion>,
}

/// A companion, as guests see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KnownCompanion {
    pub id: CompanionId,
    pub name: Arc<str>,
    /// Always true.
    pub ai: bool,
    /// Whether an external program plays the companion.
    pub external: bool,
    /// One sentence about the companion. Absent: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<Arc<str>>,
    /// The path of the companion's picture. Absent: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
}

impl From<RoomCompanion> for KnownCompanion {
    fn from(RoomCompanion { id, name, ai, external, about, picture, .. }: RoomCompanion) -> Self {
        Self { id, name, ai, external, about, picture }
    }
}

//! The membership record of a channel: its members, and their overrides at run time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::channel_key::ChannelKey;
use crate::domain::id::{ChannelId, CompanionId, GuildId, PersonId, Ward};
use crate::domain::moment::Moment;
use crate::domain::room_words::RoomWords;
use crate::ports::store::key::{Key, Kind};
use crate::settings::companion::{Overrides, QuietHours};

/// The members of a channel. A stored membership takes precedence over `console.rooms`, except for later changes there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Membership {
    /// The guild of the channel. It never changes.
    pub guild: GuildId,
    /// The members, including external companions.
    pub companions: BTreeSet<CompanionId>,
    /// The external companions among the members.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub externals: BTreeMap<CompanionId, External>,
    /// Overrides at run time, by companion.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<CompanionId, Overrides>,
    /// Whether all companions in the channel are paused.
    #[serde(default)]
    pub paused: bool,
    /// The parent channel of a thread or a forum post.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<ChannelId>,
    /// Whether the thread's own membership was changed, so that it no longer inherits changes of its parent channel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stands_alone: bool,
    /// The language of the channel's voice calls. `None`: `speech.language`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Arc<str>>,
    /// The quiet hours of all companions in the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_hours: Option<QuietHours>,
    /// Whether the channel is marked as having minors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub minors: bool,
    /// Whether the words of all voice notes in the channel are recognised, or of none. `None`: as `speech.voice_notes` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice_notes: Option<bool>,
    /// The words of the channel itself, as far as they are set at run time.
    #[serde(default, skip_serializing_if = "RoomWords::are_unset")]
    pub words: RoomWords,
    /// What people say of themselves in this channel. Threads do not inherit it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub described: BTreeMap<PersonId, Arc<str>>,
    /// The companions in `console.rooms` when it was last read. A companion that is added there joins, and one that is removed
    /// there leaves. A companion that was removed at run time stays away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured: Option<BTreeSet<CompanionId>>,
    /// The title of a room of the console, if it was given one. Other platforms have their own titles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// When the channel will be deleted with its history. Until then it is hidden and silent, and the deletion can be undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Moment>,
    /// When the membership was created.
    pub created_at: Moment,
    /// When a companion last joined the channel after it had no members. `None`: that never happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_in_again: Option<Moment>,
}

/// Settings of an external companion in this channel. The others come from `companion_defaults`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct External {
    /// Its display name. `None`: its id, capitalised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// Other names that address it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<Arc<str>>,
}

impl Membership {
    /// A membership without members.
    pub fn empty(guild: GuildId, created_at: Moment) -> Self {
        Self { guild, created_at, ..Self::default() }
    }

    /// Since when the channel has had members without interruption, if it has any now.
    pub fn members_since(&self) -> Moment {
        self.moved_in_again.unwrap_or(self.created_at)
    }

    /// The channel from which this one inherits companions and settings. The fields here are then only the last recorded copy.
    pub fn inherits_from(&self) -> Option<&ChannelId> {
        self.within.as_ref().filter(|_| !self.stands_alone)
    }

    /// This membership with the companions, overrides, pause, language, quiet hours, minors, voice notes and words of another one.
    /// Without another one, it has no members.
    #[must_use]
    pub fn like(&self, other: Option<&Self>) -> Self {
        let Self { guild, within, stands_alone, described, configured, title, deleted_at, created_at, .. } = self.clone();
        let other = other.cloned().unwrap_or_else(|| Self::empty(guild.clone(), created_at));
        Self { guild, within, stands_alone, described, configured, title, deleted_at, created_at, ..other }
    }

    /// Whether this companion is external here.
    pub fn is_external(&self, companion: &CompanionId) -> bool {
        self.externals.contains_key(companion)
    }

    /// Whether a companion is paused here, alone or with the whole channel.
    pub fn is_paused(&self, companion: &CompanionId) -> bool {
        self.paused || self.overrides.get(companion).and_then(|overrides| overrides.paused).unwrap_or(false)
    }
}

/// The prefix of the keys of a ward's memberships.
pub fn all(ward: Ward) -> Key {
    Key::new(ward, Kind::Setting)
}

/// The key of a channel's membership.
pub fn key(channel_key: &ChannelKey) -> Key {
    Key::new(channel_key.ward(), Kind::Setting).text(channel_key.guild.as_str()).text(channel_key.channel.as_str())
}

//! The membership record of a channel: its members, and their overrides at run time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::channel_key::ChannelKey;
use crate::domain::id::{ChannelId, CompanionId, GuildId, Ward};
use crate::domain::moment::Moment;
use crate::ports::store::key::{Key, Kind};
use crate::settings::companion::{Overrides, QuietHours};

/// The members of a channel. A stored membership takes precedence over `console.rooms`, but for what changed there since.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Membership {
    /// The guild of the channel. It never changes.
    pub guild: GuildId,
    /// The members, external companions included.
    pub companions: BTreeSet<CompanionId>,
    /// The members that programs outside play.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub externals: BTreeMap<CompanionId, External>,
    /// Overrides at run time, by companion.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<CompanionId, Overrides>,
    /// All companions in it are paused.
    #[serde(default)]
    pub paused: bool,
    /// The channel that a thread or a forum post is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<ChannelId>,
    /// The thread was changed itself, so it no longer inherits changes of its parent channel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stands_alone: bool,
    /// The language that is spoken in the channel. None: `speech.language`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Arc<str>>,
    /// When all companions in it speak only when spoken to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_hours: Option<QuietHours>,
    /// Whether there are minors in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub minors: bool,
    /// Whom `console.rooms` named when it was read last. Who is added there joins, and who is removed there leaves; who was removed by hand stays away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured: Option<BTreeSet<CompanionId>>,
    /// The title that somebody gave to a room of the console. Other platforms have their own titles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// When the channel is deleted with its history. Until then it is hidden and silent, and the deletion can be undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Moment>,
    /// When the membership was created.
    pub created_at: Moment,
    /// When a companion joined after the channel had had no members, if that ever happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_in_again: Option<Moment>,
}

/// Settings of an external companion in this channel. The others come from `companion_defaults`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct External {
    /// Its display name; absent: its id, capitalised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// Other names that address it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<Arc<str>>,
}

impl Membership {
    /// A membership without members.
    pub const fn empty(guild: GuildId, created_at: Moment) -> Self {
        Self {
            guild,
            companions: BTreeSet::new(),
            externals: BTreeMap::new(),
            overrides: BTreeMap::new(),
            paused: false,
            within: None,
            stands_alone: false,
            language: None,
            quiet_hours: None,
            minors: false,
            configured: None,
            title: None,
            deleted_at: None,
            created_at,
            moved_in_again: None,
        }
    }

    /// Since when the channel has had members without a break, if it has any now.
    pub fn members_since(&self) -> Moment {
        self.moved_in_again.unwrap_or(self.created_at)
    }

    /// The channel from which this one inherits companions, overrides and pause. The fields here are then only the last recorded copy.
    pub fn inherits_from(&self) -> Option<&ChannelId> {
        self.within.as_ref().filter(|_| !self.stands_alone)
    }

    /// This membership with the companions, overrides, pause, language, quiet hours and minors of another one; without another one, it has no members.
    #[must_use]
    pub fn like(&self, other: Option<&Self>) -> Self {
        let empty = Self::empty(self.guild.clone(), self.created_at);
        let Self { companions, externals, overrides, paused, language, quiet_hours, minors, moved_in_again, .. } =
            other.unwrap_or(&empty).clone();
        Self { companions, externals, overrides, paused, language, quiet_hours, minors, moved_in_again, ..self.clone() }
    }

    /// Whether a program outside plays this companion here.
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

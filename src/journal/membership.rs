//! Who lives in a channel, and what was changed about them at run time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::channel_key::ChannelKey;
use crate::domain::id::{ChannelId, CompanionId, GuildId, Ward};
use crate::domain::moment::Moment;
use crate::ports::store::key::{Key, Kind};
use crate::settings::companion::Overrides;

/// Who lives in a channel. What is stored of it wins over `console.rooms`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Membership {
    /// Whose channel it is, for good.
    pub guild: GuildId,
    /// The companions that are in it, external ones too.
    pub companions: BTreeSet<CompanionId>,
    /// Those of them that programs outside play.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub externals: BTreeMap<CompanionId, External>,
    /// What was changed about each at run time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<CompanionId, Overrides>,
    /// Everyone in it is silenced.
    #[serde(default)]
    pub paused: bool,
    /// The channel that a thread or a forum post is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<ChannelId>,
    /// Somebody changed the thread itself, and what is changed in the channel that it is in does not reach it any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stands_alone: bool,
    /// Since when it is there.
    pub created_at: Moment,
    /// When somebody moved in again after nobody had lived there, if that ever was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_in_again: Option<Moment>,
}

/// A companion that a program outside plays: what is known of it here. The rest is what `companion_defaults` say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct External {
    /// What people call it; absent: its id with a capital.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// What else people call it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<Arc<str>>,
}

impl Membership {
    /// Where nobody lives yet.
    pub const fn empty(guild: GuildId, created_at: Moment) -> Self {
        Self {
            guild,
            companions: BTreeSet::new(),
            externals: BTreeMap::new(),
            overrides: BTreeMap::new(),
            paused: false,
            within: None,
            stands_alone: false,
            created_at,
            moved_in_again: None,
        }
    }

    /// Since when somebody lives there, if anybody does.
    pub fn lived_in_since(&self) -> Moment {
        self.moved_in_again.unwrap_or(self.created_at)
    }

    /// The channel whose companions, overrides and pause hold here: those of this residence are what was last put on record of them.
    pub fn inherits_from(&self) -> Option<&ChannelId> {
        self.within.as_ref().filter(|_| !self.stands_alone)
    }

    /// This residence with the companions, overrides and pause of another one; with those of none, nobody lives in it.
    #[must_use]
    pub fn like(&self, other: Option<&Self>) -> Self {
        let empty = Self::empty(self.guild.clone(), self.created_at);
        let Self { companions, externals, overrides, paused, moved_in_again, .. } = other.unwrap_or(&empty).clone();
        Self { companions, externals, overrides, paused, moved_in_again, ..self.clone() }
    }

    /// Whether a program outside plays this companion here.
    pub fn is_external(&self, companion: &CompanionId) -> bool {
        self.externals.contains_key(companion)
    }

    /// Whether a companion is silenced here, by itself or with everyone.
    pub fn is_paused(&self, companion: &CompanionId) -> bool {
        self.paused || self.overrides.get(companion).and_then(|overrides| overrides.paused).unwrap_or(false)
    }
}

/// What the keys of all residences of a ward begin with.
pub fn all(ward: Ward) -> Key {
    Key::new(ward, Kind::Setting)
}

/// Where a channel's residence is kept.
pub fn key(channel_key: &ChannelKey) -> Key {
    Key::new(channel_key.ward(), Kind::Setting).text(channel_key.guild.as_str()).text(channel_key.channel.as_str())
}

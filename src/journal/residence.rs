//! Who lives in a channel, and what was changed about them at run time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::place::Place;
use crate::domain::id::{CompanionId, GuildId};
use crate::domain::moment::Moment;
use crate::ports::store::key::{Key, Kind};
use crate::settings::companion::Overrides;

/// Who lives in a channel. What is stored of it wins over `console.rooms`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Residence {
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
    /// Since when it is there.
    pub created_at: Moment,
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

impl Residence {
    /// Whether a program outside plays this companion here.
    pub fn is_external(&self, companion: &CompanionId) -> bool {
        self.externals.contains_key(companion)
    }

    /// Whether a companion is silenced here, by itself or with everyone.
    pub fn is_paused(&self, companion: &CompanionId) -> bool {
        self.paused || self.overrides.get(companion).and_then(|overrides| overrides.paused).unwrap_or(false)
    }
}

/// Where a channel's residence is kept.
pub fn key(place: &Place) -> Key {
    Key::new(place.ward(), Kind::Setting).text(place.guild.as_str()).text(place.channel.as_str())
}

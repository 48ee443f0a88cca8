//! Who lives in a channel, and what was changed about them at run time.

use std::collections::{BTreeMap, BTreeSet};

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
    /// The companions that are in it.
    pub companions: BTreeSet<CompanionId>,
    /// What was changed about each at run time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<CompanionId, Overrides>,
    /// Everyone in it is silenced.
    #[serde(default)]
    pub paused: bool,
    /// Since when it is there.
    pub created_at: Moment,
}

impl Residence {
    /// Whether a companion is silenced here, by itself or with everyone.
    pub fn is_paused(&self, companion: &CompanionId) -> bool {
        self.paused || self.overrides.get(companion).and_then(|overrides| overrides.paused).unwrap_or(false)
    }
}

/// Where a channel's residence is kept.
pub fn key(place: &Place) -> Key {
    Key::new(place.ward(), Kind::Setting).text(place.guild.as_str()).text(place.channel.as_str())
}

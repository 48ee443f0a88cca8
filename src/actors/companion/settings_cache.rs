//! Caches a companion's settings in force, by channel.

use std::collections::HashMap;
use std::sync::Arc;

use crate::actors::membership::memberships::Memberships;
use crate::domain::id::{ChannelId, CompanionId};
use crate::settings::companion::Companion as Settings;

/// The settings by channel. The cache is cleared when the memberships' edition changes.
#[derive(Default)]
pub(super) struct SettingsCache {
    edition: u64,
    by_channel: HashMap<ChannelId, Arc<Settings>>,
}

impl SettingsCache {
    /// The companion's settings in this channel. `None`: it is no longer configured.
    pub(super) fn of(
        &mut self,
        channel: &ChannelId,
        companion: &CompanionId,
        memberships: &Memberships,
    ) -> Option<Arc<Settings>> {
        let edition = memberships.edition();
        if self.edition != edition {
            *self = Self { edition, by_channel: HashMap::new() };
        }
        if let Some(known) = self.by_channel.get(channel) {
            return Some(known.clone());
        }
        let settings = Arc::new(memberships.companion(channel, companion)?);
        self.by_channel.insert(channel.clone(), settings.clone());
        Some(settings)
    }
}

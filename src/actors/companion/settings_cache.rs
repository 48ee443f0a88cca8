//! A companion's settings as they are in force, in each channel that asked for them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::actors::membership::memberships::Memberships;
use crate::domain::id::{ChannelId, CompanionId};
use crate::settings::companion::Companion as Settings;

/// Its settings by channel, as of an edition of who lives where.
#[derive(Default)]
pub(super) struct SettingsCache {
    edition: u64,
    by_channel: HashMap<ChannelId, Arc<Settings>>,
}

impl SettingsCache {
    /// As the companion is in this channel; none: it is configured no more.
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

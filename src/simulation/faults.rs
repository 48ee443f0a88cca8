//! Faults that may keep a reply from being made.

use std::time::Duration;

use super::stage::Stage;
use crate::domain::id::{CompanionId, GuildId};

#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) at: Duration,
    pub(super) what: FaultKind,
}

#[derive(Clone, Debug)]
pub(super) enum FaultKind {
    /// The main model was called, and takes this long.
    Called(Duration),
    /// The main model failed with this code for a companion.
    Failed { code: &'static str, guild: GuildId, companion: Option<CompanionId> },
    /// The main model's answer has no words.
    Wordless { guild: GuildId, companion: Option<CompanionId> },
    /// The platform accepted no posts for a guild, or could not be read.
    Platform(GuildId),
    /// An actor of this sort was killed.
    Killed(&'static str),
    /// The companions that are configured from now on.
    CompanionSet(Vec<&'static str>),
}

impl Stage {
    pub(super) fn note_fault(&self, what: FaultKind) {
        let at = self.now();
        self.notes().faults.push(Fault { at, what });
    }
}

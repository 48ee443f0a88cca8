//! What is behind the commands: the small backend of the library's tests, a core that stores messages, and opt-outs.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use tertulia::domain::id::{GuildId, PersonId};
use tertulia::ports::backend::Refused;
use tertulia::ports::opt_out::OptOut;

use super::super::core::Core;
use tertulia::ports::backend::fake::FakeBackend;

#[derive(Default)]
pub(crate) struct SmallBackend {
    pub services: Arc<FakeBackend>,
    /// Stores the messages that commands deliver.
    pub core: Arc<Core>,
    ignored: Mutex<BTreeSet<(GuildId, PersonId)>>,
}

impl SmallBackend {
    /// The people who opted out.
    pub fn ignored(&self) -> MutexGuard<'_, BTreeSet<(GuildId, PersonId)>> {
        self.ignored.lock()
    }
}

impl Deref for SmallBackend {
    type Target = FakeBackend;

    fn deref(&self) -> &FakeBackend {
        &self.services
    }
}

#[async_trait]
impl OptOut for SmallBackend {
    fn is_ignored(&self, guild: &GuildId, person: &PersonId) -> bool {
        self.ignored().contains(&(guild.clone(), person.clone()))
    }

    async fn ignore(&self, guild: &GuildId, person: &PersonId, ignored: bool) -> Result<bool, Refused> {
        self.check().await?;
        let (mut all, key) = (self.ignored(), (guild.clone(), person.clone()));
        Ok(if ignored { all.insert(key) } else { all.remove(&key) })
    }
}

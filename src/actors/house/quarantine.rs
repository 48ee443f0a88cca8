//! Guilds that are kept away, and messages that were set aside because they killed their handler.

use super::ActorHouse;
use crate::ports::house::Refused;
use crate::ports::house::keeping::Quarantine;

impl ActorHouse {
    pub(super) async fn list_quarantine(&self) -> Result<Quarantine, Refused> {
        Ok(Quarantine::default())
    }
    pub(super) async fn release_guild(&self, guild: &str) -> Result<(), Refused> {
        Err(Refused::NotFound(format!("guild {guild} is not in quarantine")))
    }
    pub(super) async fn retry_entry(&self, entry: &str) -> Result<(), Refused> {
        Err(Refused::NotFound(format!("nothing is set aside as {entry}")))
    }
    pub(super) async fn give_up_entry(&self, entry: &str) -> Result<(), Refused> {
        Err(Refused::NotFound(format!("nothing is set aside as {entry}")))
    }
}

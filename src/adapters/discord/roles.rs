//! Which roles may address companions, and which are never answered, as the managers of each guild decided. Stored as a note of the guild.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::snowflake::Snowflake;
use crate::domain::message::Standing;
use crate::ports::notes::{NoteError, Notes};

/// The limit of roles in each list. It equals the limit of choices in one of Discord's menus.
pub const MOST_ROLES: usize = 25;
/// The name of the note.
const NOTE: &str = "discord/roles";

/// The rules of a guild.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoleRules {
    /// The roles whose members may address companions. Empty: everybody may.
    pub may_address: Vec<Snowflake>,
    /// The roles whose members are never answered.
    pub never_answered: Vec<Snowflake>,
}

/// The rules of all guilds.
pub struct Roles {
    notes: Arc<dyn Notes>,
    known: Mutex<BTreeMap<Snowflake, Arc<RoleRules>>>,
    /// Held during a change, so that changes do not overlap.
    changes: tokio::sync::Mutex<()>,
}

impl RoleRules {
    pub fn are_none(&self) -> bool {
        self.may_address.is_empty() && self.never_answered.is_empty()
    }

    /// The standing of a member with these roles.
    pub fn standing(&self, guild: Snowflake, roles: &[Snowflake]) -> Standing {
        // Every member has the role `@everyone`, whose id is the guild's.
        let has_one_of = |listed: &[Snowflake]| listed.iter().any(|role| *role == guild || roles.contains(role));
        if has_one_of(&self.never_answered) {
            Standing::NeverAnswered
        } else if self.may_address.is_empty() || has_one_of(&self.may_address) {
            Standing::Free
        } else {
            Standing::MayNotAddress
        }
    }
}

impl Roles {
    pub fn new(notes: Arc<dyn Notes>) -> Self {
        Self { notes, known: Mutex::default(), changes: tokio::sync::Mutex::default() }
    }

    /// The rules of a guild.
    ///
    /// # Errors
    /// Returns an error if the note cannot be read.
    pub async fn of(&self, guild: Snowflake) -> Result<Arc<RoleRules>, NoteError> {
        if let Some(known) = self.known.lock().get(&guild) {
            return Ok(Arc::clone(known));
        }
        let _lock = self.changes.lock().await;
        let note = self.notes.read(Some(&guild.guild()), NOTE).await?;
        let read = |note: Vec<u8>| {
            serde_json::from_slice(&note).unwrap_or_else(|error| {
                tracing::error!(%guild, %error, "the rules for roles cannot be read, and everybody may address companions until they are set again");
                RoleRules::default()
            })
        };
        let rules = Arc::new(note.map(read).unwrap_or_default());
        self.known.lock().insert(guild, Arc::clone(&rules));
        Ok(rules)
    }

    /// Changes the rules of a guild. They are in force when this returns.
    ///
    /// # Errors
    /// Returns an error if the note cannot be read or written.
    pub async fn change(
        &self,
        guild: Snowflake,
        change: impl FnOnce(&mut RoleRules) + Send,
    ) -> Result<Arc<RoleRules>, NoteError> {
        let before = self.of(guild).await?;
        let _lock = self.changes.lock().await;
        let mut rules = self.known.lock().get(&guild).map_or_else(|| (*before).clone(), |known| (**known).clone());
        change(&mut rules);
        for listed in [&mut rules.may_address, &mut rules.never_answered] {
            listed.sort_unstable();
            listed.dedup();
            listed.truncate(MOST_ROLES);
        }
        let value = (!rules.are_none()).then(|| serde_json::to_vec(&rules).unwrap_or_default());
        self.notes.write(Some(&guild.guild()), vec![(NOTE.to_owned(), value)]).await?;
        let rules = Arc::new(rules);
        self.known.lock().insert(guild, Arc::clone(&rules));
        Ok(rules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_decide_who_may_address_companions() {
        let id = |number| Snowflake::new(number).unwrap();
        let rules = |may: &[u64], never: &[u64]| RoleRules {
            may_address: may.iter().copied().map(id).collect(),
            never_answered: never.iter().copied().map(id).collect(),
        };
        let (guild, regular, muted) = (id(1), id(2), id(3));

        for (rules, roles, expected) in [
            (rules(&[], &[]), vec![], Standing::Free),
            (rules(&[2], &[]), vec![regular], Standing::Free),
            (rules(&[2], &[]), vec![muted], Standing::MayNotAddress),
            (rules(&[], &[3]), vec![regular], Standing::Free),
            (rules(&[2], &[3]), vec![regular, muted], Standing::NeverAnswered),
            (rules(&[1], &[]), vec![], Standing::Free),
            (rules(&[2], &[1]), vec![regular], Standing::NeverAnswered),
        ] {
            assert_eq!(rules.standing(guild, &roles), expected, "{rules:?} {roles:?}");
        }
    }
}

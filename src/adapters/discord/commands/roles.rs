//! `/tertulia roles`: which roles may address companions, and which are never answered.

use std::sync::Arc;

use super::interaction::{ChannelContext, Person};
use super::menus::{RoleList, RoleOptions};
use super::text::{Text, say};
use super::{Answer, CommandHandler, words};
use crate::ports::notes::NoteError;
use crate::roles::{MOST_ROLES, RoleRules};
use crate::snowflake::Snowflake;

impl RoleList {
    pub(super) fn of(self, rules: &RoleRules) -> &[Snowflake] {
        match self {
            Self::MayAddress => &rules.may_address,
            Self::NeverAnswered => &rules.never_answered,
        }
    }
}

impl CommandHandler {
    pub(super) async fn roles(&self, wanted: RoleOptions, here: &ChannelContext, person: Snowflake) -> Result<Text, Answer> {
        let RoleOptions { list, role, on } = wanted;
        let rules = match (list, role) {
            (Some(list), Some(role)) => {
                let is_full = |listed: &[Snowflake]| on && listed.len() >= MOST_ROLES && !listed.contains(&role);
                if self.rules(here).await?.is_some_and(|rules| is_full(list.of(&rules))) {
                    return Err(Answer::Refused(say!(
                        "At most {most} roles can be chosen. Remove another one first.",
                        most = MOST_ROLES
                    )));
                }
                let change = |listed: &mut Vec<Snowflake>| {
                    listed.retain(|other| *other != role);
                    listed.extend(on.then_some(role));
                };
                self.set_roles(list, here, person, change).await?
            }
            (None, None) => self.rules(here).await?.ok_or_else(no_rules)?,
            _ => return Err(Answer::Refused(say!("Choose both a list and a role."))),
        };
        Ok(describe(&rules))
    }

    /// The rules of the guild. `None`: there can be none here.
    pub(super) async fn rules(&self, here: &ChannelContext) -> Result<Option<Arc<RoleRules>>, Answer> {
        let Some((roles, guild)) = self.discord.roles().zip(here.guild) else { return Ok(None) };
        roles.of(guild).await.map(Some).map_err(unread)
    }

    /// Changes one of the lists. They are in force when this returns.
    pub(super) async fn set_roles(
        &self,
        list: RoleList,
        here: &ChannelContext,
        person: Snowflake,
        change: impl FnOnce(&mut Vec<Snowflake>) + Send,
    ) -> Result<Arc<RoleRules>, Answer> {
        if !here.user_may_manage_server() {
            return Err(Answer::Refused(say!(
                "Only people with the permission *Manage Server* can decide about the roles of this server."
            )));
        }
        let (roles, guild) = self.discord.roles().zip(here.guild).ok_or_else(no_rules)?;
        let change = |rules: &mut RoleRules| match list {
            RoleList::MayAddress => change(&mut rules.may_address),
            RoleList::NeverAnswered => change(&mut rules.never_answered),
        };
        let rules = roles.change(guild, change).await.map_err(unread)?;
        tracing::info!(%guild, by = %person, ?list, "the roles that may address companions, or are never answered, were changed");
        Ok(rules)
    }

    /// Refuses people who may not address companions here.
    pub(super) async fn may_address(&self, here: &ChannelContext, person: &Person) -> Result<(), Answer> {
        let Some(guild) = here.guild else { return Ok(()) };
        let standing = self.discord.standing(guild, person.id, Some(&person.roles)).await.map_err(unread)?;
        let refused = || {
            Answer::Refused(say!(
                "The managers of this server have chosen which roles may speak to companions, and yours are not among them."
            ))
        };
        standing.is_free().then_some(()).ok_or_else(refused)
    }
}

/// The rules in words.
pub(super) fn describe(rules: &RoleRules) -> Text {
    let listed = |roles: &[Snowflake]| roles.iter().map(|role| format!("<@&{role}>")).collect::<Vec<_>>().join(", ");
    let may = match rules.may_address.as_slice() {
        [] => say!("Everybody may address companions."),
        roles => say!("Only {roles} may address companions; others are read, and not answered.", roles = listed(roles)),
    };
    let never = match rules.never_answered.as_slice() {
        [] => None,
        roles => Some(say!("Never answered: {roles}.", roles = listed(roles))),
    };
    Text::sentences([may].into_iter().chain(never))
}

fn no_rules() -> Answer {
    Answer::Refused(say!("Only servers have roles."))
}

fn unread(error: NoteError) -> Answer {
    tracing::warn!(%error, "the rules for roles cannot be read or written");
    Answer::Failed(words::broken())
}

//! Who is in a channel, and whether they can hear and speak there.

#[cfg(test)]
mod tests;

use super::choosing::member;
use super::interaction::Where;
use super::members::line;
use super::words::{self, channel, listed, when};
use super::{Desk, Said};
use crate::adapters::discord::delivery_errors::DeliveryError;
use crate::adapters::discord::permissions::Need;
use crate::adapters::discord::snowflake::Snowflake;
use crate::domain::closing::Stage;
use crate::domain::moment::Moment;
use crate::ports::backend::room::{CompanionView, Room, RoomCompanion, RoomId};
use crate::ports::backend::state::{CompanionState, RoomState};

/// Companions that are told of, and of a channel where nobody lives, those who could.
const MOST_TOLD: usize = 12;

/// How a channel stands.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    pub here: Where,
    /// Who lives in it.
    pub room: Option<Room>,
    /// What they are doing.
    pub state: Option<RoomState>,
    /// Of a thread or a direct message in which nothing was said yet: who comes then.
    pub would_be: Option<Room>,
    /// Who could live in it.
    pub all: Vec<CompanionView>,
    /// What the bot lacks here; none: that is not known.
    pub missing: Option<Vec<Need>>,
    pub reads_all: Option<bool>,
    pub trouble: Option<DeliveryError>,
    /// Whether what is said can be taken in, and whether the models answer.
    pub is_kept: bool,
    pub is_answered: bool,
    /// What rests after it failed again and again, the `server` or the `channel` alone, and when it goes on.
    pub rests_until: Option<(&'static str, Moment)>,
    /// Whoever asks does not want to be heard.
    pub is_ignored: bool,
}

impl Desk {
    pub(super) async fn status(&self, typed: Option<&str>, here: &Where, person: Snowflake) -> Result<String, Said> {
        let room = self.room(here).await?;
        let is_empty = room.as_ref().is_none_or(|room| room.companions.is_empty());
        let would_be = if room.is_none() { self.would_be(here).await? } else { None };
        let state = match &room {
            // Who is there is told, whatever they are doing.
            Some(room) if !is_empty => self.backend.state(&room.id).await.ok(),
            _ => None,
        };
        let readiness = self.backend.readiness().await;
        let is_ready = |name: &str| readiness.parts.iter().filter(|part| &*part.part == name).all(|part| part.ready);
        let standing = Standing {
            here: here.clone(),
            room,
            state,
            would_be: would_be.filter(|room| !room.companions.is_empty()),
            all: if is_empty { self.backend.companions().await?.companions } else { Vec::new() },
            missing: here.missing(),
            reads_all: self.discord.reads_all(),
            trouble: self.discord.delivery_errors().last(here.channel),
            is_kept: is_ready("store"),
            is_answered: is_ready("models"),
            rests_until: self.rests_until(here).await,
            is_ignored: self.ignoring.is_ignored(&here.guild_id(), &person.person()),
        };
        told(&standing, typed)
    }
}

impl Desk {
    async fn rests_until(&self, here: &Where) -> Option<(&'static str, Moment)> {
        // Who cannot be asked is not known to rest.
        let resting = self.backend.quarantine().await.ok()?;
        if let Some(guild) = resting.guilds.iter().find(|guild| guild.id == here.guild_id()) {
            return Some(("server", guild.until.0));
        }
        let room = RoomId::of(&here.channel.channel())?;
        let channel = resting.channels.iter().find(|channel| *channel.room == *room.as_str())?;
        Some(("channel", channel.until.0))
    }
}

/// How a channel stands, in words; of one companion alone, if one is named.
pub(super) fn told(standing: &Standing, typed: Option<&str>) -> Result<String, Said> {
    let mut lines = who(standing, typed)?;
    lines.push(String::new());
    lines.extend(obstacles(standing));
    if standing.is_ignored {
        lines.push(
            "You asked not to be heard: companions do not listen to you. `/tertulia ignore me switch:off` takes it back.".into(),
        );
    }
    Ok(lines.join("\n"))
}

fn who(standing: &Standing, typed: Option<&str>) -> Result<Vec<String>, Said> {
    let inhabited = standing.room.as_ref().filter(|room| !room.companions.is_empty());
    let Some(room) = inhabited.or(standing.would_be.as_ref()) else {
        return Ok(nobody(standing));
    };
    let whom: Vec<_> = match typed {
        Some(typed) => vec![member(room, typed)?],
        None => room.companions.iter().collect(),
    };
    let mut lines = vec!["**Who is here**".to_owned()];
    if inhabited.is_none() {
        lines = vec![match standing.here.parent {
            Some(parent) => {
                let parent = channel(parent.get());
                format!("**Who is here**: those of {parent}, as soon as somebody says something in this thread")
            }
            None => "**Who is here**: as soon as you say something".to_owned(),
        }];
    }
    lines.extend(whom.iter().take(MOST_TOLD).map(|one| {
        let state = standing
            .state
            .as_ref()
            .filter(|_| inhabited.is_some())
            .and_then(|state| state.companions.iter().find(|state| state.id == one.id));
        companion(one, state)
    }));
    if whom.len() > MOST_TOLD {
        lines.push(format!("• and {} more", whom.len() - MOST_TOLD));
    }
    if inhabited.is_some_and(|room| room.paused) {
        lines.push("The whole channel is paused. `/tertulia pause switch:off` lets them go on.".to_owned());
    }
    Ok(lines)
}

/// How to begin.
fn nobody(standing: &Standing) -> Vec<String> {
    let Some(first) = standing.all.first() else {
        return vec![
            "Nobody lives here, and there are no companions that could. Whoever runs the bot can set some up.".to_owned(),
        ];
    };
    let known = listed(standing.all.iter().take(MOST_TOLD).map(|one| &one.name));
    let permission = if standing.here.is_direct() { "" } else { " (you need the permission **Manage Channels**)" };
    vec![
        "**Nobody lives here yet.**".to_owned(),
        format!("To let somebody in: `/tertulia join companion:{}`{permission}", first.id),
        format!("There are: {known}."),
    ]
}

fn companion(one: &RoomCompanion, state: Option<&CompanionState>) -> String {
    let mut line = line(one);
    let stage = state.map_or(Stage::None, |state| state.closing);
    match stage {
        Stage::None => {}
        Stage::PreClosing => line.push_str(" The conversation is drawing to a close for it."),
        Stage::Closing => line.push_str(" It is saying goodbye."),
        Stage::Terminal => {
            let more = state.map_or(0, |state| state.reopen_after.saturating_sub(state.heard_closed));
            let after = if more == 1 { "one more message".to_owned() } else { format!("{more} more messages") };
            line.push_str(&format!(" It has ended this conversation, and comes back when it is named or after {after}."));
        }
    }
    if state.is_some_and(|state| state.retry_at.is_some()) {
        line.push_str(" Its model gave no answer; it tries again soon.");
    }
    line
}

fn obstacles(standing: &Standing) -> Vec<String> {
    let missing = standing.missing.as_deref().unwrap_or_default();
    let mut lines = words::needs(missing);
    if !standing.here.is_direct() && standing.reads_all == Some(false) {
        lines.push(format!("• {}", words::NOT_READING));
    }
    if let Some(trouble) = &standing.trouble {
        lines.push(format!("• The last words could not be posted here ({}): {}", when(trouble.at), trouble.why));
        if let Some(at) = trouble.retry_at {
            lines.push(format!(
                "• Until permissions change here, companions stay silent without thinking about an answer. They try again {}.",
                when(at)
            ));
        }
    }
    if let Some((what, until)) = standing.rests_until {
        lines.push(format!(
            "• Something is wrong here that keeps companions of this {what} from going on. They try again {}; whoever runs the bot can see what \
             it is, and let them try sooner.",
            when(until)
        ));
    }
    if !standing.is_kept {
        lines.push("• What is said cannot be taken in at the moment. Whoever runs the bot finds why in its log.".to_owned());
    }
    if !standing.is_answered {
        lines.push(
            "• The AI model behind the companions does not answer at the moment, so they stay silent until it does.".to_owned(),
        );
    }
    if !lines.is_empty() {
        let is_blocked =
            !standing.is_kept || !standing.is_answered || standing.trouble.is_some() || standing.rests_until.is_some();
        let vital = is_blocked || missing.iter().any(|need| need.is_vital());
        lines.insert(0, if vital { "**In the way**" } else { "**It works, but not everything does**" }.to_owned());
    } else if standing.missing.is_none() {
        lines.push("Nothing is known to be in the way.".to_owned());
    } else {
        lines.push("Everything is in place: companions can hear and speak here.".to_owned());
    }
    lines
}

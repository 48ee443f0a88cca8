//! Why companions spoke in a channel, or did not: their last decisions, and what they wait for.

#[cfg(test)]
mod tests;

use super::choosing::called;
use super::interaction::Where;
use super::words::{name, verbatim, when, without_settings};
use super::{Desk, Said};
use crate::domain::trigger::Trigger;
use crate::ports::backend::decisions::{DecisionQuery, DecisionRecord, WaitingFor, WhyQuery};
use crate::ports::backend::room::{Room, RoomCompanion};

/// Decisions that are told of.
const MOST_DECISIONS: usize = 8;
/// Companions of whom it is told what they wait for.
const MOST_WAITING: usize = 4;
/// A model's own reason is shown up to so many characters.
const LONGEST_REASON: usize = 120;

impl Desk {
    /// Of this channel alone: whoever asks sees it, and need not see any other.
    pub(super) async fn why(&self, typed: Option<&str>, here: &Where) -> Result<String, Said> {
        let Some(room) = self.room(here).await? else {
            return Ok("Nothing was decided here yet. `/tertulia status` tells who is here.".to_owned());
        };
        let whom = match typed {
            // One that left has a past here, too.
            Some(typed) => match called(&room.companions, typed) {
                Some(one) => Some(one.id.clone()),
                None => Some(self.configured(typed).await?.id),
            },
            None => None,
        };
        let query = DecisionQuery { room: Some(room.id.clone()), companion: whom.clone(), after: None, limit: MOST_DECISIONS };
        let decisions = self.backend.decisions(query).await?.decisions;
        let present = room.companions.iter().filter(|one| whom.as_ref().is_none_or(|whom| one.id == *whom));
        let mut waiting = Vec::new();
        for one in present.take(MOST_WAITING) {
            let query = WhyQuery { room: room.id.clone(), companion: Some(one.id.as_str().into()), at: None };
            // Whoever cannot be told of is left out.
            let waits = self.backend.why(query).await.ok().and_then(|why| why.waiting_for);
            waiting.extend(waits.map(|waits| (one, waits)));
        }
        Ok(told(&room, &decisions, &waiting))
    }
}

/// What was decided, the newest first, and what is waited for.
fn told(room: &Room, decisions: &[DecisionRecord], waiting: &[(&RoomCompanion, WaitingFor)]) -> String {
    let mut lines = Vec::new();
    if !waiting.is_empty() {
        lines.push("**What they wait for now**".to_owned());
        lines.extend(waiting.iter().map(|(one, waits)| waits_for(one, waits)));
    }
    if decisions.is_empty() {
        lines.push("Nothing was decided here yet: nobody was named, and not enough was said.".to_owned());
    } else {
        lines.push("**What was decided here**, the newest first".to_owned());
        lines.extend(decisions.iter().rev().map(|decision| decided(room, decision)));
    }
    lines.join("\n")
}

fn waits_for(one: &RoomCompanion, waits: &WaitingFor) -> String {
    format!("• {} considers to speak after: {}.", name(&one.name), verbatim(&without_settings(&waits.text)))
}

/// One decision in one line.
fn decided(room: &Room, decision: &DecisionRecord) -> String {
    let known = room.companions.iter().find(|one| one.id == decision.companion);
    let who = known.map_or_else(|| name(decision.companion.as_str()), |one| name(&one.name));
    let trigger = match decision.trigger {
        Trigger::DirectAddress => "somebody turned to it",
        Trigger::Turn => "another companion had spoken",
        Trigger::Interjection => "enough had been said without it",
        Trigger::Lull => "it had become quiet",
    };
    let what = match (&*decision.decision, &*decision.reason) {
        ("YES", _) => match decision.more.get("floor").and_then(|floor| floor.as_str()) {
            Some("lost") => format!("wanted to speak ({trigger}), but another companion went first"),
            _ => format!("decided to speak ({trigger})"),
        },
        (_, "model_no" | "external") => format!("was asked ({trigger}), and stayed silent"),
        (_, "unreadable") => format!("was asked ({trigger}), but its model's answer made no sense, so it stayed silent"),
        (_, "other_addressed") => "stayed silent: what was said was meant for somebody else".to_owned(),
        (_, "budget") => "stayed silent: it, or this server, has used up what is allowed for now".to_owned(),
        (_, "unpostable") => "stayed silent: nothing can be posted here at the moment (`/tertulia status` tells why)".to_owned(),
        (_, "loop_guard") => "stayed silent: companions had talked long enough among themselves".to_owned(),
        (_, "closed") => "stayed silent: it had ended the conversation".to_owned(),
        (_, "paused") => "stayed silent: it is paused".to_owned(),
        (_, "overflow") => "passed over old messages: too many were waiting".to_owned(),
        (_, "stale") => "passed over messages that were too old to be answered".to_owned(),
        (_, reason) => format!("stayed silent ({})", verbatim(reason)),
    };
    let own = decision.more.get("why").and_then(|why| why.as_str()).map(shortened).filter(|own| !own.is_empty());
    let own = own.map(|own| format!(" – “{own}”")).unwrap_or_default();
    format!("• {} {who} {what}{own}", when(decision.at.0))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_REASON) {
        Some((end, _)) => format!("{}…", verbatim(&text[..end])),
        None => verbatim(text),
    }
}

//! `/tertulia why`: explains why companions spoke in a channel or stayed silent, and what they wait for.

#[cfg(test)]
mod tests;

use super::choosing::find;
use super::interaction::ChannelContext;
use super::words::{name, verbatim, when};
use super::{Answer, CommandHandler};
use crate::domain::text::first;
use crate::ports::backend::decisions::{DecisionQuery, DecisionRecord, StoryLine, WaitingFor, WhyAt, WhyQuery};
use crate::ports::backend::room::Room;
use crate::texts::Language;

/// The limit of decisions in an answer.
const MOST_DECISIONS: usize = 8;
/// The limit of companions whose waiting is described.
const MOST_WAITING: usize = 4;
/// The limit of characters of a model's own reason.
const LONGEST_REASON: usize = 120;
/// The limit of characters about the outcome of a statement.
const LONGEST_END: usize = 200;
/// The kinds of story lines that show the outcome of a statement.
const ENDS: [&str; 5] = ["statement", "failed", "dropped", "cleared", "moved"];

impl CommandHandler {
    /// Describes only this channel, because the user may not be able to see others.
    pub(super) async fn why(&self, typed: Option<&str>, here: &ChannelContext) -> Result<String, Answer> {
        let Some(room) = self.room(here).await? else {
            return Ok("Nothing was decided here yet. `/tertulia status` shows who is here.".to_owned());
        };
        let selected = match typed {
            // A companion that has left may still have decisions here.
            Some(typed) => match find(&room.companions, typed) {
                Some(member) => Some(member.id.clone()),
                None => Some(self.configured(typed, here).await?.id),
            },
            None => None,
        };
        let query =
            DecisionQuery { room: Some(room.id.clone()), companion: selected.clone(), after: None, limit: MOST_DECISIONS };
        let decisions = self.backend.records.decisions(query).await?.decisions;
        let present = room.companions.iter().filter(|member| selected.as_ref().is_none_or(|selected| member.id == *selected));
        let mut waiting = Vec::new();
        for member in present.take(MOST_WAITING) {
            let query = WhyQuery {
                room: room.id.clone(),
                companion: Some(member.id.as_str().into()),
                at: None,
                language: Language::English,
            };
            // Companions whose query fails are omitted.
            let waits = self.backend.records.why(query).await.ok().and_then(|why| why.waiting_for);
            waiting.extend(waits);
        }
        let mut told = Vec::new();
        for decision in decisions {
            let became = if wants_to_speak(&decision) { self.became(&room, &decision).await } else { None };
            told.push((decision, became));
        }
        Ok(describe(&room, &told, &waiting))
    }

    /// The outcome of the statement that a YES led to. `None` if unknown.
    async fn became(&self, room: &Room, decision: &DecisionRecord) -> Option<String> {
        let query = WhyQuery {
            room: room.id.clone(),
            companion: Some(decision.companion.as_str().into()),
            at: Some(WhyAt::Event(decision.seq)),
            language: Language::English,
        };
        let story = self.backend.records.why(query).await.ok()?.story;
        let ends = |line: &&StoryLine| line.seq > Some(decision.seq) && ENDS.contains(&&*line.event);
        let end = story.iter().find(ends)?;
        Some(if &*end.event == "statement" { "It was posted.".to_owned() } else { end.text.clone() })
    }
}

/// Whether the decision was to lead to a statement: a YES that did not lose the floor.
fn wants_to_speak(decision: &DecisionRecord) -> bool {
    &*decision.decision == "YES" && decision.more.get("floor").is_none_or(|floor| floor != "lost")
}

/// Describes the decisions, newest first, with the outcomes of the statements, and what the companions wait for.
fn describe(room: &Room, decisions: &[(DecisionRecord, Option<String>)], waiting: &[WaitingFor]) -> String {
    let mut lines = Vec::new();
    if !waiting.is_empty() {
        lines.push("**What they wait for now**".to_owned());
        lines.extend(waiting.iter().map(|waits| format!("• {}", verbatim(&waits.text))));
    }
    if decisions.is_empty() {
        lines.push("Nothing was decided here yet: nobody was named, and not enough was said.".to_owned());
    } else {
        lines.push("**What was decided here**, the newest first".to_owned());
        for (decision, became) in decisions.iter().rev() {
            lines.push(decision_line(room, decision));
            lines.extend(became.as_ref().map(|became| format!("  – {}", verbatim(first(became, LONGEST_END)))));
        }
    }
    lines.join("\n")
}

pub(super) fn decision_line(room: &Room, decision: &DecisionRecord) -> String {
    let companion = room.companions.iter().find(|member| member.id == decision.companion);
    let name_text = companion.map_or_else(|| name(decision.companion.as_str()), |member| name(&member.name));
    let trigger = decision.trigger.occasion();
    let outcome = match (&*decision.decision, &*decision.reason) {
        ("YES", "event") => "was to answer what had happened".to_owned(),
        ("YES", _) => match decision.more.get("floor").and_then(|floor| floor.as_str()) {
            Some("lost") => format!("wanted to speak ({trigger}), but another companion went first"),
            _ => format!("decided to speak ({trigger})"),
        },
        // All people in the channel can use this command, so these reasons are not disclosed.
        (_, "model_no" | "external" | "risk") => format!("was asked ({trigger}), and stayed silent"),
        (_, "unreadable") => format!("was asked ({trigger}), but its model's answer made no sense, so it stayed silent"),
        (_, "other_addressed") if decision.more.contains_key("by_role") => {
            "stayed silent: whoever said this may not address companions here, by the roles that the managers of this server chose"
                .to_owned()
        }
        (_, "other_addressed") => "stayed silent: what was said was meant for somebody else".to_owned(),
        (_, "filtered") => "stayed silent: the AI service refuses what was said".to_owned(),
        (_, "no_initiative") => "stayed silent: it speaks only when it is spoken to, and nobody did".to_owned(),
        (_, "irrelevant") => "stayed silent: it would hardly have had anything to say".to_owned(),
        (_, "budget") => "stayed silent: it, or this server, has used up its budget for now".to_owned(),
        (_, "unpostable") => "stayed silent: nothing can be posted here at the moment (`/tertulia status` says why)".to_owned(),
        (_, "loop_guard") => "stayed silent: companions had talked long enough among themselves".to_owned(),
        (_, "closed") => "stayed silent: it had ended the conversation".to_owned(),
        (_, "paused") => "stayed silent: it is paused".to_owned(),
        (_, "overflow") => "passed over old messages: too many were waiting".to_owned(),
        (_, "cancelled") => "kept silent because somebody asked to stop".to_owned(),
        (_, "backchannel") => "kept silent because somebody only showed that they were listening".to_owned(),
        (_, "stale") => "passed over messages that were too old to be answered".to_owned(),
        (_, reason) => format!("stayed silent ({})", verbatim(reason)),
    };
    let reason = decision.more.get("why").and_then(|why| why.as_str()).map(shortened).filter(|reason| !reason.is_empty());
    let reason = reason.map(|reason| format!(" – “{reason}”")).unwrap_or_default();
    format!("• {} {name_text} {outcome}{reason}", when(decision.at.0))
}

fn shortened(text: &str) -> String {
    let shown = first(text, LONGEST_REASON);
    let mark = if shown.len() < text.len() { "…" } else { "" };
    format!("{}{mark}", verbatim(shown))
}

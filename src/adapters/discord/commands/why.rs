//! `/tertulia why`: explains why companions spoke in a channel or stayed silent, and what they wait for.

#[cfg(test)]
mod tests;

use super::choosing::find;
use super::interaction::ChannelContext;
use super::quoting::{name, verbatim};
use super::text::{Text, say};
use super::words::when;
use super::{Answer, CommandHandler};
use crate::domain::text::first;
use crate::domain::trigger::Trigger;
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
    pub(super) async fn why(&self, typed: Option<&str>, here: &ChannelContext, language: &str) -> Result<Text, Answer> {
        // What the backend explains is in a language of the page.
        let language = Language::of_code(language).unwrap_or_default();
        let Some(room) = self.room(here).await? else {
            return Ok(say!("Nothing was decided here yet. `/tertulia status` shows who is here."));
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
            let query = WhyQuery { room: room.id.clone(), companion: Some(member.id.as_str().into()), at: None, language };
            // Companions whose query fails are omitted.
            let waits = self.backend.records.why(query).await.ok().and_then(|why| why.waiting_for);
            waiting.extend(waits);
        }
        let mut told = Vec::new();
        for decision in decisions {
            let became = if wants_to_speak(&decision) { self.became(&room, &decision, language).await } else { None };
            told.push((decision, became));
        }
        Ok(describe(&room, &told, &waiting))
    }

    /// The outcome of the statement that a YES led to. `None` if unknown.
    async fn became(&self, room: &Room, decision: &DecisionRecord, language: Language) -> Option<Text> {
        let query = WhyQuery {
            room: room.id.clone(),
            companion: Some(decision.companion.as_str().into()),
            at: Some(WhyAt::Event(decision.seq)),
            language,
        };
        let story = self.backend.records.why(query).await.ok()?.story;
        let ends = |line: &&StoryLine| line.seq > Some(decision.seq) && ENDS.contains(&&*line.event);
        let end = story.iter().find(ends)?;
        Some(match &*end.event {
            "statement" => say!("It was posted."),
            _ => Text::Plain(verbatim(first(&end.text, LONGEST_END))),
        })
    }
}

/// Whether the decision was to lead to a statement: a YES that did not lose the floor.
fn wants_to_speak(decision: &DecisionRecord) -> bool {
    &*decision.decision == "YES" && decision.more.get("floor").is_none_or(|floor| floor != "lost")
}

/// Describes the decisions, newest first, with the outcomes of the statements, and what the companions wait for.
fn describe(room: &Room, decisions: &[(DecisionRecord, Option<Text>)], waiting: &[WaitingFor]) -> Text {
    let mut lines = Vec::new();
    if !waiting.is_empty() {
        lines.push(say!("**What they wait for now**"));
        lines.extend(waiting.iter().map(|waits| Text::Plain(verbatim(&waits.text)).bullet()));
    }
    if decisions.is_empty() {
        lines.push(say!("Nothing was decided here yet: nobody was named, and not enough was said."));
    } else {
        lines.push(say!("**What was decided here**, the newest first"));
        for (decision, became) in decisions.iter().rev() {
            lines.push(decision_line(room, decision));
            lines.extend(became.iter().map(|became| Text::Joined(vec![Text::Plain("  – ".to_owned()), became.clone()], "")));
        }
    }
    Text::lines(lines)
}

pub(super) fn decision_line(room: &Room, decision: &DecisionRecord) -> Text {
    let companion = room.companions.iter().find(|member| member.id == decision.companion);
    let name = companion.map_or_else(|| name(decision.companion.as_str()), |member| name(&member.name));
    let trigger = occasion(decision.trigger);
    let outcome = match (&*decision.decision, &*decision.reason) {
        ("YES", "event") => say!("{name} was to answer what had happened", name = name),
        ("YES", _) => match decision.more.get("floor").and_then(|floor| floor.as_str()) {
            Some("lost") => {
                say!("{name} wanted to speak ({occasion}), but another companion went first", name = name, occasion = trigger)
            }
            _ => say!("{name} decided to speak ({occasion})", name = name, occasion = trigger),
        },
        // All people in the channel can use this command, so these reasons are not disclosed.
        (_, "model_no" | "external" | "risk") => {
            say!("{name} was asked ({occasion}), and stayed silent", name = name, occasion = trigger)
        }
        (_, "unreadable") => say!(
            "{name} was asked ({occasion}), but its model's answer made no sense, so it stayed silent",
            name = name,
            occasion = trigger
        ),
        (_, "other_addressed") if decision.more.contains_key("by_role") => say!(
            "{name} stayed silent: whoever said this may not address companions here, by the roles that the managers of this server chose",
            name = name
        ),
        (_, "other_addressed") => say!("{name} stayed silent: what was said was meant for somebody else", name = name),
        (_, "filtered") => say!("{name} stayed silent: the AI service refuses what was said", name = name),
        (_, "no_initiative") => {
            say!("{name} stayed silent: it speaks only when it is spoken to, and nobody did", name = name)
        }
        (_, "irrelevant") => say!("{name} stayed silent: it would hardly have had anything to say", name = name),
        (_, "budget") => say!("{name} stayed silent: it, or this server, has used up its budget for now", name = name),
        (_, "unpostable") => {
            say!("{name} stayed silent: nothing can be posted here at the moment (`/tertulia status` says why)", name = name)
        }
        (_, "loop_guard") => say!("{name} stayed silent: companions had talked long enough among themselves", name = name),
        (_, "closed") => say!("{name} stayed silent: it had ended the conversation", name = name),
        (_, "paused") => say!("{name} stayed silent: it is paused", name = name),
        (_, "overflow") => say!("{name} passed over old messages: too many were waiting", name = name),
        (_, "cancelled") => say!("{name} kept silent because somebody asked to stop", name = name),
        (_, "backchannel") => {
            say!("{name} kept silent because somebody only showed that they were listening", name = name)
        }
        (_, "stale") => say!("{name} passed over messages that were too old to be answered", name = name),
        (_, reason) => say!("{name} stayed silent ({reason})", name = name, reason = verbatim(reason)),
    };
    let reason = decision.more.get("why").and_then(|why| why.as_str()).map(shortened).filter(|reason| !reason.is_empty());
    let reason = reason.map_or_else(String::new, |reason| format!(" – “{reason}”"));
    Text::Joined(vec![Text::Plain(format!("{} ", when(decision.at.0))), outcome, Text::Plain(reason)], "").bullet()
}

/// Why a companion was asked.
fn occasion(trigger: Trigger) -> Text {
    match trigger {
        Trigger::DirectAddress => say!("it was addressed"),
        Trigger::Turn => say!("a companion had spoken"),
        Trigger::Interjection => say!("enough was said without it"),
        Trigger::Lull => say!("it was quiet"),
        Trigger::Silence => say!("nobody had said anything for long"),
        Trigger::Chosen => say!("somebody chose it to speak next"),
        Trigger::Event => say!("something happened"),
    }
}

fn shortened(text: &str) -> String {
    let shown = first(text, LONGEST_REASON);
    let mark = if shown.len() < text.len() { "…" } else { "" };
    format!("{}{mark}", verbatim(shown))
}

//! Replays an excerpt through the real gate in virtual time. The gate decides when the companion is asked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::excerpts::Excerpt;
use super::questions::{BEGAN, moment, named_as};
use crate::actors::companion::question;
use crate::domain::conversation::Conversation;
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::Evaluated;
use crate::domain::id::{GuildId, Ticket};
use crate::domain::moment::Moment;
use crate::domain::prompt::Scene;
use crate::domain::trigger::Trigger;
use crate::ports::language_model::Request;
use crate::replay::{
    self, Action, Answer, Answers, Question, ReplayEventKind, Responder, Script, ScriptedEvent, ScriptedMessage,
};
use crate::settings::Settings;
use crate::settings::companion::Companion;

/// The response times of the model in the run.
const DECISION: Duration = Duration::from_millis(650);
const STATEMENT: Duration = Duration::from_millis(2_250);
/// The time that the run continues after the last message.
const AFTER: Duration = Duration::from_secs(600);
/// The guild and the channel of the run.
const PLACE: &str = "evaluation";
/// The companion's statement if its author has no further message.
const NOTHING_MORE: &str = "ok";

/// The counts of free runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Played {
    /// The number of messages by others.
    pub messages: u64,
    /// Decisions that a model was asked for, by trigger.
    pub asked: BTreeMap<Trigger, u64>,
    /// Decisions without a model, by reason.
    pub unasked: BTreeMap<Reason, u64>,
    /// The number of times that the model said YES, by trigger.
    pub yes: BTreeMap<Trigger, u64>,
    pub statements: u64,
    /// Requests to judge whether statements repeat each other. They are counted but not sent.
    pub judgements: u64,
    /// Requests without an answer.
    pub errors: u64,
}

impl Played {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Self) {
        fn add<K: Copy + Ord>(counts: &mut BTreeMap<K, u64>, more: &BTreeMap<K, u64>) {
            more.iter().for_each(|(key, count)| *counts.entry(*key).or_default() += count);
        }
        add(&mut self.asked, &other.asked);
        add(&mut self.unasked, &other.unasked);
        add(&mut self.yes, &other.yes);
        self.messages += other.messages;
        self.statements += other.statements;
        self.judgements += other.judgements;
        self.errors += other.errors;
    }

    /// The number of requests for the side model, including judgements, which are not sent.
    pub fn calls(&self) -> u64 {
        self.asked.values().sum::<u64>() + self.judgements
    }
}

/// Replays the annotated messages of an excerpt. The author's own messages are left out. Instead, the companion speaks when it
/// decides to, with the text of the author's next message. `ask` answers a request, or returns the reason why there is no answer.
///
/// # Errors
/// Returns an error if the run does not end, which is a bug.
pub fn play(
    excerpt: &Excerpt,
    author: &Arc<str>,
    companion: &Companion,
    settings: &Settings,
    ask: &mut dyn FnMut(Request) -> Result<String, String>,
) -> Result<Played, String> {
    let companion = named_as(companion, author);
    let script = script(excerpt, author, &companion, settings);
    let own = excerpt.messages.iter().filter(|message| message.from == *author);
    let own = own.map(|message| (moment(message), &*message.text)).collect();
    let mut responder = Asking { settings, companion: &companion, own, ask, judgements: 0, last: None };
    let events = replay::run_with(&script, &mut responder).map_err(|error| format!("{}: {error}", excerpt.id))?;
    let mut played = Played { judgements: responder.judgements, messages: script.events.len() as u64, ..Played::default() };
    for event in events {
        match event.kind {
            ReplayEventKind::Evaluate { trigger, .. } => *played.asked.entry(trigger).or_default() += 1,
            ReplayEventKind::Decision { trigger, decision: Decision::Yes, .. } => *played.yes.entry(trigger).or_default() += 1,
            ReplayEventKind::Decision { reason: Reason::ModelNo | Reason::Unreadable, .. } => {}
            ReplayEventKind::Decision { reason, .. } => *played.unasked.entry(reason).or_default() += 1,
            ReplayEventKind::Statement { .. } => played.statements += 1,
            ReplayEventKind::Error { .. } => played.errors += 1,
            _ => {}
        }
    }
    Ok(played)
}

fn script(excerpt: &Excerpt, author: &Arc<str>, companion: &Companion, settings: &Settings) -> Script {
    let is_played = |message: &&super::excerpts::Message| message.annotated && message.from != *author;
    let events = excerpt.messages.iter().filter(is_played).map(|message| {
        let said =
            ScriptedMessage { from: message.from.to_string(), text: message.text.to_string(), ..ScriptedMessage::default() };
        ScriptedEvent { at: moment(message), channel: PLACE.to_owned(), action: Action::Say(said) }
    });
    let events: Vec<_> = events.collect();
    let nothing = || Answers { shared: Vec::new(), own: BTreeMap::new() };
    let until = events.last().map_or(BEGAN, |last: &ScriptedEvent| last.at + AFTER);
    Script {
        companions: [(companion.id.clone(), companion.clone())].into(),
        settings: settings.clone(),
        jitter: Vec::new(),
        side: nothing(),
        main: nothing(),
        unscripted: Vec::new(),
        mouths: Vec::new(),
        rolls: Vec::new(),
        events,
        until: Some(until),
        notes: Vec::new(),
    }
}

/// Forwards requests for decisions to `ask`.
struct Asking<'a> {
    settings: &'a Settings,
    companion: &'a Companion,
    /// The author's own messages.
    own: Vec<(Moment, &'a str)>,
    ask: &'a mut dyn FnMut(Request) -> Result<String, String>,
    judgements: u64,
    /// The newest request. If it is asked again, its first answer was unreadable.
    last: Option<Ticket>,
}

impl Asking<'_> {
    fn decide(&mut self, evaluated: &Evaluated, conversation: &Conversation) -> Result<String, String> {
        let input = conversation.prompt_input(evaluated.ticket).ok_or("cancelled")?;
        let (guild, words) = (GuildId::from(PLACE), &self.settings.prompt);
        let scene = Scene::new(conversation.clock(), words.zone_of(&guild).clone());
        let request = question::request(input, self.companion, &scene, guild, self.companion.brief.as_deref(), words);
        let is_repeat = self.last.replace(evaluated.ticket) == Some(evaluated.ticket);
        (self.ask)(if is_repeat { question::once_more(request) } else { request })
    }
}

impl Responder for Asking<'_> {
    fn answer(&mut self, question: Question<'_>, conversation: &Conversation) -> Answer {
        match question {
            Question::Decision { evaluated } => Answer { outcome: self.decide(evaluated, conversation), delay: DECISION },
            Question::Statement { .. } => {
                let now = conversation.clock();
                let next = self.own.iter().find(|(at, _)| *at >= now).map_or(NOTHING_MORE, |(_, text)| *text);
                Answer { outcome: Ok(next.to_owned()), delay: STATEMENT }
            }
            Question::Judgement => {
                self.judgements += 1;
                Answer { outcome: Ok("0".to_owned()), delay: DECISION }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::decisions::tests::excerpt;
    use crate::evaluation::questions::neutral;
    use crate::samples::defaults;

    #[test]
    fn the_gate_decides_when_to_ask_and_the_author_lends_its_words() {
        let excerpt =
            excerpt(&[("bo", "al, are you there?", &[]), ("al", "I am", &[0]), ("cy", "fine", &[1]), ("bo", "bo is here", &[])]);
        let (companion, author) = (neutral(defaults()).unwrap(), "al".into());
        let mut asked = Vec::new();
        let mut ask = |request: Request| {
            let text = request.user().into_owned();
            let is_addressed = !text.contains("I am");
            asked.push(text);
            Ok(if is_addressed { "They ask me.\nYES" } else { "Nothing to add.\nNO" }.to_owned())
        };

        let played = play(&excerpt, &author, &companion, defaults(), &mut ask).unwrap();

        assert!(asked[0].contains("are you there?") && asked.len() > 1, "{asked:?}");
        assert!(asked[1].contains("I am") && asked[1].contains("fine"), "{asked:?}");
        assert_eq!((played.messages, played.statements, played.errors), (3, 1, 0));
        assert_eq!(played.asked[&Trigger::DirectAddress], 1);
        assert_eq!(played.yes, [(Trigger::DirectAddress, 1)].into());
        assert!(played.asked[&Trigger::Lull] > 0 && played.calls() == asked.len() as u64, "{played:?}");
    }
}

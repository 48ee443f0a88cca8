//! What follows once something is on record.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorId, ActorRuntime};

use super::traces::{self, Turn};
use super::{ChannelMessage, REPLY_AGAIN_AT_MOST, State};
use crate::actors::companion::{Asking, CompanionMessage, Evaluate};
use crate::actors::places::CompanionPlace;
use crate::actors::reply;
use crate::actors::side_models::Priority;
use crate::domain::conversation::Input;
use crate::domain::event::{Decided, Event};
use crate::domain::id::{Seq, Ticket};
use crate::domain::message::Message;
use crate::domain::prompt;
use crate::journal::reader::{Range, Reader};
use crate::ports::language_model::{Line, ModelRole, Purpose, Request};

/// How much longer than the pool's own deadline a channel waits for an answer.
const GRACE: Duration = Duration::from_secs(5);

/// A summary takes in so many events at most, the newest: more do not fit into its prompt.
const SUMMARISED_AT_MOST: usize = 1_000;

/// Something to be done once a batch is committed.
pub(super) enum Duty {
    /// Ask this question, if it is still open.
    Ask { ticket: Ticket },
    /// Begin this reply, if it is still owed.
    Reply { ticket: Ticket },
    /// Tell what was decided.
    TellDecision { decided: Box<Decided>, turn: Box<Turn> },
    /// Tell that there was no answer.
    TellUnanswered { ticket: Ticket, event: Box<Event> },
    /// Tell that there will be no statement.
    TellFailure { ticket: Ticket, error: Arc<str> },
}

impl State {
    pub(super) fn duties(&mut self, made: Vec<(Seq, Event)>) -> Vec<Duty> {
        let now = self.kit.clock.now();
        made.into_iter()
            .filter_map(|(_, event)| match event {
                Event::Evaluated(evaluated) => {
                    self.traces.asked(&evaluated, now, &self.kit);
                    Some(Duty::Ask { ticket: evaluated.ticket })
                }
                Event::ReplyOwed { ticket, .. } => {
                    self.traces.owed(ticket, now, &self.kit);
                    Some(Duty::Reply { ticket })
                }
                Event::Decided(decided) => {
                    let turn = Box::new(self.traces.concluded(&decided, now, &self.kit));
                    Some(Duty::TellDecision { decided: Box::new(decided), turn })
                }
                Event::ReplyFailed { ticket, error, .. } => Some(Duty::TellFailure { ticket, error }),
                Event::Unanswered { ticket, .. } => Some(Duty::TellUnanswered { ticket, event: Box::new(event) }),
                _ => None,
            })
            .collect()
    }

    pub(super) fn discharge(&mut self, duty: Duty) {
        match duty {
            Duty::Ask { ticket } => self.ask(ticket),
            Duty::Reply { ticket } => self.reply(ticket),
            Duty::TellDecision { decided, turn } => traces::tell_decision(&decided, &turn, &self.place, &self.kit),
            Duty::TellUnanswered { ticket, event } => self.traces.unanswered(ticket, &event, &self.place, &self.kit),
            Duty::TellFailure { ticket, error } => self.traces.failed(ticket, &error, &self.place, &self.kit),
        }
    }

    fn ask(&mut self, ticket: Ticket) {
        let open = self.conversation.open_questions().find(|(_, evaluation)| evaluation.ticket == ticket);
        let Some((companion, evaluation)) = open else { return };
        let Some(settings) = self.kit.residents.companion(&self.place.channel, companion) else { return };
        let Some(gate) = self.conversation.gate(companion) else { return };
        let window = self.conversation.window();
        let buffer: Vec<Message> = window
            .buffer(companion, gate.cursor)
            .filter(|entry| entry.seq <= evaluation.upto)
            .map(|entry| entry.message.clone())
            .collect();
        let evaluate = Evaluate {
            asking: Asking::new(self.place.clone(), ticket, self.kit.clone()),
            trigger: evaluation.trigger,
            modality: buffer.last().map(|message| message.modality).unwrap_or_default(),
            message_count: evaluation.message_count,
            summary: self.conversation.summary().text.clone(),
            recent: window.recent(gate.cursor).map(|entry| entry.message.clone()).collect(),
            buffer,
            settings: Arc::new(settings),
        };
        let at = CompanionPlace(self.place.guild.clone(), companion.clone());
        // A question that finds nobody is dropped, which tells us to ask again.
        match self.kit.directory.find(&at) {
            Some(actor) => drop(actor.cast(CompanionMessage::Evaluate(Box::new(evaluate)))),
            None => drop(evaluate),
        }
        if let Entry::Vacant(first) = self.tries.entry(ticket) {
            first.insert(0);
            let patience = self.kit.settings.models.side.timeout() + GRACE;
            self.myself.send_after(patience, move || ChannelMessage::QuestionOverdue { ticket });
        }
    }

    fn reply(&mut self, ticket: Ticket) {
        let Some(floor) = self.conversation.floor().filter(|floor| floor.ticket == ticket) else { return };
        let settings = self.kit.residents.companion(&self.place.channel, &floor.companion);
        let Some(settings) = settings else {
            self.step(Input::ReplyFailed { ticket, error: "absent".into() });
            return;
        };
        let window = self.conversation.window();
        let snapshot: Vec<Message> =
            floor.messages.iter().filter_map(|seq| window.get(*seq)).map(|entry| entry.message.clone()).collect();
        let before = floor.messages.first().map_or(floor.upto, |first| Seq(first.0.saturating_sub(1)));
        let arguments = reply::Arguments {
            place: self.place.clone(),
            ticket,
            trigger: floor.trigger,
            modality: snapshot.last().map(|message| message.modality).unwrap_or_default(),
            why: floor.why.clone(),
            message_count: snapshot.len() as u64,
            summary: self.conversation.summary().text.clone(),
            recent: window.recent(before).map(|entry| entry.message.clone()).collect(),
            snapshot,
            settings: Arc::new(settings),
            channel: self.myself.clone(),
            kit: self.kit.clone(),
        };
        let begun = ActorRuntime::spawn_linked_instant(None, reply::Reply, arguments, self.myself.get_cell());
        match begun {
            Ok((actor, _)) => {
                self.replies.insert(actor.get_id(), (ticket, actor.get_cell()));
            }
            Err(error) => {
                tracing::error!(channel = %self.place.channel, %error, "a reply could not be begun");
                self.step(Input::ReplyFailed { ticket, error: "unreachable".into() });
            }
        }
    }

    /// A reply's actor is gone. If its words never came, they are asked for again.
    pub(super) fn reply_is_gone(&mut self, reply: ActorId) {
        let Some((ticket, _)) = self.replies.remove(&reply) else { return };
        if self.conversation.floor().is_none_or(|floor| floor.ticket != ticket || floor.is_posting) {
            return;
        }
        let tries = self.tries.entry(ticket).or_default();
        *tries += 1;
        if *tries < REPLY_AGAIN_AT_MOST {
            self.reply(ticket);
        } else {
            self.step(Input::ReplyFailed { ticket, error: "unreachable".into() });
        }
    }

    /// Has the rolling summary refreshed, by the side model, in nobody's way.
    pub(super) fn summarise(&mut self, after: Seq, upto: Seq) {
        let (place, kit, channel) = (self.place.clone(), self.kit.clone(), self.myself.clone());
        let previous = self.conversation.summary().text.clone();
        tokio::spawn(async move {
            let range = Range { after, before: Some(upto.next()), limit: SUMMARISED_AT_MOST, newest_first: true };
            let events = Reader::new(&*kit.store).events(&place, range).await;
            let messages: Vec<Message> = match events {
                Ok(events) => events.into_iter().rev().filter_map(|recorded| said(recorded.event)).collect(),
                Err(error) => {
                    tracing::warn!(channel = %place.channel, %error, "what is to be summarised cannot be read");
                    let _ = channel.cast(ChannelMessage::Summarised { upto, text: None, outcome: None });
                    return;
                }
            };
            let words = &kit.settings.prompt;
            let prompt = prompt::summary(previous.as_deref(), &messages.iter().collect::<Vec<_>>(), words);
            let request = Request {
                role: ModelRole::Side,
                purpose: Purpose::Summary,
                companion: None,
                guild: place.guild.clone(),
                system: prompt.system,
                user: prompt.user,
                sizes: prompt.sizes,
                newest: Line::newest_of(messages.iter()),
                max_tokens: words.max_side_answer_tokens,
            };
            let deadline = kit.pool.deadline(ModelRole::Side);
            let outcome = kit.pool.answer(Arc::new(request), Priority::Summary, deadline, None).await;
            let text =
                outcome.result.as_ref().ok().map(|answer| answer.text.trim().into()).filter(|text: &Arc<str>| !text.is_empty());
            // A channel that is gone has it done again.
            let _ = channel.cast(ChannelMessage::Summarised { upto, text, outcome: Some(Box::new(outcome)) });
        });
    }
}

fn said(event: Event) -> Option<Message> {
    match event {
        Event::Said { message, .. } => Some(message),
        _ => None,
    }
}

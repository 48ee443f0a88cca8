//! Asks the main model to decide and to speak in one call (docs/design/gate.md G-42). No part of the answer is shown until the first words exclude a
//! pass. Then the reply continues with the same call.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::Instant;

use super::reply::{self, Source as ReplySource};
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::{self as messages, Begun, Statement, Tell};
use crate::actors::messages::models::{CallFacts, CallId};
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::Address;
use crate::domain::answer_or_pass::{Choice, choice};
use crate::domain::id::{CompanionId, Ticket};
use crate::domain::priority::Priority;
use crate::domain::raw_answer::{self, Nothing, Reader, Speakers};
use crate::domain::service::Service;
use crate::journal::channel_key::ChannelKey;
use crate::ports::language_model::{Draft, ModelRole, TokenUsage};

/// The parameters of the request.
pub struct Question {
    pub channel_key: ChannelKey,
    pub companion: CompanionId,
    pub ticket: Ticket,
    pub priority: Priority,
    pub statement: messages::Source<Statement>,
    /// Sends the result to the channel.
    pub tell: Tell,
    pub context: Arc<ActorContext>,
}

/// Asks the model. The channel gets [`ChannelMessage::Speaks`], [`ChannelMessage::Passed`], or, if there is no usable answer,
/// [`ChannelMessage::Answered`]. `None`: the companion has left.
pub fn ask(question: Question) -> Option<CallId> {
    let Question { channel_key, companion, ticket, priority, statement, tell, context } = question;
    let settings = context.memberships.companion(&channel_key.channel, &companion)?;
    let speakers = Arc::new(Mutex::new(Speakers::new(&settings.name, [])));
    let source = ReplySource {
        channel_key: channel_key.clone(),
        at_work: Address::Channel(channel_key.channel.clone()),
        statement,
        context: context.clone(),
    };
    let request = reply::lazy_request(&source, &settings, speakers.clone(), "");
    let begins_in_thought = context.pool.begins_in_thought(request.base());
    let (sender, mut pieces) = unbounded_channel();
    let unclaimed = {
        let (tell, asked) = (tell.clone(), request.clone());
        move |outcome| tell(ChannelMessage::Unclaimed { asked, outcome: Box::new(outcome) })
    };
    let (asked, deadline) = (Instant::now(), context.pool.deadline(ModelRole::Main));
    let mut pending = context.pool.begin(request.clone(), priority, deadline, Some(sender), unclaimed);
    let call = pending.call;
    tokio::spawn(async move {
        let mut writing = FirstWords { speakers: speakers.clone(), begins_in_thought, raw: String::new(), reader: None };
        let outcome = loop {
            tokio::select! {
                biased;
                Some(piece) = pieces.recv() => {
                    if writing.push_piece(piece) == Choice::Speaks {
                        break None;
                    }
                }
                outcome = pending.outcome() => break Some(outcome),
            }
        };
        let raw = writing.raw;
        let begun = |facts, outcome| {
            let (request, speakers) = (request.clone(), speakers.clone());
            Box::new(Begun { request, speakers, raw, pieces, facts, outcome })
        };
        let Some(outcome) = outcome else {
            let facts = CallFacts {
                service: Service::LanguageModel,
                identity: pending.identity.clone(),
                waited_ms: 0,
                model_ms: u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX),
                attempts: 1,
                usage: TokenUsage::default(),
            };
            let begun = begun(facts, Box::pin(async move { pending.outcome().await }));
            return tell(ChannelMessage::Speaks { ticket, begun });
        };
        let reading =
            outcome.result.as_ref().ok().map(|answer| {
                raw_answer::statement(&answer.text(), speakers.lock().clone()).words.map(|words| choice(&words, true))
            });
        // A model that calls a tool goes on to speak.
        let calls_tools = outcome.result.as_ref().is_ok_and(|answer| !answer.tool_calls.is_empty());
        tell(match reading {
            Some(Ok(Choice::Passes(reason))) if !calls_tools => {
                ChannelMessage::Passed { ticket, reason, asked: request, outcome: Box::new(outcome) }
            }
            Some(Err(Nothing::Silence)) if !calls_tools => {
                ChannelMessage::Passed { ticket, reason: None, asked: request, outcome: Box::new(outcome) }
            }
            Some(Err(_)) | None if !calls_tools => {
                ChannelMessage::Answered { ticket, asked: request, outcome: Box::new(outcome) }
            }
            _ => {
                // The tokens are counted with the statement.
                let facts = CallFacts { usage: TokenUsage::default(), ..outcome.facts.clone() };
                ChannelMessage::Speaks { ticket, begun: begun(facts, Box::pin(async move { outcome })) }
            }
        });
    });
    Some(call)
}

/// The beginning of an answer.
struct FirstWords {
    speakers: Arc<Mutex<Speakers>>,
    begins_in_thought: bool,
    raw: String,
    reader: Option<Reader>,
}

impl FirstWords {
    fn push_piece(&mut self, piece: Draft) -> Choice {
        let Draft::More(more) = piece else {
            self.raw.clear();
            self.reader = None;
            return Choice::Undecided;
        };
        let begin = || Reader::new(self.speakers.lock().clone(), self.begins_in_thought);
        let reader = self.reader.get_or_insert_with(begin);
        reader.feed(&more);
        self.raw.push_str(&more);
        choice(reader.words(), false)
    }
}

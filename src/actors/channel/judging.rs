//! Has the side model judge whether companions repeat themselves (docs/design/closing.md C-13).

use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::State;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::models::Outcome;
use crate::actors::models::Question;
use crate::actors::runtime::directory::Address;
use crate::actors::runtime::watchdog::at_work;
use crate::domain::conversation::Input;
use crate::domain::id::{CompanionId, Ticket};
use crate::domain::message::{Message, Modality};
use crate::domain::priority::Priority;
use crate::domain::prompt::{self, Prompt};
use crate::domain::question_context::{Line, Purpose, QuestionContext};
use crate::domain::repetition;
use crate::domain::trigger::Trigger;
use crate::ports::language_model::{self, LazyRequest, ModelRole, NoAnswer, Request};

impl State {
    /// Asks how much the last statements repeat each other, if that judgement is still open.
    pub(super) fn ask_for_judgement(&mut self, ticket: Ticket) {
        if !self.is_judgement_open(ticket) {
            return;
        }
        let messages: Vec<Arc<Message>> = self.conversation.judged_statements().cloned().collect();
        let modality = messages.last().map_or(Modality::Text, |message| message.modality);
        let speaker = CompanionId::from(messages.last().map_or("", |message| &*message.from.id));
        let most = self.context.settings.prompt.max_side_answer_tokens;
        let base_request = Request::new(ModelRole::Side, self.channel_key.guild.clone(), most);
        let (channel_key, context) = (self.channel_key.clone(), self.context.clone());
        let request = LazyRequest::later(base_request, move |base_request| {
            let _at_work = at_work(Address::Companion(channel_key.guild.clone(), speaker.clone())).about(&channel_key, &speaker);
            let messages: Vec<&Message> = messages.iter().map(|message| &**message).collect();
            let Prompt { system, user, sizes } = prompt::judgement(&messages, &context.settings.prompt);
            let newest = Line::newest_of(messages.into_iter());
            let context = QuestionContext { purpose: Purpose::Judgement, chattiness: "".into(), newest };
            Request { messages: language_model::Message::prompt(system, user), sizes, ..base_request }.with(context)
        });
        let (channel, asked) = (self.myself.clone(), request.clone());
        let call = self.context.pool.ask(Question {
            request,
            // Urgent, because the next round waits for it.
            priority: Priority::of(Trigger::Turn, modality),
            deadline: self.context.pool.deadline(ModelRole::Side),
            drafts: None,
            reply_to: Box::new(move |outcome| {
                // A channel that has stopped asks again when it restarts.
                let _ = channel.cast(ChannelMessage::Judged { ticket, asked, outcome: Box::new(outcome) });
            }),
        });
        self.judgement_calls.insert(ticket, call);
        if let Entry::Vacant(first) = self.attempts.entry(ticket) {
            first.insert(0);
            self.wait_for(ticket);
        }
    }

    /// Handles the side model's judgement. Without an answer the score is 0.
    pub(super) fn judged(&mut self, ticket: Ticket, asked: &Request, outcome: Outcome) {
        // Only this channel cancels, and it has noted that before.
        if matches!(outcome.result, Err(NoAnswer::Cancelled)) {
            self.record_unclaimed_usage(asked, &outcome);
            return;
        }
        self.judgement_calls.remove(&ticket);
        if outcome.is_lost() && self.is_judgement_open(ticket) {
            self.question_lost(ticket);
            return;
        }
        self.attempts.remove(&ticket);
        if !self.is_judgement_open(ticket) {
            self.record_unclaimed_usage(asked, &outcome);
            return;
        }
        self.note_usage(asked, &outcome);
        self.traces.called(ticket, asked, &outcome, &self.channel_key, &self.context);
        let (score, call) = match &outcome.result {
            Ok(answer) => {
                let call = self.traces.call(ticket, asked, &answer.text(), &outcome.facts);
                (repetition::read_score(&answer.text()), Some(Box::new(call)))
            }
            Err(error) => {
                self.traces.record_judgement_error(error.code());
                (0.0, None)
            }
        };
        self.step(Input::Judged { ticket, score, call });
    }

    pub(super) fn is_judgement_open(&self, ticket: Ticket) -> bool {
        self.conversation.open_judgement().is_some_and(|(open, _)| open == ticket)
    }
}

//! A reply in the making: asks the main model and hands the words to its channel. Killing it cancels the call.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::channel::ChannelMessage;
use super::companion::{character, persona, repetition_note};
use super::directory::{Address, Sort};
use super::hub::{Hub, Live};
use super::kit::Kit;
use super::side_models::{Outcome, Priority, Wording, asked_again_after};
use super::watchdog::at_work;
use crate::domain::closing::Stage;
use crate::domain::id::{CompanionId, Ticket};
use crate::domain::message::{Message, Modality};
use crate::domain::prompt::{self, StatementParts};
use crate::domain::statement::clean_statement;
use crate::domain::trigger::Trigger;
use crate::journal::place::Place;
use crate::ports::language_model::{Draft, Line, ModelRole, Purpose, Request};
use crate::settings::companion::Companion as Settings;
use crate::telemetry::instruments::kinds::Counted;

/// The actor.
pub struct Reply;

/// Everything that a statement is made from.
pub struct Arguments {
    /// Where.
    pub place: Place,
    /// The reply's number.
    pub ticket: Ticket,
    /// What it answers to.
    pub trigger: Trigger,
    /// How near its end the speaker sees the conversation.
    pub closing: Stage,
    /// Typed or spoken.
    pub modality: Modality,
    /// Why the companion decided to speak, in its own words.
    pub why: Option<Arc<str>>,
    /// Messages since it spoke last, at the decision.
    pub message_count: u64,
    /// Who said the newest of what it answers.
    pub speaker: Option<Arc<str>>,
    /// Whether the last messages were judged to repeat each other.
    pub is_repetitive: bool,
    /// The rolling summary.
    pub summary: Option<Arc<str>>,
    /// The most recent turns before the snapshot, oldest first.
    pub recent: Vec<Arc<Message>>,
    /// What it answers, and what the companion said itself meanwhile, oldest first.
    pub snapshot: Vec<Arc<Message>>,
    /// The companion as it is in that channel.
    pub settings: Arc<Settings>,
    /// Who gets the words.
    pub channel: ActorRef<ChannelMessage>,
    /// What it works with.
    pub kit: Kit,
}

/// What a reply is told, by itself.
pub struct Write;

/// What it keeps.
pub struct State {
    reply: Arguments,
    _counted: Counted,
}

impl Actor for Reply {
    type Msg = Write;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<Write>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        myself.cast(Write)?;
        let counted = arguments.kit.recorder.instruments().actors.one([Sort::Reply.as_str()]);
        Ok(State { reply: arguments, _counted: counted })
    }

    async fn handle(&self, myself: ActorRef<Write>, _: Write, state: &mut State) -> Result<(), ActorProcessingErr> {
        let reply = &state.reply;
        let request = {
            let address = Address::Reply(reply.place.channel.clone(), reply.ticket);
            let _at_work = at_work(address).about(&reply.place, &reply.settings.id);
            Arc::new(Wording::from(worded(reply)))
        };
        let priority = Priority::of(reply.trigger, reply.modality);
        let deadline = reply.kit.pool.deadline(ModelRole::Main);
        let _typing = show_typing(reply);
        let drafts = reply.kit.hub.is_watched(&reply.place).then(|| show_drafts(reply));
        let mut losses = 0;
        let outcome = loop {
            let (channel, asked) = (reply.channel.clone(), request.clone());
            // One that is killed has cost something all the same. A channel that is gone counts nothing.
            let unclaimed = move |outcome| drop(channel.cast(ChannelMessage::Unclaimed { asked, outcome: Box::new(outcome) }));
            let pool = &reply.kit.pool;
            let outcome = pool.answer_or(request.clone(), priority, deadline, drafts.clone(), unclaimed).await;
            losses += 1;
            let pause = asked_again_after(losses);
            // Until its deadline.
            if !outcome.is_lost() || Instant::now() + pause >= deadline {
                break outcome;
            }
            // Whoever watches sees the text begin anew; one who is gone does not.
            drop(drafts.as_ref().map(|drafts| drafts.send(Draft::Anew)));
            tokio::time::sleep(pause).await;
        };
        drop(drafts);
        let Outcome { result, facts } = outcome;
        let text = match &result {
            Ok(answer) => clean_statement(&answer.text, &reply.settings.name).map(Into::into).ok_or("empty"),
            Err(error) => Err(error.code()),
        };
        let ended = ChannelMessage::ReplyEnded {
            ticket: reply.ticket,
            text: text.map_err(Into::into),
            asked: request,
            outcome: Box::new(Outcome { result, facts }),
        };
        reply.channel.cast(ended)?;
        myself.stop(None);
        Ok(())
    }
}

fn worded(reply: &Arguments) -> Request {
    let recent: Vec<&Message> = reply.recent.iter().map(|message| &**message).collect();
    let snapshot: Vec<&Message> = reply.snapshot.iter().map(|message| &**message).collect();
    let words = &reply.kit.settings.prompt;
    let notes = [prompt::closing_note(reply.closing, words), repetition_note(reply.is_repetitive, words)];
    let prompt = prompt::statement(
        &StatementParts {
            character: character(&reply.settings),
            trigger: reply.trigger,
            message_count: reply.message_count,
            speaker: reply.speaker.as_deref(),
            reason: reply.why.as_deref(),
            summary: reply.summary.as_deref(),
            recent: &recent,
            snapshot: &snapshot,
            notes: &notes.into_iter().flatten().collect::<Vec<_>>(),
        },
        words,
    );
    Request {
        role: ModelRole::Main,
        purpose: Purpose::Statement { trigger: reply.trigger, closing: reply.closing },
        companion: Some(persona(&reply.settings)),
        guild: reply.place.guild.clone(),
        system: prompt.system,
        user: prompt.user,
        sizes: prompt.sizes,
        newest: Line::newest_of(recent.iter().chain(&snapshot).copied()),
        max_tokens: words.max_main_answer_tokens,
    }
}

/// Shows that somebody is writing, where the platform has a sign for it, until this is dropped.
fn show_typing(reply: &Arguments) -> Option<Typing> {
    let platform = reply.kit.platforms.of(&reply.place.channel)?.clone();
    let shows = platform.capabilities().typing_shows?;
    let place = reply.place.clone();
    let signs = tokio::spawn(async move {
        loop {
            platform.typing(&place.guild, &place.channel).await;
            // A little earlier than it fades.
            tokio::time::sleep(shows.mul_f64(0.8)).await;
        }
    });
    Some(Typing(signs.abort_handle()))
}

struct Typing(tokio::task::AbortHandle);

impl Drop for Typing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Shows the words as they come to whoever watches, until the call is over.
fn show_drafts(reply: &Arguments) -> mpsc::UnboundedSender<Draft> {
    let (sender, mut pieces) = mpsc::unbounded_channel();
    let (hub, place, kit) = (reply.kit.hub.clone(), reply.place.clone(), reply.kit.clone());
    let (companion, ticket) = (reply.settings.id.clone(), reply.ticket);
    tokio::spawn(async move {
        let mut text = String::new();
        while let Some(piece) = pieces.recv().await {
            take(&mut text, piece);
            while let Ok(piece) = pieces.try_recv() {
                take(&mut text, piece);
            }
            show(&hub, &place, &kit, &companion, ticket, &text);
        }
    });
    sender
}

fn take(text: &mut String, piece: Draft) {
    match piece {
        Draft::More(more) => text.push_str(&more),
        Draft::Anew => text.clear(),
    }
}

fn show(hub: &Hub, place: &Place, kit: &Kit, companion: &CompanionId, ticket: Ticket, text: &str) {
    let draft = json!({
        "event": "draft",
        "at": crate::ports::house::stamp::rfc3339(kit.clock.now()),
        "channel": place.channel,
        "companion": companion,
        "ticket": ticket,
        "text": text,
    });
    hub.publish(place, Live::Note(draft.to_string().into()));
}

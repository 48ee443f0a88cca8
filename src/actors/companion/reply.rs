//! A reply in the making: asks the main model in its companion's words, and hands what comes to its channel. Killing it cancels the call.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::actors::companion::{asker, character, repetition_note};
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::{CompanionMessage, Speak, Statement, Words};
use crate::actors::messages::models::Outcome;
use crate::actors::models::asked_again_after;
use crate::actors::runtime::actor_keys::CompanionKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::{Address, Sort};
use crate::actors::runtime::hub::{Hub, Live};
use crate::actors::runtime::watchdog::at_work;
use crate::domain::id::{CompanionId, GuildId, Ticket};
use crate::domain::message::Message;
use crate::domain::priority::Priority;
use crate::domain::prompt::{self, StatementParts};
use crate::domain::question_context::{Line, Purpose, QuestionContext};
use crate::domain::statement::clean_statement;
use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::clock::Clock;
use crate::ports::language_model::{self, Draft, LazyRequest, ModelRole, Request};
use crate::settings;
use crate::settings::companion::Companion as Settings;
use crate::telemetry::instruments::kinds::Counted;

/// The actor.
pub struct Reply;

/// Everything that a statement is made from.
pub struct Arguments {
    /// Where.
    pub channel_key: ChannelKey,
    /// The reply's number.
    pub ticket: Ticket,
    /// Who speaks.
    pub companion: CompanionId,
    /// What it is made from.
    pub statement: Arc<Statement>,
    /// Who gets the words.
    pub channel: ActorRef<ChannelMessage>,
    /// What it works with.
    pub context: ActorContext,
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
        let counted = arguments.context.recorder.instruments().actors.one([Sort::Reply.as_str()]);
        Ok(State { reply: arguments, _counted: counted })
    }

    async fn handle(&self, myself: ActorRef<Write>, _: Write, state: &mut State) -> Result<(), ActorProcessingErr> {
        let reply = &state.reply;
        let priority = Priority::of(reply.statement.trigger, reply.statement.modality);
        let deadline = reply.context.pool.deadline(ModelRole::Main);
        let Some(Words { name, request }) = words(reply, deadline).await else {
            // Its channel begins it again while there is hope.
            myself.stop(None);
            return Ok(());
        };
        let request = {
            let address = Address::Reply(reply.channel_key.channel.clone(), reply.ticket);
            let _at_work = at_work(address).about(&reply.channel_key, &reply.companion);
            Arc::new(LazyRequest::from(request()))
        };
        let _typing = show_typing(reply);
        let drafts = reply.context.hub.is_watched(&reply.channel_key).then(|| show_drafts(reply));
        let mut losses = 0;
        let outcome = loop {
            let (channel, asked) = (reply.channel.clone(), request.clone());
            // One that is killed has cost something all the same. A channel that is gone counts nothing.
            let unclaimed = move |outcome| drop(channel.cast(ChannelMessage::Unclaimed { asked, outcome: Box::new(outcome) }));
            let pool = &reply.context.pool;
            let outcome = pool.answer_or(request.clone(), priority, deadline, drafts.clone(), unclaimed).await;
            losses += 1;
            let pause = asked_again_after(losses);
            // Until its deadline.
            if !outcome.is_lost() || Instant::now() + pause >= deadline {
                break outcome;
            }
            // Whoever watches sees the text begin anew; one who is gone does not.
            drop(drafts.as_ref().map(|drafts| drafts.send(Draft::Restart)));
            tokio::time::sleep(pause).await;
        };
        drop(drafts);
        let Outcome { result, facts } = outcome;
        let text = match &result {
            Ok(answer) => clean_statement(&answer.text(), &name).map(Into::into).ok_or("empty"),
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

/// Gets its words from the companion, and asks again for those that are lost with it. None: it is configured no more, or did not answer in
/// time.
async fn words(reply: &Arguments, deadline: Instant) -> Option<Words> {
    let at = CompanionKey(reply.channel_key.guild.clone(), reply.companion.clone());
    let mut losses = 0;
    loop {
        let (sender, words) = oneshot::channel();
        let speak = Speak { channel_key: reply.channel_key.clone(), statement: reply.statement.clone(), words: sender };
        if let Some(companion) = reply.context.directory.find(&at) {
            let _ = companion.cast(CompanionMessage::Word(Box::new(speak)));
            if let Ok(Ok(words)) = tokio::time::timeout_at(deadline, words).await {
                return Some(words);
            }
        }
        reply.context.memberships.companion(&reply.channel_key.channel, &reply.companion)?;
        losses += 1;
        let pause = asked_again_after(losses);
        if Instant::now() + pause >= deadline {
            return None;
        }
        tokio::time::sleep(pause).await;
    }
}

/// Words the request for a statement.
pub(super) fn worded(statement: &Statement, settings: &Settings, guild: GuildId, words: &settings::prompt::Prompt) -> Request {
    let recent: Vec<&Message> = statement.recent.iter().map(|message| &**message).collect();
    let snapshot: Vec<&Message> = statement.snapshot.iter().map(|message| &**message).collect();
    let notes = [prompt::closing_note(statement.closing, words), repetition_note(statement.is_repetitive, words)];
    let prompt = prompt::statement(
        &StatementParts {
            character: character(settings),
            trigger: statement.trigger,
            message_count: statement.message_count,
            speaker: statement.speaker.as_deref(),
            reason: statement.why.as_deref(),
            summary: statement.summary.as_deref(),
            recent: &recent,
            snapshot: &snapshot,
            notes: &notes.into_iter().flatten().collect::<Vec<_>>(),
        },
        words,
    );
    let request = Request {
        model: settings.model.main.clone(),
        companion: Some(asker(settings)),
        messages: language_model::Message::prompt(prompt.system, prompt.user),
        sizes: prompt.sizes,
        ..Request::new(ModelRole::Main, guild, words.max_main_answer_tokens)
    };
    request.with(QuestionContext {
        purpose: Purpose::Statement { trigger: statement.trigger, closing: statement.closing },
        chattiness: settings.chattiness.clone(),
        newest: Line::newest_of(recent.iter().chain(&snapshot).copied()),
    })
}

/// Shows that somebody is writing, where the platform has a sign for it, until this is dropped.
fn show_typing(reply: &Arguments) -> Option<Typing> {
    let platform = reply.context.platforms.of(&reply.channel_key.channel)?.clone();
    let shows = platform.capabilities().typing_shows?;
    let channel_key = reply.channel_key.clone();
    let signs = tokio::spawn(async move {
        loop {
            platform.typing(&channel_key.guild, &channel_key.channel).await;
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
    let mut shown = Shown {
        hub: reply.context.hub.clone(),
        clock: reply.context.clock.clone(),
        channel_key: reply.channel_key.clone(),
        companion: reply.companion.clone(),
        ticket: reply.ticket,
        text: String::new(),
        told: None,
    };
    tokio::spawn(async move {
        while let Some(piece) = pieces.recv().await {
            shown.take(piece);
            while let Ok(piece) = pieces.try_recv() {
                shown.take(piece);
            }
            shown.show();
        }
    });
    sender
}

/// A draft as far as whoever watches was told of it.
struct Shown {
    hub: Hub,
    clock: Arc<dyn Clock>,
    channel_key: ChannelKey,
    companion: CompanionId,
    ticket: Ticket,
    text: String,
    /// How much of the text was told, in bytes, and who the newest watcher was then. None where they have to be told the whole.
    told: Option<(usize, u64)>,
}

impl Shown {
    fn take(&mut self, piece: Draft) {
        match piece {
            Draft::More(more) => self.text.push_str(&more),
            Draft::Restart => {
                self.text.clear();
                self.told = None;
            }
        }
    }

    /// Tells what came since the last time; to everybody the whole text if somebody has come who was told nothing of it.
    fn show(&mut self) {
        let Some(newest) = self.hub.newest_watcher(&self.channel_key) else {
            self.told = None;
            return;
        };
        let told = self.told.filter(|(_, known)| *known == newest).map(|(told, _)| told);
        let draft = json!({
            "event": "draft",
            "at": rfc3339(self.clock.now()),
            "channel": self.channel_key.channel,
            "companion": self.companion,
            "ticket": self.ticket,
            "whole": told.is_none(),
            "text": &self.text[told.unwrap_or(0)..],
        });
        self.hub.publish(&self.channel_key, Live::Note(draft.to_string().into()));
        self.told = Some((self.text.len(), newest));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::actors::runtime::hub::Watcher;
    use crate::adapters::system::SystemClock;

    fn shown(hub: &Hub, channel_key: &ChannelKey) -> Shown {
        let (hub, channel_key) = (hub.clone(), channel_key.clone());
        Shown {
            hub,
            clock: Arc::new(SystemClock),
            channel_key,
            companion: "aria".into(),
            ticket: Ticket(3),
            text: String::new(),
            told: None,
        }
    }

    async fn next(watcher: &mut Watcher) -> (bool, String) {
        let Live::Note(json) = watcher.next().await.unwrap() else { panic!("a draft is not on record") };
        let told: Value = serde_json::from_str(&json).unwrap();
        (told["whole"].as_bool().unwrap(), told["text"].as_str().unwrap().to_owned())
    }

    fn says(shown: &mut Shown, more: &str) {
        shown.take(Draft::More(more.into()));
        shown.show();
    }

    #[tokio::test]
    async fn who_watches_is_told_what_came_and_who_joins_later_the_whole() {
        let (hub, channel_key) = (Hub::new(), ChannelKey::new(&"home".into(), &"lobby".into()));
        let mut first = hub.watch(&channel_key);
        let mut shown = shown(&hub, &channel_key);

        says(&mut shown, "Once");
        says(&mut shown, " upön");
        let mut second = hub.watch(&channel_key);
        says(&mut shown, " a");
        says(&mut shown, " time");
        shown.take(Draft::Restart);
        says(&mut shown, "No");

        for (whole, text) in [(true, "Once"), (false, " upön")] {
            assert_eq!(next(&mut first).await, (whole, text.to_owned()));
        }
        for (whole, text) in [(true, "Once upön a"), (false, " time"), (true, "No")] {
            assert_eq!(next(&mut first).await, (whole, text.to_owned()));
            assert_eq!(next(&mut second).await, (whole, text.to_owned()));
        }
    }

    #[tokio::test]
    async fn who_comes_back_after_nobody_watched_is_told_the_whole() {
        let (hub, channel_key) = (Hub::new(), ChannelKey::new(&"home".into(), &"lobby".into()));
        let mut shown = shown(&hub, &channel_key);
        let first = hub.watch(&channel_key);
        says(&mut shown, "Once");
        drop(first);

        let mut second = hub.watch(&channel_key);
        says(&mut shown, " more");

        assert_eq!(next(&mut second).await, (true, "Once more".to_owned()));
    }
}

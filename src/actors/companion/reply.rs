//! Writes a reply: asks the main model with the companion's prompt, and sends the result to the channel. Killing the actor cancels the call.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::actors::companion::history::{self, History};
use crate::actors::companion::scene::scene;
use crate::actors::companion::speaking::Speaking;
use crate::actors::companion::{asker, character};
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::{CompanionMessage, Source, Statement};
use crate::actors::messages::models::Outcome;
use crate::actors::models::pause_before_asking_again;
use crate::actors::runtime::actor_keys::CompanionKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::{Address, Sort};
use crate::actors::runtime::hub::{Hub, Live};
use crate::actors::runtime::watchdog::at_work;
use crate::domain::id::{CompanionId, GuildId, Ticket};
use crate::domain::message::Modality;
use crate::domain::priority::Priority;
use crate::domain::prompt::{self, Scene, StatementParts};
use crate::domain::question_context::{Line, Purpose, QuestionContext};
use crate::domain::statement::clean_statement;
use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::clock::Clock;
use crate::ports::language_model::{Draft, LazyRequest, ModelRole, NoAnswer, Request};
use crate::settings;
use crate::settings::companion::Companion as Settings;
use crate::telemetry::instruments::kinds::Counted;

pub struct Reply;

pub struct Arguments {
    pub channel_key: ChannelKey,
    pub ticket: Ticket,
    pub companion: CompanionId,
    pub priority: Priority,
    /// Whether it is spoken in a voice call.
    pub is_spoken: bool,
    /// The inputs of the prompt.
    pub statement: Source<Statement>,
    /// Receives [`ChannelMessage::ReplyEnded`].
    pub channel: ActorRef<ChannelMessage>,
    pub context: ActorContext,
}

/// The one message of a reply, which it sends to itself.
pub struct Write;

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
        let (priority, is_spoken) = (reply.priority, reply.is_spoken);
        let deadline = reply.context.pool.deadline(ModelRole::Main);
        let Some(settings) = settings(reply, deadline).await else {
            // The channel starts the reply again, up to its limit.
            myself.stop(None);
            return Ok(());
        };
        let name = settings.name.clone();
        let request = lazy_request(reply, settings);
        // While words are being redacted, it takes no place at the model.
        drop(history::lock(&reply.context, &reply.channel_key).await);
        let _typing = (!is_spoken).then(|| show_typing(reply));
        // What is spoken is shown when it is heard.
        let (mut speaking, drafts) = if is_spoken {
            let (drafts, pieces) = mpsc::unbounded_channel();
            (Some(Speaking::new(reply.channel.clone(), reply.ticket, &name, pieces)), Some(drafts))
        } else {
            (None, reply.context.hub.is_watched(&reply.channel_key).then(|| show_drafts(reply)))
        };
        let mut losses = 0;
        let outcome = loop {
            let (channel, asked) = (reply.channel.clone(), request.clone());
            // The call of a killed reply has used tokens, too. A channel that has stopped does not count them.
            let unclaimed = move |outcome| drop(channel.cast(ChannelMessage::Unclaimed { asked, outcome: Box::new(outcome) }));
            let pool = &reply.context.pool;
            let answer = pool.answer_or(request.clone(), priority, deadline, drafts.clone(), unclaimed);
            let outcome = match &mut speaking {
                Some(speaking) => speaking.until(answer).await,
                None => answer.await,
            };
            losses += 1;
            let pause = pause_before_asking_again(losses);
            // A question that the pool lost is asked again, until the deadline.
            if !outcome.is_lost() || Instant::now() + pause >= deadline {
                break outcome;
            }
            // Watchers see the draft start again. The receiver may have stopped.
            drop(drafts.as_ref().map(|drafts| drafts.send(Draft::Restart)));
            tokio::time::sleep(pause).await;
        };
        drop(drafts);
        let Outcome { result, facts } = outcome;
        let has_lost = speaking.as_ref().is_some_and(Speaking::has_lost);
        if let Some(speaking) = speaking.filter(|_| result.is_ok()) {
            speaking.finish();
        }
        let text = match &result {
            Ok(answer) => clean_statement(&answer.text(), &name).map(Into::into).ok_or("empty"),
            // The rest was cancelled because its beginning was lost.
            Err(NoAnswer::Cancelled) if has_lost => Err("unreachable"),
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

/// Gets the companion's settings from it, and asks again if the companion dies. `None`: the companion is no longer configured, or did not answer
/// in time.
async fn settings(reply: &Arguments, deadline: Instant) -> Option<Arc<Settings>> {
    let at = CompanionKey(reply.channel_key.guild.clone(), reply.companion.clone());
    let mut losses = 0;
    loop {
        let (sender, receiver) = oneshot::channel();
        if let Some(companion) = reply.context.directory.find(&at) {
            let channel = reply.channel_key.channel.clone();
            let _ = companion.cast(CompanionMessage::SettingsIn { channel, settings: sender });
            if let Ok(Ok(settings)) = tokio::time::timeout_at(deadline, receiver).await {
                return Some(settings);
            }
        }
        reply.context.memberships.companion(&reply.channel_key.channel, &reply.companion)?;
        losses += 1;
        let pause = pause_before_asking_again(losses);
        if Instant::now() + pause >= deadline {
            return None;
        }
        tokio::time::sleep(pause).await;
    }
}

/// The request for the statement, whose prompt is built when the pool takes it up.
fn lazy_request(reply: &Arguments, settings: Arc<Settings>) -> Arc<LazyRequest> {
    let base = base_request(&settings, reply.channel_key.guild.clone(), &reply.context.settings.prompt);
    let (channel_key, ticket) = (reply.channel_key.clone(), reply.ticket);
    let (context, source) = (Arc::new(reply.context.clone()), reply.statement.clone());
    LazyRequest::later(base, move || {
        let (channel_key, settings) = (channel_key.clone(), settings.clone());
        let (context, source) = (context.clone(), source.clone());
        async move {
            let statement = with_history(&context, &channel_key, &source).await?;
            let address = Address::Reply(channel_key.channel.clone(), ticket);
            let _at_work = at_work(address).about(&channel_key, &settings.id);
            let scene = scene(&context, &channel_key, &settings.id, statement.is_spoken || statement.modality == Modality::Voice);
            Some(statement_request(&statement, &settings, &scene, channel_key.guild.clone(), &context.settings.prompt))
        }
    })
}

/// The inputs of the prompt with all that was said before, as far as the prompt has room. If it cannot be read, with the
/// most recent messages only. `None`: the reply is no longer owed.
async fn with_history(context: &ActorContext, channel_key: &ChannelKey, source: &Source<Statement>) -> Option<Statement> {
    let lock = history::lock(context, channel_key).await;
    let statement = source().await?;
    let max_tokens = context.settings.prompt.statement_tokens;
    let read = match lock {
        Some(_) => history::read(context, channel_key, &statement.history, statement.summary_upto, max_tokens).await,
        None => None,
    };
    Some(match read {
        Some(History { messages, left_out }) => Statement { recent: messages, left_out, ..statement },
        None => statement,
    })
}

/// The request for a statement, with its prompt.
pub(super) fn statement_request(
    statement: &Statement,
    settings: &Settings,
    scene: &Scene,
    guild: GuildId,
    templates: &settings::prompt::Prompt,
) -> Request {
    let prompt = prompt::statement(
        &StatementParts {
            character: character(settings, None),
            scene,
            trigger: statement.trigger,
            stage: statement.closing,
            message_count: statement.message_count,
            minutes: statement.minutes,
            speaker: statement.speaker.as_deref(),
            reason: statement.why.as_deref(),
            summary: statement.summary.as_deref(),
            summary_upto: statement.summary_upto,
            recent: &statement.recent,
            left_out: statement.left_out,
            snapshot: &statement.snapshot,
            is_repetitive: statement.is_repetitive && settings.repetition,
            is_spoken: statement.is_spoken,
        },
        templates,
    );
    let shown = statement.recent.iter().chain(&statement.snapshot).map(|said| &*said.message);
    base_request(settings, guild, templates).asking(prompt).with(QuestionContext {
        purpose: Purpose::Statement { trigger: statement.trigger, closing: statement.closing, tries: statement.tries },
        chattiness: settings.chattiness.clone(),
        newest: Line::newest_of(shown),
    })
}

/// The request for a statement without its prompt.
fn base_request(settings: &Settings, guild: GuildId, templates: &settings::prompt::Prompt) -> Request {
    Request {
        model: settings.model.main.clone(),
        companion: Some(asker(settings)),
        ..Request::new(ModelRole::Main, guild, templates.max_main_answer_tokens)
    }
}

/// Shows a typing indicator, if the platform has one, until the returned value is dropped.
fn show_typing(reply: &Arguments) -> Option<Typing> {
    let platform = reply.context.platforms.of(&reply.channel_key.channel)?.clone();
    let shows = platform.capabilities().typing_shows?;
    let channel_key = reply.channel_key.clone();
    let signs = tokio::spawn(async move {
        loop {
            platform.typing(&channel_key.guild, &channel_key.channel).await;
            // Renewed a little before the indicator disappears.
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

/// Publishes the growing draft to the watchers of the channel, until the call is over.
fn show_drafts(reply: &Arguments) -> mpsc::UnboundedSender<Draft> {
    let (sender, mut pieces) = mpsc::unbounded_channel();
    let mut shown = DraftView {
        hub: reply.context.hub.clone(),
        clock: reply.context.clock.clone(),
        channel_key: reply.channel_key.clone(),
        companion: reply.companion.clone(),
        ticket: reply.ticket,
        text: String::new(),
        published: None,
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

/// A draft, and how much of it was published.
struct DraftView {
    hub: Hub,
    clock: Arc<dyn Clock>,
    channel_key: ChannelKey,
    companion: CompanionId,
    ticket: Ticket,
    text: String,
    /// How many bytes of the text were published, and the number of the newest watcher then. `None`: the whole text must be published.
    published: Option<(usize, u64)>,
}

impl DraftView {
    fn take(&mut self, piece: Draft) {
        match piece {
            Draft::More(more) => self.text.push_str(&more),
            Draft::Restart => {
                self.text.clear();
                self.published = None;
            }
        }
    }

    /// Publishes the text since the last time. If a watcher has joined since then, publishes the whole text to all watchers.
    fn show(&mut self) {
        let Some(newest) = self.hub.newest_watcher(&self.channel_key) else {
            self.published = None;
            return;
        };
        let published = self.published.filter(|(_, known)| *known == newest).map(|(published, _)| published);
        let draft = json!({
            "event": "draft",
            "at": rfc3339(self.clock.now()),
            "channel": self.channel_key.channel,
            "companion": self.companion,
            "ticket": self.ticket,
            "whole": published.is_none(),
            "text": &self.text[published.unwrap_or(0)..],
        });
        self.hub.publish(&self.channel_key, Live::Note(draft.to_string().into()));
        self.published = Some((self.text.len(), newest));
    }
}

#[cfg(test)]
mod tests {
    use crate::samples::lobby;
    use serde_json::Value;

    use super::*;
    use crate::actors::runtime::hub::Watcher;
    use crate::adapters::system::SystemClock;

    fn shown(hub: &Hub, channel_key: &ChannelKey) -> DraftView {
        let (hub, channel_key) = (hub.clone(), channel_key.clone());
        DraftView {
            hub,
            clock: Arc::new(SystemClock),
            channel_key,
            companion: "aria".into(),
            ticket: Ticket(3),
            text: String::new(),
            published: None,
        }
    }

    async fn next(watcher: &mut Watcher) -> (bool, String) {
        let Live::Note(json) = watcher.next().await.unwrap() else { panic!("a draft is published as a note") };
        let note: Value = serde_json::from_str(&json).unwrap();
        (note["whole"].as_bool().unwrap(), note["text"].as_str().unwrap().to_owned())
    }

    fn add_and_show(shown: &mut DraftView, more: &str) {
        shown.take(Draft::More(more.into()));
        shown.show();
    }

    #[tokio::test]
    async fn watchers_get_new_text_and_those_who_join_later_get_the_whole() {
        let (hub, channel_key) = (Hub::new(), lobby());
        let mut first = hub.watch(&channel_key);
        let mut shown = shown(&hub, &channel_key);

        add_and_show(&mut shown, "Once");
        add_and_show(&mut shown, " upön");
        let mut second = hub.watch(&channel_key);
        add_and_show(&mut shown, " a");
        add_and_show(&mut shown, " time");
        shown.take(Draft::Restart);
        add_and_show(&mut shown, "No");

        for (whole, text) in [(true, "Once"), (false, " upön")] {
            assert_eq!(next(&mut first).await, (whole, text.to_owned()));
        }
        for (whole, text) in [(true, "Once upön a"), (false, " time"), (true, "No")] {
            assert_eq!(next(&mut first).await, (whole, text.to_owned()));
            assert_eq!(next(&mut second).await, (whole, text.to_owned()));
        }
    }

    #[tokio::test]
    async fn a_watcher_who_comes_after_nobody_watched_gets_the_whole_draft() {
        let (hub, channel_key) = (Hub::new(), lobby());
        let mut shown = shown(&hub, &channel_key);
        let first = hub.watch(&channel_key);
        add_and_show(&mut shown, "Once");
        drop(first);

        let mut second = hub.watch(&channel_key);
        add_and_show(&mut shown, " more");

        assert_eq!(next(&mut second).await, (true, "Once more".to_owned()));
    }
}

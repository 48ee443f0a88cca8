//! The real delivery actor, with a store for its record and the test double as Discord.

use std::collections::BTreeMap;
use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use serde_json::json;
use tertulia::actors::channel::delivery::{Arguments, Delivery};
use tertulia::actors::messages::channel::{ChannelMessage, Delivered};
use tertulia::actors::models::Models;
use tertulia::actors::runtime::context::{ActorContext, Environment};
use tertulia::actors::runtime::root::Root;
use tertulia::adapters::discord::platform::Discord;
use tertulia::adapters::llm;
use tertulia::adapters::store::memory::MemoryStore;
use tertulia::adapters::system::{SystemClock, SystemRng};
use tertulia::domain::id::{Seq, Ticket};
use tertulia::domain::moment::Moment;
use tertulia::domain::notice::{Occasion, Owed};
use tertulia::domain::trigger::Trigger;
use tertulia::journal::channel_key::ChannelKey;
use tertulia::journal::record::{NoticeRecord, OutboxRecord, Written};
use tertulia::ports::chat_platform::{Part, Platforms};
use tertulia::ports::language_model::ModelRole;
use tertulia::server::speech::built_in;
use tertulia::settings::Settings;
use tertulia::telemetry::recorder::Recorder;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::super::counterpart::{Author, Does, Intents, On};
use super::super::home::{Home, part};
use super::client_with;
use crate::harness::PATIENCE;

#[tokio::test]
async fn a_statement_whose_responses_are_lost_is_posted_once_and_reported_with_its_ids() {
    let Home { discord, general, .. } = Home::new().await;
    let client = client_with(&discord, |section| section.request_timeout_secs = 1.0);
    let execute = On::route("execute_webhook");
    discord.spoil_next(1, execute.clone(), Does::CutAfterwards);
    discord.spoil_next(1, execute.clone(), Does::Cut);
    discord.spoil_next(1, execute, Does::Status(502));
    let text = format!("{}\n\n{}", "One thing. ".repeat(150).trim(), "Another thing. ".repeat(120).trim());

    let delivered = deliver(client, &part(general, &text)).await;

    let posts = discord.posts();
    let ids: Vec<Arc<str>> = posts.iter().map(|post| post.message.to_string().into()).collect();
    assert_eq!(
        delivered,
        Delivered {
            text: text.as_str().into(),
            ids,
            is_unconfirmed: false,
            error: None,
            disclosed: None,
            written: Written::default()
        }
    );
    assert_eq!(discord.requests("execute_webhook"), 4);
    let contents: Vec<_> = posts.iter().map(|post| post.content.as_str()).collect();
    assert_eq!(contents, text.split("\n\n").collect::<Vec<_>>());
}

#[tokio::test]
async fn a_posted_statement_is_found_long_before_its_request_times_out() {
    let Home { discord, general, .. } = Home::new().await;
    // Longer than this test takes.
    let client = client_with(&discord, |section| section.request_timeout_secs = 120.0);
    discord.spoil_next(1, On::route("execute_webhook"), Does::CutAfterwards);

    let delivered = deliver(client, &part(general, "Here I am.")).await;

    let ids: Vec<Arc<str>> = discord.posts().iter().map(|post| post.message.to_string().into()).collect();
    assert_eq!((delivered.ids, delivered.error, ids.len()), (ids.clone(), None, 1));
    assert_eq!(discord.requests("execute_webhook"), 1);
}

#[tokio::test]
async fn without_the_content_intent_a_statement_whose_response_is_lost_is_posted_once_and_reported_with_its_id() {
    let Home { discord, general, .. } = Home::new().await;
    discord.set_privileged(Intents::empty());
    let client = client_with(&discord, |section| section.request_timeout_secs = 1.0);
    discord.spoil_next(1, On::route("execute_webhook"), Does::CutAfterwards);

    let delivered = deliver(client, &part(general, "Here I am.")).await;

    let posts = discord.posts();
    let ids: Vec<Arc<str>> = posts.iter().map(|post| post.message.to_string().into()).collect();
    assert_eq!(
        (posts.len(), delivered),
        (
            1,
            Delivered {
                text: "Here I am.".into(),
                ids,
                is_unconfirmed: false,
                error: None,
                disclosed: None,
                written: Written::default()
            }
        )
    );
}

#[tokio::test]
async fn a_notice_stands_in_small_print_below_the_statement_or_alone_and_is_found() {
    let Home { discord, general, bot, .. } = Home::new().await;
    let client = client_with(&discord, |section| section.request_timeout_secs = 1.0);
    discord.spoil_next(1, On::route("execute_webhook"), Does::CutAfterwards);
    let notice = "You are talking with AI here. It is run by @everyone. Privacy: https://club.example/privacy";

    let delivered = deliver(client.clone(), &Part { notice: Some(notice.into()), ..part(general, "Here I am.") }).await;
    discord.spoil_next(1, On::route("create_message"), Does::CutAfterwards);
    let spoken = deliver(client, &Part { notice: Some(notice.into()), ..part(general, "") }).await;

    let [post, alone] = &discord.posts()[..] else { panic!("two messages: {:?}", discord.posts()) };
    let line = "-# \u{24d8} You are talking with AI here. It is run by @\u{200b}everyone. Privacy: https://club.example/privacy";
    assert_eq!(post.content, format!("Here I am.\n{line}"));
    assert_eq!((&*delivered.text, delivered.disclosed), ("Here I am.", Some((told(), post.message.to_string().into()))));
    assert_eq!((alone.content.trim(), matches!(alone.author, Author::User(user) if user == bot)), (line, true));
    assert_eq!((spoken.ids, spoken.disclosed), (Vec::new(), Some((told(), alone.message.to_string().into()))));
}

fn told() -> Owed {
    Owed { people: vec!["discord:7".into()], occasion: Occasion::First, again: false }
}

/// Delivers a statement with a whole actor system, and returns what the channel receives.
async fn deliver(platform: Arc<Discord>, part: &Part) -> Delivered {
    let context = context(Platforms::default().with(platform));
    let (root, system) = Root::spawn(None, Root, context.clone()).await.expect("the system starts");
    let (sender, mut reports) = mpsc::unbounded_channel();
    let (channel, _) = FakeChannel::spawn(None, FakeChannel, sender).await.expect("the channel starts");
    let (_stop_sender, stop) = watch::channel(false);
    let owed = OutboxRecord::new(part.companion.clone(), Trigger::DirectAddress, Vec::new(), Seq(0));
    let outbox_record = OutboxRecord {
        text: Some(part.text.clone()),
        notice: part.notice.clone().map(|text| NoticeRecord { owed: told(), text }),
        ..owed
    };
    let arguments = Arguments {
        channel_key: ChannelKey { guild: part.guild.clone(), channel: part.channel.clone() },
        since: Moment::ZERO,
        ticket: Ticket(1),
        owed: outbox_record,
        on_record: Vec::new(),
        name: part.name.clone(),
        picture: part.picture.clone(),
        used: Vec::new(),
        platform: context.platforms.of(&part.channel).expect("Discord").clone(),
        stop,
        delivery_lock: Arc::default(),
        channel: channel.clone(),
        context: context.clone(),
    };
    Delivery::spawn(None, Delivery, arguments).await.expect("the delivery starts");
    let delivered = timeout(PATIENCE, reports.recv()).await.expect("the delivery ends in time").expect("it reports a result");
    channel.stop(None);
    root.stop(None);
    system.await.expect("the system stops");
    delivered
}

fn context(platforms: Platforms) -> ActorContext {
    let settings = Arc::new(Settings::overlay(json!({})).expect("the default settings are valid"));
    let model = |role| llm::serving(&settings.models, role).expect("the rehearsal serves every role");
    let models = Models::new(model(ModelRole::Side), model(ModelRole::Main));
    ActorContext {
        platforms,
        store_failed: Arc::new(|detail| panic!("the store failed: {detail}")),
        ..ActorContext::new(Environment {
            store: Arc::new(MemoryStore::new()),
            clock: Arc::new(SystemClock),
            rng: Arc::new(SystemRng),
            models,
            speech: built_in(),
            recorder: Recorder::silent(),
            settings,
            companions: BTreeMap::new(),
        })
    }
}

/// Takes the place of the channel actor: it passes on what the delivery reports.
struct FakeChannel;

impl Actor for FakeChannel {
    type Msg = ChannelMessage;
    type State = mpsc::UnboundedSender<Delivered>;
    type Arguments = mpsc::UnboundedSender<Delivered>;

    async fn pre_start(&self, _: ActorRef<ChannelMessage>, sender: Self::Arguments) -> Result<Self::State, ActorProcessingErr> {
        Ok(sender)
    }

    async fn handle(
        &self,
        _: ActorRef<ChannelMessage>,
        message: ChannelMessage,
        sender: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let ChannelMessage::Delivered { delivered, .. } = message {
            sender.send(*delivered)?;
        }
        Ok(())
    }
}

//! Whatever happens, an answer comes in time, once, and only to whoever asked.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use super::super::counterpart::faults::{Does, On, Scope};
use super::super::counterpart::rules::Rules;
use super::{Scene, companion, me, raw, rules, sub, switch};

const CALLBACK: &str = "interaction_callback";

fn on(route: &'static str) -> On {
    On { route: Some(route), ..On::default() }
}

#[tokio::test]
async fn what_takes_longer_is_answered_in_time_and_told_later() {
    let scene = Scene::with_rules(Rules { interaction_deadline: Duration::from_secs(3), ..rules() }).await;
    scene.backend.hold();

    let answer = scene.ask(scene.ana, scene.general, me("ignore", json!([]))).await;

    assert_eq!((answer.kind, answer.ephemeral), (5, true));
    assert_eq!(scene.discord.answered_text(answer.interaction), None);
    scene.backend.let_go();
    scene.discord.until("the words", |state| state.journal.requests_of("edit_webhook_message").next().map(|_| ())).await;
    let told = scene.told(scene.ana, scene.general, me("ignore", json!([]))).await;
    assert!(told.contains("as you wanted"), "it was done once: {told}");
}

#[tokio::test]
async fn too_many_at_once_are_told_so_at_once() {
    let scene = Scene::new().await;
    let (_, away, zoe) = scene.elsewhere();
    scene.backend.hold();
    let ask = || scene.discord.invoke(scene.ana, scene.general, "tertulia", sub("status", json!([]))).expect("it is there");
    let held: Vec<_> = (0..8).map(|_| ask()).collect();

    let busy = scene.told(scene.ana, scene.general, sub("status", json!([]))).await;

    assert_eq!(scene.counted("status", "busy"), 1.0);
    assert_eq!(busy, "Too many commands at once. Please try again in a few seconds.");
    assert!(scene.told(zoe, away, sub("help", json!([]))).await.contains("/tertulia status"), "others are not held up");
    scene.backend.let_go();
    for asked in held {
        scene.discord.answer_to(asked).await;
    }
}

#[tokio::test]
async fn the_limits_of_everything_else_hold_up_no_answer() {
    let scene = Scene::with_rules(Rules { global_requests: 4, global_window: Duration::from_secs(600), ..rules() }).await;
    // What the bot may ask for is used up, and Discord says so.
    scene.discord.spoil_next(1, on("typing"), Does::TooMany { retry_after: Duration::from_secs(600), scope: Scope::Global });
    let channel = super::snowflake(scene.general).channel();
    tertulia::ports::chat_platform::ChatPlatform::typing(&*scene.platform, &super::snowflake(scene.guild).guild(), &channel)
        .await;
    scene.discord.until("the limit", |state| (state.journal.limits_exceeded() > 0).then_some(())).await;

    let told = scene.told(scene.ana, scene.general, sub("help", json!([]))).await;

    assert!(told.contains("/tertulia status"), "{told}");
}

#[tokio::test]
async fn an_answer_that_is_lost_on_its_way_is_given_again_and_seen_once() {
    let scene = Scene::new().await;

    for does in [
        Does::Cut,
        Does::CutAfterwards,
        Does::Status(502),
        Does::TooMany { retry_after: Duration::from_millis(50), scope: Scope::User },
        Does::HangAfterwards,
    ] {
        let fault = scene.discord.spoil_next(1, on(CALLBACK), does.clone());
        let answer = scene.ask(scene.ana, scene.general, sub("help", json!([]))).await;
        assert_eq!(answer.kind, 4, "{does:?}");
        scene.discord.lift(fault);
    }

    let answers = scene.discord.look(|state| state.journal.answers.len());
    assert_eq!(answers, 5);
    let timed = scene.metrics.total("tertulia_discord_command_duration_seconds_count", &[("discord_command", "help")]);
    assert!(timed >= 4.0, "the last one may be measured in a moment: {timed}");
}

#[tokio::test]
async fn an_answer_that_was_to_come_comes_in_spite_of_failures() {
    let scene = Scene::new().await;
    scene.backend.hold();
    let asked = scene.ask(scene.ana, scene.general, sub("status", json!([]))).await;
    scene.discord.spoil_next(1, on("edit_webhook_message"), Does::Cut);

    scene.backend.let_go();

    let told = scene.discord.until("the words", |state| {
        let interaction = &state.world.interactions[&asked.interaction];
        let message = state.world.message(interaction.channel, interaction.original?)?;
        (!message.content.is_empty()).then(|| message.content.clone())
    });
    assert!(told.await.starts_with("**No companion is here yet.**"));
}

#[tokio::test]
async fn an_answer_that_would_come_too_late_is_given_up() {
    let scene = Scene::new().await;
    scene.backend.hold();
    let asked: Vec<_> = (0..8)
        .map(|_| scene.discord.invoke(scene.ana, scene.general, "tertulia", sub("status", json!([]))).expect("it is there"))
        .collect();
    for asked in asked {
        scene.discord.answer_to(asked).await;
    }
    let in_an_hour = Does::TooMany { retry_after: Duration::from_secs(3_600), scope: Scope::User };
    scene.discord.spoil_next(8, on("edit_webhook_message"), in_an_hour);

    scene.backend.let_go();

    // Eight at once are all that she may ask, so the next one is heard when one of them is done with.
    while scene.told(scene.ana, scene.general, sub("help", json!([]))).await.starts_with("Too many") {}
    assert!(scene.counted("status", "unanswered") >= 1.0);
}

#[tokio::test]
async fn what_is_told_twice_is_done_once() {
    let scene = Scene::new().await;
    let mut heard = scene.overhear();
    let asked =
        scene.discord.invoke(scene.kim, scene.general, "tertulia", sub("join", json!([companion("aria")]))).expect("it is there");
    let told = raw(&heard.recv().await.expect("it is told"));

    scene.commands.take(told.clone());
    scene.commands.take(told.clone());
    assert_eq!(scene.counted("join", "repeated"), 1.0);
    scene.discord.answer_to(asked).await;
    // The process is started anew, and the connection tells again what it told before.
    let anew = super::commands(&scene.platform, &scene.backend, &scene.metrics);
    anew.take(told);
    let refused =
        scene.discord.until("the refusal", |state| state.journal.refused().next().and_then(|(_, outcome)| outcome.code));

    assert_eq!(refused.await, 40_060);
    assert_eq!(scene.discord.look(|state| state.journal.answers.len()), 1);
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_is_not_done() {
    let scene = Scene::new().await;
    let mut heard = scene.overhear();
    scene.discord.invoke(scene.kim, scene.general, "tertulia", sub("join", json!([companion("aria")]))).expect("it is there");
    let mut told = heard.recv().await.expect("it is told");
    // Of 2016: Discord does not know it any more.
    told["id"] = json!("175928847299117063");

    scene.commands.take(raw(&told));
    let refused =
        scene.discord.until("the refusal", |state| state.journal.refused().next().and_then(|(_, outcome)| outcome.code));

    assert_eq!(refused.await, 10_062);
    // What comes after it in the same guild is done, and alone.
    told["id"] = json!(scene.discord.look(|state| *state.world.interactions.keys().next_back().expect("one")));
    scene.commands.take(raw(&told));
    scene.discord.until("an answer", |state| state.journal.answers.first().map(|_| ())).await;
    assert_eq!(scene.backend.inside().admitted.len(), 1);
}

#[tokio::test]
async fn nonsense_is_left_alone_or_told_to_try_again() {
    let scene = Scene::new().await;
    let mut heard = scene.overhear();
    for nonsense in [json!(null), json!([]), json!({}), json!({ "id": "1" }), json!({ "id": "1", "token": 7 })] {
        scene.commands.take(raw(&nonsense));
    }
    assert_eq!(scene.counted("other", "unreadable"), 5.0);
    for (options, name) in [(sub("sing", json!([])), "tertulia"), (json!([]), "tertulia"), (json!([]), "something")] {
        let asked = scene.discord.invoke(scene.kim, scene.general, "tertulia", sub("help", json!([]))).expect("it is there");
        let mut told = heard.recv().await.expect("it is told");
        told["data"]["options"] = options;
        told["data"]["name"] = json!(name);

        scene.commands.take(raw(&told));

        let answer = scene.discord.answer_to(asked).await;
        assert!(answer.data["content"].as_str().is_some_and(|text| text.contains("try again")), "{answer:?}");
        assert!(answer.ephemeral);
    }
}

#[tokio::test]
async fn an_interactions_token_is_never_logged() {
    let logged = Logged::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(logged.clone()).finish();
    // With one subscriber alone, an event that another test's thread comes by first is taken for one that nobody wants, for good.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let _guard = tracing::subscriber::set_default(subscriber);
    let scene = Scene::new().await;

    for does in [Does::Cut, Does::Status(400), Does::Status(500), Does::Garbled, Does::CutAfterwards] {
        let fault = scene.discord.spoil_next(1, on(CALLBACK), does);
        scene.discord.invoke(scene.kim, scene.general, "tertulia", me("ignore", json!([switch("on")]))).expect("it is there");
        scene
            .discord
            .until("its end", |state| {
                let (asked, answered) = (state.world.interactions.len(), state.journal.requests_of(CALLBACK));
                (answered.filter(|request| request.outcome.is_some()).count() >= asked).then_some(())
            })
            .await;
        scene.discord.lift(fault);
    }

    let logged = String::from_utf8(logged.0.lock().expect("nobody panicked").clone()).expect("text");
    assert!(logged.contains("a command is answered again"), "{logged}");
    let tokens: Vec<_> = scene.discord.look(|state| state.world.interactions.values().map(|one| one.token.clone()).collect());
    for secret in tokens.iter().chain([&scene.discord.token()]) {
        assert!(!logged.contains(secret.as_str()), "{logged}");
    }
}

/// What was logged.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Logged {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

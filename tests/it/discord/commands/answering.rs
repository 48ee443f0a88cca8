//! Each interaction gets one answer in time, and only its user sees it.

use std::time::Duration;

use serde_json::json;
use tertulia::telemetry::fake::Logged;

use super::super::counterpart::{Does, On, Rules, Scope};
use super::super::home::snowflake;
use super::{Scene, companion, me, raw, rules, sub, switch};

const CALLBACK: &str = "interaction_callback";

#[tokio::test]
async fn a_slow_command_is_deferred_in_time_and_answered_later() {
    let scene = Scene::with_rules(Rules { interaction_deadline: Duration::from_secs(3), ..rules() }).await;
    scene.backend.hold();

    let answer = scene.ask(scene.ana, scene.general, me("ignore", json!([]))).await;

    assert_eq!((answer.kind, answer.ephemeral), (5, true));
    assert_eq!(scene.discord.answered_text(answer.interaction), None);
    scene.backend.release();
    scene.discord.wait_for("the words", |state| state.journal.requests_of("edit_webhook_message").next().is_some()).await;
    let answer = scene.final_answer(scene.ana, scene.general, me("ignore", json!([]))).await;
    assert!(answer.contains("as you wanted"), "the first command took effect once: {answer}");
}

#[tokio::test]
async fn too_many_concurrent_commands_are_rejected_at_once() {
    let scene = Scene::new().await;
    let (_, away, zoe) = scene.elsewhere();
    scene.backend.hold();
    let ask = || scene.discord.command(scene.ana, scene.general, sub("status", json!([])));
    let held: Vec<_> = (0..8).map(|_| ask()).collect();

    let busy = scene.final_answer(scene.ana, scene.general, sub("status", json!([]))).await;

    assert_eq!(scene.counted("status", "busy"), 1.0);
    assert_eq!(busy, "Too many commands at once. Please try again in a few seconds.");
    assert!(scene.final_answer(zoe, away, sub("help", json!([]))).await.contains("/tertulia status"), "others are not delayed");
    scene.backend.release();
    for interaction in held {
        scene.discord.answer_to(interaction).await;
    }
}

#[tokio::test]
async fn an_exhausted_global_limit_does_not_delay_answers() {
    let scene = Scene::with_rules(Rules { global_requests: 8, global_window: Duration::from_secs(600), ..rules() }).await;
    // The bot's global limit is used up, and Discord says so.
    scene.discord.spoil_next(
        1,
        On::route("typing"),
        Does::TooMany { retry_after: Duration::from_secs(600), scope: Scope::Global },
    );
    let channel = snowflake(scene.general).channel();
    tertulia::ports::chat_platform::ChatPlatform::typing(&*scene.platform, &snowflake(scene.guild).guild(), &channel).await;
    scene.discord.wait_for("the limit", |state| state.journal.limits_exceeded() > 0).await;

    let answer = scene.final_answer(scene.ana, scene.general, sub("help", json!([]))).await;

    assert!(answer.contains("/tertulia status"), "{answer}");
}

#[tokio::test]
async fn a_lost_answer_is_sent_again_and_seen_once() {
    let scene = Scene::new().await;

    for does in [
        Does::Cut,
        Does::CutAfterwards,
        Does::Status(502),
        Does::TooMany { retry_after: Duration::from_millis(50), scope: Scope::User },
        Does::HangAfterwards,
    ] {
        let fault = scene.discord.spoil_next(1, On::route(CALLBACK), does.clone());
        let answer = scene.ask(scene.ana, scene.general, sub("help", json!([]))).await;
        assert_eq!(answer.kind, 4, "{does:?}");
        scene.discord.lift(fault);
    }

    let answers = scene.discord.look(|state| state.journal.answers.len());
    assert_eq!(answers, 5);
    let timed = scene.metrics.total("tertulia_discord_command_duration_seconds_count", &[("discord_command", "help")]);
    assert!(timed >= 4.0, "the last answer may not be measured yet: {timed}");
}

#[tokio::test]
async fn a_deferred_answer_arrives_despite_a_failure() {
    let scene = Scene::new().await;
    scene.backend.hold();
    let deferred = scene.ask(scene.ana, scene.general, sub("status", json!([]))).await;
    scene.discord.spoil_next(1, On::route("edit_webhook_message"), Does::Cut);

    scene.backend.release();

    let answer = scene.discord.final_answer(deferred.interaction).await;
    assert!(answer.content.starts_with("**No companion is here yet.**"));
}

#[tokio::test]
async fn an_answer_that_would_come_too_late_is_abandoned() {
    let scene = Scene::new().await;
    scene.backend.hold();
    let interactions: Vec<_> =
        (0..8).map(|_| scene.discord.command(scene.ana, scene.general, sub("status", json!([])))).collect();
    for interaction in interactions {
        scene.discord.answer_to(interaction).await;
    }
    let in_an_hour = Does::TooMany { retry_after: Duration::from_secs(3_600), scope: Scope::User };
    scene.discord.spoil_next(8, On::route("edit_webhook_message"), in_an_hour);

    scene.backend.release();

    // A person may have eight commands in progress. The next one is handled once one of them has ended.
    while scene.final_answer(scene.ana, scene.general, sub("help", json!([]))).await.starts_with("Too many") {}
    assert!(scene.counted("status", "unanswered") >= 1.0);
}

#[tokio::test]
async fn a_repeated_interaction_is_handled_once() {
    let scene = Scene::new().await;
    let mut interactions = scene.intercept();
    let interaction = scene.discord.command(scene.kim, scene.general, sub("join", json!([companion("aria")])));
    let payload = raw(&interactions.recv().await.expect("an interaction"));

    scene.commands.handle_interaction(payload.clone());
    scene.commands.handle_interaction(payload.clone());
    assert_eq!(scene.counted("join", "repeated"), 1.0);
    scene.discord.answer_to(interaction).await;
    // The process restarts, and the connection delivers the interaction again.
    let restarted = super::commands(&scene.platform, &scene.backend, &scene.metrics);
    restarted.handle_interaction(payload);
    let refused =
        scene.discord.until("the refusal", |state| state.journal.refused().next().and_then(|(_, outcome)| outcome.code));

    assert_eq!(refused.await, 40_060);
    assert_eq!(scene.discord.look(|state| state.journal.answers.len()), 1);
}

#[tokio::test]
async fn an_expired_interaction_is_not_handled() {
    let scene = Scene::new().await;
    let mut interactions = scene.intercept();
    scene.discord.command(scene.kim, scene.general, sub("join", json!([companion("aria")])));
    let mut payload = interactions.recv().await.expect("an interaction");
    // An id from 2016: Discord does not know it any more.
    payload["id"] = json!("175928847299117063");

    scene.commands.handle_interaction(raw(&payload));
    let refused =
        scene.discord.until("the refusal", |state| state.journal.refused().next().and_then(|(_, outcome)| outcome.code));

    assert_eq!(refused.await, 10_062);
    // The next interaction in the same guild is handled, and it alone.
    payload["id"] = json!(scene.discord.look(|state| *state.world.interactions.keys().next_back().expect("one")));
    scene.commands.handle_interaction(raw(&payload));
    scene.discord.wait_for("an answer", |state| !state.journal.answers.is_empty()).await;
    assert_eq!(scene.backend.probe().admitted.len(), 1);
}

#[tokio::test]
async fn malformed_interactions_are_ignored_or_answered_with_try_again() {
    let scene = Scene::new().await;
    let mut interactions = scene.intercept();
    for nonsense in [json!(null), json!([]), json!({}), json!({ "id": "1" }), json!({ "id": "1", "token": 7 })] {
        scene.commands.handle_interaction(raw(&nonsense));
    }
    assert_eq!(scene.counted("other", "unreadable"), 5.0);
    for (options, name) in [(sub("sing", json!([])), "tertulia"), (json!([]), "tertulia"), (json!([]), "something")] {
        let interaction = scene.discord.command(scene.kim, scene.general, sub("help", json!([])));
        let mut payload = interactions.recv().await.expect("an interaction");
        payload["data"]["options"] = options;
        payload["data"]["name"] = json!(name);

        scene.commands.handle_interaction(raw(&payload));

        let answer = scene.discord.answer_to(interaction).await;
        assert!(answer.data["content"].as_str().is_some_and(|text| text.contains("try again")), "{answer:?}");
        assert!(answer.ephemeral);
    }
}

#[tokio::test]
async fn an_interactions_token_is_never_logged() {
    let logged = Logged::from(tracing::Level::TRACE);
    let scene = Scene::new().await;

    for does in [Does::Cut, Does::Status(400), Does::Status(500), Does::Garbled, Does::CutAfterwards] {
        let fault = scene.discord.spoil_next(1, On::route(CALLBACK), does);
        scene.discord.command(scene.kim, scene.general, me("ignore", json!([switch("on")])));
        scene
            .discord
            .until("an outcome", |state| {
                let (total, answered) = (state.world.interactions.len(), state.journal.requests_of(CALLBACK));
                (answered.filter(|request| request.outcome.is_some()).count() >= total).then_some(())
            })
            .await;
        scene.discord.lift(fault);
    }

    let logged = logged.read();
    assert!(logged.contains("a command is answered again"), "{logged}");
    let tokens: Vec<_> = scene.discord.look(|state| state.world.interactions.values().map(|one| one.token.clone()).collect());
    for secret in tokens.iter().chain([&scene.discord.token()]) {
        assert!(!logged.contains(secret.as_str()), "{logged}");
    }
}

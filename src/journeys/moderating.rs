//! What companions write is examined before anybody sees it (docs/design/safety.md N-12, N-13).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::world::{World, lines, room};
use crate::domain::id::Seq;
use crate::ports::language_model::NoAnswer;
use crate::ports::moderation::Moderation;

/// Refuses what has a rude word in it, and does not answer about what is strange.
struct Service;

#[async_trait]
impl Moderation for Service {
    async fn refusal_of(&self, text: &str) -> Result<Option<Arc<str>>, NoAnswer> {
        if text.contains("strange") {
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        Ok(text.contains("rude").then(|| "harassment".into()))
    }
}

/// The lobby, in which Aria answers each address with this.
async fn lobby(answer: &'static str, fails: &str) -> World {
    let world = World::with_moderation(Arc::new(Service), json!({ "safety": { "moderation_fails": fails } })).await;
    world.side.answers([Ok("Me.\nYES")]);
    world.main.answers([Ok(answer)]);
    world
}

/// What watchers were told after somebody spoke to Aria.
async fn seen(world: &World) -> Vec<Value> {
    let mut watching = world.watch("lobby", None).await;
    world.main.write_at(Duration::from_millis(100), []);
    world.say("lobby", "Aria?").await;
    world.pass(1.9).await;
    let mut seen = watching.seen().await;
    world.pass(10.0).await;
    seen.extend(watching.seen().await);
    seen
}

/// What readiness says of the service, without the name of the setting.
async fn part(world: &World) -> (bool, String) {
    let readiness = world.backend.maintenance.readiness().await;
    let part = readiness.parts.into_iter().find(|part| &*part.part == "moderation").expect("the service is named");
    (part.ready, part.detail.split(" (safety.").next().unwrap_or_default().to_owned())
}

#[tokio::test(start_paused = true)]
async fn what_the_service_refuses_is_seen_by_nobody_and_the_category_is_on_record() {
    let world = lobby("Something very rude, Ana.", "open").await;

    let seen = seen(&world).await;

    let failed = seen.iter().find(|event| event["event"] == "failed").unwrap_or_else(|| panic!("{seen:?}"));
    assert_eq!((&failed["error"], &failed["category"]), (&json!("moderated"), &json!("harassment")));
    assert!(!seen.iter().any(|event| event.to_string().contains("rude")), "{seen:?}");
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Aria?")]));
    let stored = format!("{:?}", world.everything().await);
    assert!(!stored.contains("rude"), "the words are not kept");
    assert_eq!(world.main.asked.lock().len(), 1, "it is not written again");
    let query = crate::ports::backend::usage::UsageQuery::default();
    assert_eq!(world.backend.records.safety_figures(query).await.unwrap().total.refused, 1);
    let why = serde_json::to_value(world.why("lobby", Some("aria"), None).await.unwrap()).unwrap().to_string();
    assert!(why.contains("The moderation service refused what Aria had written (harassment)."), "{why}");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_refused_is_posted_without_a_draft_before() {
    let world = lobby("Something kind, Ana.", "closed").await;

    let seen = seen(&world).await;

    assert!(!seen.iter().any(|event| event["event"] == "draft"), "{seen:?}");
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Aria?"), ("aria", "Something kind, Ana.")]));
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_in_two_seconds_the_settings_say_whether_the_words_are_posted() {
    let (open, closed) = (lobby("Something strange.", "open").await, lobby("Something strange.", "closed").await);

    for world in [&open, &closed] {
        seen(world).await;
    }

    assert_eq!(open.history("lobby").await, lines(&[("Ana", "Aria?"), ("aria", "Something strange.")]));
    assert_eq!(closed.history("lobby").await, lines(&[("Ana", "Aria?")]));
    assert_eq!(closed.recorded("lobby", "failed").await[0]["error"], "moderation_failed");
    assert_eq!(
        part(&open).await,
        (false, "the service does not work (timeout): statements are posted without being examined".into())
    );
    assert_eq!(part(&closed).await, (false, "the service does not work (timeout): no statements are posted".into()));
    closed.main.answers([Ok("Something kind.")]);
    seen(&closed).await;
    assert_eq!(part(&closed).await, (true, "when the service does not answer, no statements are posted".into()));
    assert!(closed.backend.maintenance.readiness().await.ready);
}

#[tokio::test(start_paused = true)]
async fn a_replacement_that_is_refused_leaves_the_former_statement_and_is_told_by_why() {
    let world = lobby("Something kind, Ana.", "closed").await;
    world.say_then_pass("lobby", "Aria?", 100.0).await;
    let answer = world.recorded("lobby", "message").await.pop().unwrap()["seq"].as_u64().unwrap();
    world.main.answers([Ok("Something rude, Ana.")]);

    world.backend.messages.answer_again(&room("lobby"), Seq(answer), false, None).await.unwrap();
    world.pass(100.0).await;

    let why = serde_json::to_string(&world.why("lobby", Some("aria"), None).await.unwrap()).unwrap();
    assert!(why.contains("Replace this answer") && why.contains("refused what Aria had written (harassment)"), "{why}");
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Aria?"), ("aria", "Something kind, Ana.")]));
    world.main.answers([Ok("Something kinder, Ana.")]);
    world.backend.messages.answer_again(&room("lobby"), Seq(answer), false, None).await.unwrap();
    world.pass(100.0).await;
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Aria?"), ("aria", "Something kinder, Ana.")]));
}

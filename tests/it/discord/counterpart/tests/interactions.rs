//! How interactions arrive and how they must be answered.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::super::{Counterpart, Id, Rules};
use super::client::{INTENTS, Rest, Socket};
use crate::discord::home::Home;

struct Scene {
    discord: Counterpart,
    rest: Rest,
    socket: Socket,
    general: Id,
    ana: Id,
    application: Id,
}

/// A home in which `/tertulia` can be used, and a session that receives its interactions.
async fn scene(rules: Rules) -> Scene {
    let Home { discord, general, ana, .. } = Home::with_rules(rules).await;
    let rest = Rest::new(&discord);
    let application = discord.bot();
    let who = json!({ "name": "who", "description": "Who", "type": 3, "autocomplete": true });
    let command = json!({ "name": "tertulia", "description": "Everything", "options": [who] });
    let made = rest.post(&format!("/applications/{application}/commands"), command).await;
    assert_eq!(made.status, 201, "{made:?}");
    let (socket, _) = Socket::ready(&discord, INTENTS).await;
    Scene { discord, rest, socket, general, ana, application }
}

impl Scene {
    /// Ana uses the command. Returns the interaction's id, the path that takes the first answer, and the path of that answer.
    async fn ask(&mut self) -> (Id, String, String) {
        let id = self.discord.command(self.ana, self.general, json!([]));
        let event = self.socket.event("INTERACTION_CREATE").await;
        assert_eq!(event["id"], json!(id));
        let token = event["token"].as_str().expect("a token").to_owned();
        (id, format!("/interactions/{id}/{token}/callback"), format!("/webhooks/{}/{token}/messages/@original", self.application))
    }
}

fn message(text: &str, flags: u64) -> Value {
    json!({ "type": 4, "data": { "content": text, "flags": flags } })
}

#[tokio::test]
async fn an_interaction_names_its_user_options_and_channel() {
    let mut scene = scene(Rules::quick()).await;
    let options = json!([{ "name": "who", "type": 3, "value": "mira" }]);

    scene.discord.command(scene.ana, scene.general, options.clone());

    let event = scene.socket.event("INTERACTION_CREATE").await;
    assert_eq!((&event["type"], &event["data"]["options"], &event["context"]), (&json!(2), &options, &json!(0)));
    assert_eq!((&event["channel_id"], &event["channel"]["id"]), (&json!(scene.general), &json!(scene.general)));
    assert_eq!((&event["member"]["user"]["id"], &event["user"]), (&json!(scene.ana), &Value::Null));
    assert!(event["member"]["permissions"].is_string() && event["app_permissions"].is_string());
    let (direct, _) = scene.discord.direct(scene.ana, "hi");
    scene.discord.command(scene.ana, direct, json!([]));
    let event = scene.socket.event("INTERACTION_CREATE").await;
    assert_eq!((&event["user"]["id"], &event["member"], &event["context"]), (&json!(scene.ana), &Value::Null, &json!(1)));
}

#[tokio::test]
async fn an_interaction_is_answered_once_and_the_waiting_time_is_recorded() {
    let mut scene = scene(Rules::quick()).await;
    let (id, callback, original) = scene.ask().await;
    assert_eq!(scene.rest.get(&original).await.refusal(), (404, 10015), "there is no answer yet");

    // The token in the path is the authorization.
    scene.rest.token.clear();
    assert_eq!(scene.rest.post(&callback, message("Here.", 0)).await.status, 204);
    assert_eq!(scene.rest.post(&callback, message("Again.", 0)).await.refusal(), (400, 40060));

    let answer = scene.discord.answer_to(id).await;
    assert_eq!((answer.kind, &answer.data["content"], answer.ephemeral), (4, &json!("Here."), false));
    assert_eq!(answer.user, scene.ana);
    assert!(answer.took <= scene.discord.look(|state| state.world.interactions[&id].asked_at.elapsed()));
    let event = scene.socket.event("MESSAGE_CREATE").await;
    assert_eq!(
        (&event["content"], &event["type"], &event["application_id"]),
        (&json!("Here."), &json!(20), &json!(scene.application))
    );
    assert!(scene.discord.posts().is_empty(), "it is recorded as an answer and not as a post");
}

#[tokio::test]
async fn an_interaction_is_answered_within_three_seconds_or_never() {
    let mut scene = scene(Rules { interaction_deadline: Duration::ZERO, ..Rules::quick() }).await;
    let (_, callback, _) = scene.ask().await;

    assert_eq!(scene.rest.post(&callback, message("Late.", 0)).await.refusal(), (404, 10062));
    assert_eq!(scene.rest.post("/interactions/5/wrong/callback", message("x", 0)).await.refusal(), (404, 10062));
    assert_eq!(scene.discord.look(|state| state.journal.answers.len()), 0);
}

#[tokio::test]
async fn an_invalid_answer_is_refused_and_can_be_corrected() {
    let mut scene = scene(Rules::quick()).await;
    let (id, callback, original) = scene.ask().await;

    for bad in [json!({}), json!({ "type": 7, "data": {} }), json!({ "type": 99 }), message(&"x".repeat(2_001), 0)] {
        assert_eq!(scene.rest.post(&callback, bad.clone()).await.refusal(), (400, 50035), "{bad}");
    }
    assert_eq!(scene.rest.post(&callback, message("", 0)).await.refusal(), (400, 50006));
    assert_eq!(scene.rest.post(&callback, message("Only you.", 64)).await.status, 204);
    assert_eq!(scene.rest.get(&original).await.body["content"], "Only you.");
    assert!(scene.discord.answer_to(id).await.ephemeral);
    let history = scene.rest.get(&format!("/channels/{}/messages", scene.general)).await.body;
    assert_eq!(history, json!([]), "nobody else sees it");
}

#[tokio::test]
async fn a_deferred_answer_is_filled_in_later() {
    let mut scene = scene(Rules::quick()).await;

    let (id, callback, original) = scene.ask().await;
    assert_eq!(scene.rest.post(&callback, json!({ "type": 5, "data": { "flags": 64 } })).await.status, 204);
    assert_eq!(scene.discord.answered_text(id), None);

    let edited = scene.rest.ask(Method::PATCH, &original, json!({ "content": "At last." })).await;

    assert_eq!((edited.status, &edited.body["content"], &edited.body["flags"]), (200, &json!("At last."), &json!(64)));
    assert_eq!(scene.discord.answered_text(id).as_deref(), Some("At last."));
    assert_eq!(scene.rest.get(&original).await.body["content"], "At last.");
}

#[tokio::test]
async fn an_interaction_token_expires() {
    let mut scene = scene(Rules::quick()).await;
    let (_, callback, original) = scene.ask().await;
    assert_eq!(scene.rest.post(&callback, message("Here.", 0)).await.status, 204);

    scene.discord.with(|state| state.rules.interaction_token = Duration::ZERO);

    assert_eq!(scene.rest.get(&original).await.refusal(), (401, 50027));
}

#[tokio::test]
async fn autocomplete_takes_at_most_twenty_five_choices() {
    let mut scene = scene(Rules::quick()).await;
    let focused = json!([{ "name": "who", "type": 3, "value": "mi", "focused": true }]);
    let id = scene.discord.complete(scene.ana, scene.general, "tertulia", focused).expect("the command is offered");
    let event = scene.socket.event("INTERACTION_CREATE").await;
    assert_eq!((&event["type"], &event["data"]["options"][0]["focused"]), (&json!(4), &json!(true)));
    let callback = format!("/interactions/{id}/{}/callback", event["token"].as_str().expect("a token"));
    let choices = |count: usize, name: &str| json!({ "type": 8, "data": { "choices": vec![json!({ "name": name, "value": "mira" }); count] } });

    for bad in [choices(26, "Mira"), choices(1, ""), choices(1, &"x".repeat(101)), json!({ "type": 8 }), message("x", 0)] {
        assert_eq!(scene.rest.post(&callback, bad.clone()).await.refusal(), (400, 50035), "{bad}");
    }
    assert_eq!(scene.rest.post(&callback, choices(25, "Mira")).await.status, 204);
    assert_eq!(scene.discord.answer_to(id).await.kind, 8);
}

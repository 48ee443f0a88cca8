//! How interactions come and how they have to be answered.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::super::Counterpart;
use super::super::id::Id;
use super::super::rules::Rules;
use super::client::{INTENTS, Rest, Socket};

struct Asked {
    discord: Counterpart,
    rest: Rest,
    socket: Socket,
    general: Id,
    ana: Id,
    application: Id,
}

/// A guild in which `/tertulia` can be used, and a session that hears of it.
async fn asked(rules: Rules) -> Asked {
    let discord = Counterpart::with_rules(rules).await;
    let guild = discord.guild("Home");
    let (general, ana) = (discord.channel(guild, "general"), discord.member(guild, "Ana"));
    let rest = Rest::new(&discord);
    let application = discord.look(|state| state.world.application.id);
    let who = json!({ "name": "who", "description": "Who", "type": 3, "autocomplete": true });
    let commands = json!([{ "name": "tertulia", "description": "Everything", "options": [who] }]);
    let made = rest.ask(Method::PUT, &format!("/applications/{application}/commands"), commands).await;
    assert_eq!(made.status, 200, "{made:?}");
    let (socket, _) = Socket::ready(&discord, INTENTS).await;
    Asked { discord, rest, socket, general, ana, application }
}

impl Asked {
    /// Ana uses the command. Returns its id and where it is answered, first and then.
    async fn ask(&mut self) -> (Id, String, String) {
        let id = self.discord.invoke(self.ana, self.general, "tertulia", json!([])).expect("it is there");
        let told = self.socket.event("INTERACTION_CREATE").await;
        assert_eq!(told["id"], json!(id));
        let token = told["token"].as_str().expect("a token").to_owned();
        (id, format!("/interactions/{id}/{token}/callback"), format!("/webhooks/{}/{token}", self.application))
    }
}

fn message(text: &str, flags: u64) -> Value {
    json!({ "type": 4, "data": { "content": text, "flags": flags } })
}

#[tokio::test]
async fn an_interaction_names_its_user_options_and_channel() {
    let mut all = asked(Rules::quick()).await;
    let options = json!([{ "name": "who", "type": 3, "value": "mira" }]);

    all.discord.invoke(all.ana, all.general, "tertulia", options.clone()).expect("it is there");

    let told = all.socket.event("INTERACTION_CREATE").await;
    assert_eq!((&told["type"], &told["data"]["options"], &told["context"]), (&json!(2), &options, &json!(0)));
    assert_eq!((&told["channel_id"], &told["channel"]["id"]), (&json!(all.general), &json!(all.general)));
    assert_eq!((&told["member"]["user"]["id"], &told["user"]), (&json!(all.ana), &Value::Null));
    assert!(told["member"]["permissions"].is_string() && told["app_permissions"].is_string());
    let (direct, _) = all.discord.direct(all.ana, "hi");
    all.discord.invoke(all.ana, direct, "tertulia", json!([])).expect("it is there");
    let told = all.socket.event("INTERACTION_CREATE").await;
    assert_eq!((&told["user"]["id"], &told["member"], &told["context"]), (&json!(all.ana), &Value::Null, &json!(1)));
}

#[tokio::test]
async fn an_interaction_is_answered_once() {
    let mut all = asked(Rules::quick()).await;
    let (id, callback, token) = all.ask().await;
    let early = all.rest.post(&token, json!({ "content": "x" })).await;
    assert_eq!(early.refusal(), (404, 10015), "nothing follows before the first answer");

    // No authorization is needed: the token is one.
    all.rest.token.clear();
    assert_eq!(all.rest.post(&callback, message("Here.", 0)).await.status, 204);
    assert_eq!(all.rest.post(&callback, message("Again.", 0)).await.refusal(), (400, 40060));

    let answer = all.discord.answer_to(id).await;
    assert_eq!((answer.kind, &answer.data["content"], answer.ephemeral), (4, &json!("Here."), false));
    let heard = all.socket.event("MESSAGE_CREATE").await;
    assert_eq!(
        (&heard["content"], &heard["type"], &heard["application_id"]),
        (&json!("Here."), &json!(20), &json!(all.application))
    );
    assert!(all.discord.posts().is_empty(), "it is on record as an answer");
}

#[tokio::test]
async fn an_interaction_is_answered_within_three_seconds_or_never() {
    let mut all = asked(Rules { interaction_deadline: Duration::ZERO, ..Rules::quick() }).await;
    let (_, callback, _) = all.ask().await;

    assert_eq!(all.rest.post(&callback, message("Late.", 0)).await.refusal(), (404, 10062));
    assert_eq!(all.rest.post("/interactions/5/wrong/callback", message("x", 0)).await.refusal(), (404, 10062));
    assert_eq!(all.discord.look(|state| state.journal.answers.len()), 0);
}

#[tokio::test]
async fn an_invalid_answer_is_refused_and_can_be_corrected() {
    let mut all = asked(Rules::quick()).await;
    let (id, callback, _) = all.ask().await;

    for bad in [json!({}), json!({ "type": 7, "data": {} }), json!({ "type": 99 }), message(&"x".repeat(2_001), 0)] {
        assert_eq!(all.rest.post(&callback, bad.clone()).await.refusal(), (400, 50035), "{bad}");
    }
    assert_eq!(all.rest.post(&callback, message("", 0)).await.refusal(), (400, 50006));
    let told = all.rest.post(&format!("{callback}?with_response=true"), message("Only you.", 64)).await;
    assert_eq!((told.status, &told.body["interaction"]["response_message_ephemeral"]), (200, &json!(true)));
    assert_eq!(told.body["resource"]["message"]["content"], "Only you.");
    assert!(all.discord.answer_to(id).await.ephemeral);
    let history = all.rest.get(&format!("/channels/{}/messages", all.general)).await.body;
    assert_eq!(history, json!([]), "nobody else sees it");
}

#[tokio::test]
async fn a_deferred_answer_is_filled_in_later() {
    let mut all = asked(Rules::quick()).await;

    for by_edit in [true, false] {
        let (id, callback, token) = all.ask().await;
        assert_eq!(all.rest.post(&callback, json!({ "type": 5, "data": { "flags": 64 } })).await.status, 204);
        assert_eq!(all.discord.answered_text(id), None);
        let (method, path) =
            if by_edit { (Method::PATCH, format!("{token}/messages/@original")) } else { (Method::POST, token.clone()) };
        assert_eq!(all.rest.ask(method, &path, json!({ "content": "At last." })).await.status, 200);
        assert_eq!(all.discord.answered_text(id).as_deref(), Some("At last."));
        let more = all.rest.post(&token, json!({ "content": "And more.", "flags": 64 })).await;
        assert_eq!((more.status, &more.body["flags"]), (200, &json!(64)));
        let original = all.rest.get(&format!("{token}/messages/@original")).await;
        assert_eq!(original.body["content"], "At last.");
        assert_ne!(original.id(), more.id());
        assert_eq!(all.rest.delete(&format!("{token}/messages/{}", more.id())).await.status, 204);
        assert_eq!(all.rest.get(&format!("{token}/messages/{}", more.id())).await.refusal(), (404, 10008));
    }
}

#[tokio::test]
async fn an_interaction_token_expires() {
    let mut all = asked(Rules::quick()).await;
    let (_, callback, token) = all.ask().await;
    assert_eq!(all.rest.post(&callback, message("Here.", 0)).await.status, 204);

    all.discord.with(|state| state.rules.interaction_token = Duration::ZERO);

    assert_eq!(all.rest.post(&token, json!({ "content": "x" })).await.refusal(), (401, 50027));
}

#[tokio::test]
async fn autocomplete_takes_at_most_twenty_five_choices() {
    let mut all = asked(Rules::quick()).await;
    let focused = json!([{ "name": "who", "type": 3, "value": "mi", "focused": true }]);
    let id = all.discord.complete(all.ana, all.general, "tertulia", focused).expect("it is there");
    let told = all.socket.event("INTERACTION_CREATE").await;
    assert_eq!((&told["type"], &told["data"]["options"][0]["focused"]), (&json!(4), &json!(true)));
    let callback = format!("/interactions/{id}/{}/callback", told["token"].as_str().expect("a token"));
    let choices = |count: usize, name: &str| json!({ "type": 8, "data": { "choices": vec![json!({ "name": name, "value": "mira" }); count] } });

    for bad in [choices(26, "Mira"), choices(1, ""), choices(1, &"x".repeat(101)), json!({ "type": 8 }), message("x", 0)] {
        assert_eq!(all.rest.post(&callback, bad.clone()).await.refusal(), (400, 50035), "{bad}");
    }
    assert_eq!(all.rest.post(&callback, choices(25, "Mira")).await.status, 204);
    assert_eq!(all.discord.answer_to(id).await.kind, 8);
}

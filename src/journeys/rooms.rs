//! Creating, changing and deleting rooms.

use std::time::Duration;

use serde_json::{Value, json};

use super::world::{World, lines, of_json, room};
use crate::ports::backend::Refused;
use crate::ports::language_model::NoAnswer;
use crate::settings::companion::ModelChoice;

#[tokio::test(start_paused = true)]
async fn a_room_is_created_changed_and_survives_a_crash() {
    let world = World::with_lobby().await;

    world.patch("lobby", json!({ "companions": { "aria": { "interjection": "very_eager", "paused": true } } })).await.unwrap();
    let world = world.crash().await;

    let lobby = world.backend.rooms.get(&room("lobby")).await.unwrap();
    assert_eq!(&*lobby.companions[0].interjection, "very_eager");
    assert!(lobby.companions[0].paused);
}

#[tokio::test(start_paused = true)]
async fn invalid_rooms_are_refused() {
    let world = World::with_lobby().await;

    let study = async |companions: Value| world.put_room("study", json!({ "guild": "home", "companions": companions })).await;
    let another_guild = world.put_room("lobby", json!({ "guild": "away", "companions": [] })).await;
    let not_new = world.put_room("lobby", json!({ "guild": "home", "companions": [], "new": true })).await;
    let unknown = study(json!(["nobody"])).await;
    let many = study((0..33).map(|number| json!({ "id": format!("zed{number}"), "external": true })).collect()).await;
    let shared = study(json!(["twin"])).await;
    let configured = study(json!([{ "id": "bruno", "external": true }])).await;
    let namesake_of_aria = json!([{ "id": "zed", "external": true, "aliases": ["ARIA"] }]);
    let namesake = study(namesake_of_aria.clone()).await;
    let elsewhere = world.put_room("attic", json!({ "guild": "away", "companions": namesake_of_aria })).await;
    let too_many_aliases = study(json!([{ "id": "zed", "external": true, "aliases": vec!["z"; 17] }])).await;

    assert!(matches!(another_guild, Err(Refused::Conflict(_))));
    assert!(matches!(not_new, Err(Refused::Conflict(detail)) if detail.contains("already")));
    assert!(matches!(unknown, Err(Refused::Invalid { field, .. }) if field == "companions[0]"));
    assert!(matches!(many, Err(Refused::Invalid { field, detail }) if field == "companions" && detail.contains("at most 32")));
    assert!(matches!(shared, Err(Refused::Conflict(detail)) if detail.contains("aria") && detail.contains("twin")));
    assert!(matches!(configured, Err(Refused::Conflict(detail)) if detail.contains("bruno")));
    for namesake in [namesake, elsewhere] {
        assert!(matches!(namesake, Err(Refused::Conflict(detail)) if detail.contains("aria") && detail.contains("zed")));
    }
    assert!(matches!(too_many_aliases, Err(Refused::Invalid { field, .. }) if field == "companions[0].aliases"));
}

#[tokio::test(start_paused = true)]
async fn the_names_of_a_guilds_companions_are_known_in_all_its_rooms() {
    let world = World::with_lobby().await;
    world.open("den", &["bruno"]).await;
    let namesake = async |name: &str| world.backend.messages.namesake(&room("lobby"), name).await.unwrap();

    assert_eq!(namesake("ARIA").await, Some("aria".into()));
    assert_eq!(namesake("Ari").await, Some("aria".into()));
    assert_eq!(namesake("bruno").await, Some("bruno".into()));
    for alike in ["A\u{ad}ria", "\u{410}ria", "\u{ff21}\u{ff52}\u{ff49}\u{ff41}", "Brun0"] {
        assert!(namesake(alike).await.is_some(), "{alike:?}");
    }
    assert_eq!(namesake("Cleo").await, None, "she is in no room of the guild");
    assert_eq!(namesake("Ana").await, None);
    assert!(matches!(world.backend.messages.namesake(&room("cellar"), "Ana").await, Err(Refused::NotFound(_))));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_room_is_gone_with_its_history() {
    let world = World::with_lobby().await;
    world.say("lobby", "one").await;
    let mut watching = world.watch("lobby", None).await;

    let deletion = world.backend.rooms.delete(&room("lobby")).await.unwrap();

    assert_eq!(deletion.messages, 1);
    assert!(watching.is_over().await);
    assert!(matches!(world.backend.rooms.get(&room("lobby")).await, Err(Refused::NotFound(_))));
    world.pass(60.0).await;
    world.rest().await;
    assert!(matches!(world.backend.rooms.undelete(&room("lobby")).await, Err(Refused::NotFound(_))));
    world.open("lobby", &["aria"]).await;
    assert_eq!(world.history("lobby").await, []);
    let world = world.crash().await;
    assert_eq!(world.history("lobby").await, []);
    world.say_then_pass("lobby", "two", 60.0).await;
    assert_eq!(world.decisions("lobby").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_room_that_is_about_to_be_deleted_is_silent_and_hidden_and_can_be_brought_back() {
    let world = World::with_willing_lobby().await;
    world
        .patch("lobby", json!({ "title": "Großmutters Küche", "companions": { "aria": { "interjection": "quiet" } } }))
        .await
        .unwrap();
    let mut watching = world.watch_rooms("").await;
    world.main.set_delay(Duration::from_secs(30));
    world.say_then_pass("lobby", "Ari?", 4.0).await;
    let before = (world.backend.rooms.get(&room("lobby")).await.unwrap(), world.history("lobby").await);
    assert_eq!((world.calls().await, before.1.len()), (1, 1), "she writes");
    watching.seen().await;

    let counted = world.backend.rooms.deletion(&room("lobby")).await.unwrap();
    let deletion = world.backend.rooms.delete(&room("lobby")).await.unwrap();
    world.pass(2.0).await;
    let again = world.backend.rooms.delete(&room("lobby")).await.unwrap();
    let said = world.try_say("lobby", json!({ "from": "Ana", "text": "Ari?" })).await;
    let again_later = json!({ "title": "großmutters küche", "guild": "home", "companions": [] });
    let same_title = world.backend.rooms.create(of_json(again_later)).await;
    let same_id = world.put_room("lobby", json!({ "guild": "home", "companions": [] })).await;
    world.pass(7.0).await;

    assert_eq!((counted.messages, counted.deleted_at), (1, None));
    assert_eq!((deletion.messages, deletion), (1, again));
    assert_eq!(world.calls().await, 0);
    assert!(matches!(said, Err(Refused::NotFound(detail)) if detail.contains("POST /api/rooms/lobby/undelete")));
    for refused in [same_id, same_title] {
        assert!(matches!(refused, Err(Refused::Conflict(detail)) if detail.contains("POST /api/rooms/lobby/undelete")));
    }
    assert_eq!(world.backend.rooms.list().await.unwrap().rooms, []);
    assert_eq!(kinds(&watching.seen().await), ["closed"]);

    let back = world.backend.rooms.undelete(&room("lobby")).await.unwrap();

    assert_eq!((&back, world.history("lobby").await), (&before.0, before.1));
    let seen = watching.seen().await;
    assert_eq!((kinds(&seen)[0], kinds(&seen).contains(&"undeleted")), ("hello", true));
    assert!(matches!(world.backend.rooms.undelete(&room("lobby")).await, Err(Refused::Conflict(_))));
    world.pass(60.0).await;
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Ari?"), ("aria", "Hello!")]));
}

#[tokio::test(start_paused = true)]
async fn a_room_that_is_about_to_be_deleted_still_is_after_a_crash() {
    let world = World::with_lobby().await;
    world.say("lobby", "one").await;
    let deletion = world.backend.rooms.delete(&room("lobby")).await.unwrap();

    let world = world.crash().await;
    let after = world.backend.rooms.deletion(&room("lobby")).await.unwrap();
    let in_between =
        (world.backend.rooms.list().await.unwrap().rooms, world.try_say("lobby", json!({ "from": "Ana", "text": "two" })).await);
    world.pass(10.0).await;
    world.rest().await;

    assert_eq!(after, deletion);
    assert!(in_between.0.is_empty() && in_between.1.is_err());
    assert!(world.backend.rooms.undelete(&room("lobby")).await.is_err());
    world.open("lobby", &["aria"]).await;
    assert_eq!(world.history("lobby").await, []);
}

#[tokio::test(start_paused = true)]
async fn a_room_whose_time_came_while_the_server_was_down_is_deleted_at_the_start() {
    let world = World::with_lobby().await;
    world.say("lobby", "one").await;
    world.backend.rooms.delete(&room("lobby")).await.unwrap();
    world.set_clock(3_600);

    let world = world.crash().await;

    assert!(matches!(world.backend.rooms.undelete(&room("lobby")).await, Err(Refused::NotFound(_))));
    world.open("lobby", &["aria"]).await;
    assert_eq!(world.history("lobby").await, []);
}

#[tokio::test(start_paused = true)]
async fn a_person_can_be_forgotten_in_a_room_that_is_about_to_be_deleted() {
    let world = World::with_lobby().await;
    world.say("lobby", "one").await;
    world.backend.rooms.delete(&room("lobby")).await.unwrap();

    let forgotten = world.forget("Ana", false).await.unwrap();
    world.rest().await;
    world.backend.rooms.undelete(&room("lobby")).await.unwrap();

    assert_eq!((forgotten.messages, world.history("lobby").await), (1, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_room_has_one_name_in_any_script_and_is_found_by_it() {
    let world = World::new().await;
    let create = async |title: &str| {
        world.backend.rooms.create(of_json(json!({ "title": title, "guild": "home", "companions": ["aria"] }))).await
    };
    let found = async |name: &str| world.backend.rooms.find(name).await.map_err(|refused| refused.to_string());

    let kitchen = create("Großmutters Küche").await.unwrap();
    let same = create("großmutters KU\u{308}CHE").await;
    let other = create("Grossmutters Kuche").await.unwrap();
    let plain = create("lobby").await.unwrap();
    let nothing = create("\u{e000}").await.unwrap();
    let renamed = world.patch("lobby", json!({ "title": "Großmutters Küche" })).await;
    world.patch("lobby", json!({ "title": "Empfang" })).await.unwrap();

    assert_eq!((kitchen.id.as_str(), kitchen.title.as_deref()), ("grossmutters-kuche", Some("Großmutters Küche")));
    assert_eq!((other.id.as_str(), nothing.id.as_str()), ("grossmutters-kuche-2", "room"));
    assert_eq!(plain.title, None, "its id says it");
    for refused in [same.map(drop), renamed.map(drop)] {
        assert!(matches!(refused, Err(Refused::Conflict(detail)) if detail.contains("Großmutters Küche")));
    }
    for name in ["grossmutters-kuche", "Großmutters Küche", " großmutters küche"] {
        assert_eq!(found(name).await, Ok(kitchen.id.clone()), "{name}");
    }
    assert_eq!(found("EMPFANG").await, Ok(room("lobby")));
    let unknown = found("cellar").await.unwrap_err();
    assert!(unknown.starts_with("there is no room cellar; there are Empfang (lobby), "), "{unknown}");
    assert_eq!(&*world.why("grossmutters-kuche", None, None).await.unwrap().room, "Großmutters Küche");
}

#[tokio::test(start_paused = true)]
async fn a_paused_room_receives_messages_and_stays_silent() {
    let world = World::with_lobby().await;

    world.patch("lobby", json!({ "paused": true })).await.unwrap();
    world.say_then_pass("lobby", "Ari?", 60.0).await;

    let decisions = world.decisions("lobby").await;
    assert_eq!(decisions.len(), 1);
    assert_eq!(decisions[0]["reason"], "paused");
    world.patch("lobby", json!({ "paused": false })).await.unwrap();
    world.say_then_pass("lobby", "Ari?", 60.0).await;
    assert_eq!(world.decisions("lobby").await[1]["reason"], "model_no");
}

#[tokio::test(start_paused = true)]
async fn another_interjection_policy_is_shown_and_holds_from_then_on() {
    let world = World::with_lobby().await;
    let mut watching = world.watch("lobby", None).await;
    let interject =
        async |policy: Value| world.patch("lobby", json!({ "companions": { "aria": { "interjection": policy } } })).await;

    interject(json!("very_eager")).await.unwrap();
    for text in ["one", "two", "three"] {
        world.say("lobby", text).await;
    }
    world.pass(60.0).await;
    let back = interject(Value::Null).await.unwrap();

    assert!(watching.seen().await.iter().any(|event| event["event"] == "tempered" && event["interjection"] == "very_eager"));
    assert_eq!(world.decisions("lobby").await[0]["trigger"], "interjection");
    assert_eq!(&*back.companions[0].interjection, "average");
}

#[tokio::test(start_paused = true)]
async fn limits_and_models_of_one_room_are_checked_shown_and_used() {
    let small = json!({ "models": { "small": { "base_url": "http://127.0.0.1:1/v1", "model": "s" } } });
    let world = World::with_lobby_settings(small).await;
    let mut watching = world.watch("lobby", None).await;
    let patch = async |aria: Value| world.patch("lobby", json!({ "companions": { "aria": aria } })).await;

    let unknown = patch(json!({ "model": { "main": "smal" } })).await;
    let never = patch(json!({ "max_turns": 0 })).await;
    let changed = patch(json!({ "max_turns": 1, "repetition": false, "model": { "side": "small" } })).await.unwrap();
    world.side.answers([Ok("They mean me.\nYES")]);
    world.say_then_pass("lobby", "Ari?", 60.0).await;
    let state = serde_json::to_value(world.state("lobby").await).unwrap();
    let back = patch(json!({ "max_turns": null, "repetition": null, "model": null })).await.unwrap();

    let Err(Refused::Invalid { field, detail }) = unknown else { panic!("{unknown:?}") };
    assert_eq!(field, "companions.aria.model.main");
    assert_eq!(&*detail, "\"smal\" is not a model; the models are: main, side, small");
    assert!(matches!(never, Err(Refused::Invalid { field, .. }) if field == "companions.aria.max_turns"));
    let aria = serde_json::to_value(&changed.companions[0]).unwrap();
    assert_eq!(
        (&aria["max_turns"], &aria["repetition"], &aria["model"]),
        (&json!(1), &json!(false), &json!({ "main": "main", "side": "small" }))
    );
    assert!(watching.seen().await.iter().any(|event| event["event"] == "tempered" && event["model"]["side"] == "small"));
    assert_eq!(world.side.asked.lock().last().map(|request| request.model.to_string()).as_deref(), Some("small"));
    let aria = &state["companions"][0];
    assert_eq!((&aria["closing"], &aria["turns"], &aria["max_turns"]), (&json!("terminal"), &json!(1), &json!(1)));
    assert_eq!(back.companions[0].model, ModelChoice::default());
}

#[tokio::test(start_paused = true)]
async fn a_companion_removed_from_the_settings_while_it_was_asked_answers_once_it_is_back() {
    let world = World::with_lobby().await;
    for answer in [Ok("They mean me.\nYES"), Err(NoAnswer::TimedOut { after: Duration::from_secs(1) })] {
        world.side.answers([answer]);
        world.say("lobby", "Ari, are you there?").await;
        world.rest().await;

        world.reload_companions(&["bruno"]).await;
        world.pass(60.0).await;

        assert!(world.backend.rooms.get(&room("lobby")).await.unwrap().companions.is_empty());
        world.reload_companions(&["aria", "bruno"]).await;
    }

    world.side.answers([Ok("They mean me.\nYES")]);
    world.say_then_pass("lobby", "Ari, and now?", 5.0).await;

    assert_eq!(world.history("lobby").await.last(), lines(&[("aria", "Hello!")]).last());
}

#[tokio::test(start_paused = true)]
async fn a_room_has_a_language_of_its_own() {
    let world = World::with_lobby().await;
    let put = async |language: Value| {
        let mut body = json!({ "guild": "home", "companions": ["aria"] });
        if language != json!("kept") {
            body["language"] = language;
        }
        world.put_room("lobby", body).await.map(|room| room.language)
    };
    let language = || world.context.memberships.language(&room("lobby").channel());

    assert_eq!(put(json!("de")).await.unwrap().as_deref(), Some("de"));
    assert_eq!(put(json!("kept")).await.unwrap().as_deref(), Some("de"));
    let Err(Refused::Invalid { field, detail, .. }) = put(json!("xx")).await else { panic!("there is no such language") };
    assert_eq!((&*field, language().as_deref()), ("language", Some("de")));
    assert!(detail.contains("choose one of de, en, es, fr"), "{detail}");
    let world = world.crash().await;
    assert_eq!(world.backend.rooms.get(&room("lobby")).await.unwrap().language.as_deref(), Some("de"));
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().unwrap()).collect()
}

//! Every route of the API: its responses, and how invalid requests are refused.

use serde_json::json;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use super::*;

#[tokio::test]
async fn a_room_is_created_changed_listed_and_deleted() {
    let world = World::new().await;

    let made = world.send(Method::PUT, "/api/rooms/study", json!({ "guild": "home", "companions": ["ben"] })).await;
    let again = world.send(Method::PUT, "/api/rooms/study", json!({ "guild": "home", "companions": [{ "id": "aria" }] })).await;
    let listed = world.get("/api/rooms").await;
    let deleted = world.ask(Method::DELETE, "/api/rooms/study").await;
    let gone = world.get("/api/rooms/study").await;

    let study = |id: &str, name: &str| {
        let companion = json!({
            "id": id, "name": name, "ai": true, "aliases": [], "external": false, "interjection": "average", "repetition": true,
            "model": { "main": "main", "side": "side" }, "paused": false,
        });
        json!({ "id": "study", "guild": "home", "companions": [companion], "paused": false, "last_at": null, "voice_notes": "off" })
    };
    assert_eq!(made, (201, study("ben", "Ben")));
    assert_eq!(again, (200, study("aria", "Aria")));
    assert_eq!(listed.1["rooms"].as_array().unwrap().len(), 2);
    assert_eq!(deleted, (202, json!({ "messages": 0, "deleted_at": "2026-05-01T12:00:00.000Z" })));
    assert_eq!(gone.0, 404);
    assert_eq!(gone.1["detail"], "there is no room study, PUT /api/rooms/study creates it");
}

#[tokio::test]
async fn a_room_is_created_by_its_title_and_found_by_it() {
    let world = World::new().await;
    let create = async |new: Value| world.post("/api/rooms", new).await;

    let (status, kitchen) = create(json!({ "title": " Großmutters Küche ", "guild": "home", "companions": ["ben"] })).await;
    let untitled = create(json!({ "guild": "home", "companions": [] })).await;
    let blank = create(json!({ "title": "\u{200b}", "guild": "home", "companions": [] })).await;
    let twice = create(json!({ "title": "x", "guild": "home", "companions": ["ben", "ben"] })).await;
    let found = world.get("/api/why?room=Gro%C3%9Fmutters+K%C3%BCche").await;
    let unknown = world.get("/api/why?room=a+b").await;

    assert_eq!((status, &kitchen["id"], &kitchen["title"]), (201, &json!("grossmutters-kuche"), &json!("Großmutters Küche")));
    let field = |(status, problem): (u16, Value)| (status, problem["field"].as_str().unwrap_or_default().to_owned());
    assert_eq!(
        [untitled, blank, twice].map(field).map(|(status, field)| (status, field)),
        [(422, "title".to_owned()), (422, "title".to_owned()), (422, "companions[1]".to_owned()),]
    );
    assert_eq!((found.0, unknown.0), (200, 404));
}

#[tokio::test]
async fn a_deletion_is_counted_before_and_cannot_be_undone_where_there_is_none() {
    let world = World::new().await;
    world.post("/api/rooms/lobby/messages", json!({ "from": "Ana", "text": "hi" })).await;

    let counted = world.get("/api/rooms/lobby/deletion").await;
    let undone = world.ask(Method::POST, "/api/rooms/lobby/undelete").await;
    let person = world.get("/api/forget?guild=home&person=Ana&answers=true").await;
    let nobody = world.get("/api/forget?guild=home").await;

    assert_eq!(counted, (200, json!({ "messages": 1, "deleted_at": null })));
    assert_eq!(undone.0, 409);
    assert_eq!(person, (200, json!({ "messages": 2, "decisions": 1, "summaries": 0, "in_file_until": null })));
    assert_eq!((nobody.0, &nobody.1["field"]), (400, &json!("person")));
}

#[tokio::test]
async fn an_export_for_people_is_a_file_and_never_a_page_of_the_server() {
    let world = World::new().await;

    for (form, media_type, name) in
        [("markdown", "text/markdown; charset=utf-8", "lobby.md"), ("html", "text/html; charset=utf-8", "lobby.html")]
    {
        let response = world.request(Method::GET, &format!("/api/export?room=lobby&as={form}")).send().await.unwrap();

        assert_eq!((response.status().as_u16(), &response.headers()["content-type"]), (200, &media_type.parse().unwrap()));
        assert_eq!(response.headers()["content-disposition"], format!("attachment; filename=\"{name}\""));
    }
}

#[tokio::test]
async fn a_title_has_one_line_of_visible_characters() {
    let world = World::new().await;
    let rename = async |title: Value| {
        let (status, room) = world.send(Method::PATCH, "/api/rooms/lobby", json!({ "title": title })).await;
        (status, room["title"].clone(), room["field"].clone())
    };

    let named = rename(json!(" Harbour talk ")).await;
    let longest = rename(json!("x".repeat(64))).await;
    let removed = rename(json!(null)).await;

    assert_eq!(named, (200, json!("Harbour talk"), json!(null)));
    assert_eq!(longest.0, 200);
    assert_eq!(removed, (200, json!(null), json!(null)));
    for refused in ["", "x".repeat(65).as_str(), "two\nlines", "\u{200b}"] {
        assert_eq!(rename(json!(refused)).await, (422, json!("Unprocessable Entity"), json!("title")), "{refused:?}");
    }
}

#[tokio::test]
async fn stop_is_refused_where_nothing_can_be_stopped() {
    let world = World::new().await;
    let stop = async |path: &str| world.send(Method::POST, path, json!({})).await.0;

    assert_eq!(stop("/api/rooms/lobby/replies/aria/stop").await, 409);
    assert_eq!(stop("/api/rooms/lobby/replies/nobody/stop").await, 404);
    assert_eq!(stop("/api/rooms/none/replies/aria/stop").await, 404);
    assert_eq!(stop("/api/rooms/lobby/replies/a%20b/stop").await, 422);
}

#[tokio::test]
async fn a_room_of_another_guild_and_too_many_companions_are_refused() {
    let world = World::new().await;
    let put = async |guild: &str, companions: Value| {
        let plan = json!({ "guild": guild, "companions": companions });
        let (status, problem) = world.send(Method::PUT, "/api/rooms/lobby", plan).await;
        (
            status,
            problem["field"].as_str().unwrap_or_default().to_owned(),
            problem["detail"].as_str().unwrap_or_default().to_owned(),
        )
    };
    let ids = |count: usize| (0..count).map(|number| format!("c{number}")).collect::<Vec<_>>();

    let foreign = put("away", json!([])).await;
    let most = put("home", json!(ids(32))).await;
    let many = put("home", json!(ids(33))).await;
    let twice = put("home", json!(["aria", "aria"])).await;
    let guild = put("", json!([])).await;

    assert_eq!(foreign.0, 409);
    assert_eq!(most.0, 200);
    assert_eq!((many.0, &*many.1, &*many.2), (422, "companions", "names 33 companions, at most 32 can be in a room"));
    assert_eq!((twice.0, &*twice.1), (422, "companions[1]"));
    assert_eq!((guild.0, &*guild.1), (422, "guild"));
}

#[tokio::test]
async fn a_person_called_like_a_companion_is_accepted_with_a_warning() {
    let world = World::new().await;
    let say = async |from: &str| world.post("/api/rooms/lobby/messages", json!({ "from": from, "text": "hi" })).await;

    let (ana, aria) = (say("Ana").await, say("Aria").await);

    assert_eq!(ana, (202, json!({ "seq": 1 })));
    assert_eq!((aria.0, &aria.1["seq"]), (202, &json!(2)));
    let warning = "from: \"Aria\" is a name of the companion aria, or looks like one; send another name, so that people can tell the two apart";
    assert_eq!(aria.1["warnings"], json!([warning]));
    assert_eq!(aria.1["warning_codes"], json!([{ "code": "warn_your_name", "name": "Aria", "companion": "aria" }]));
}

#[tokio::test]
async fn an_override_is_set_and_removed() {
    let world = World::new().await;
    let patch = async |companion: Value| {
        let body = json!({ "companions": { "aria": companion } });
        world.send(Method::PATCH, "/api/rooms/lobby", body).await.1["companions"][0]["interjection"].clone()
    };

    let set = patch(json!({ "interjection": "quiet" })).await;
    let unchanged = patch(json!({ "paused": true })).await;
    let removed = patch(json!({ "interjection": null })).await;

    assert_eq!([set, unchanged, removed], ["quiet", "quiet", "average"]);
}

#[tokio::test]
async fn an_invalid_patch_is_refused_with_the_name_of_the_field() {
    let world = World::new().await;
    let field = async |body: Value| {
        let (status, problem) = world.send(Method::PATCH, "/api/rooms/lobby", body).await;
        (status, problem["field"].as_str().unwrap_or_default().to_owned())
    };

    assert_eq!(field(json!({ "paused": "yes" })).await, (422, "paused".into()));
    assert_eq!(
        field(json!({ "companions": { "aria": { "text_lull_timeout": "long" } } })).await,
        (422, "companions.aria.text_lull_timeout".into())
    );
    assert_eq!(field(json!({ "companions": { "aria": { "mood": 1 } } })).await, (422, "companions.aria.mood".into()));
    assert_eq!(field(json!({ "companions": { "nobody": {} } })).await, (422, "companions.nobody".into()));
    assert_eq!(field(json!({ "colour": 1 })).await, (422, "colour".into()));
}

#[tokio::test]
async fn an_event_is_accepted_once_and_shown_with_its_kind() {
    let world = World::new().await;
    let path = "/api/rooms/lobby/events";

    let sent = world.post(path, json!({ "id": "e1", "kind": "raid", "who": " Ana ", "text": "Ana raids" })).await;
    let again = world.post(path, json!({ "id": "e1", "kind": "bits", "who": "Ben", "text": "other" })).await;
    let history = world.get("/api/rooms/lobby/history").await;

    assert_eq!([sent, again], [const { 202 }; 2].map(|status| (status, json!({ "seq": 1 }))));
    let message = &history.1["messages"][0];
    assert_eq!([&message["kind"], &message["from"], &message["text"]], ["raid", "Ana", "Ana raids"]);
}

#[tokio::test]
async fn an_invalid_event_is_refused_with_the_name_of_the_field_and_its_limits() {
    let world = World::new().await;
    let good = json!({ "id": "e1", "kind": "raid", "who": "Ana", "text": "Ana raids" });
    let long = "x".repeat(129);

    for (field, value, limits) in [
        ("id", json!(""), "from 1 to 128"),
        ("id", json!(long), "from 1 to 128"),
        ("kind", json!("Raid!"), "1 to 32 of a-z, digits and _"),
        ("kind", json!(&long[..33]), "1 to 32 of a-z, digits and _"),
        ("who", json!(" "), "from 1 to 64"),
        ("text", json!(" "), "no visible characters"),
        ("id", Value::Null, ""),
        ("mood", json!(1), ""),
    ] {
        let mut event = good.clone();
        event[field] = value;
        let (status, problem) = world.post("/api/rooms/lobby/events", event).await;
        assert_eq!((status, problem["field"].as_str()), (422, Some(field)), "{problem}");
        assert!(problem["detail"].as_str().unwrap_or_default().contains(limits), "{problem}");
    }
    let nowhere = world.post("/api/rooms/nowhere/events", good).await;
    assert_eq!(nowhere.0, 404);
}

#[tokio::test]
async fn a_message_is_accepted_once_edited_and_deleted() {
    let world = World::new().await;
    let path = "/api/rooms/lobby/messages";

    let sent = world
        .post(path, json!({ "from": " Ana ", "text": "hi\r\nthere", "id": "m1", "reply_to": 1, "mentions": ["Aria"] }))
        .await;
    let again = world.post(path, json!({ "from": "Ana", "text": "other", "id": "m1" })).await;
    let history = world.get("/api/rooms/lobby/history").await;
    let edited = world.send(Method::PATCH, "/api/rooms/lobby/messages/1", json!({ "text": "hello" })).await;
    let state = world.get("/api/rooms/lobby/state").await;
    let deleted = world.ask(Method::DELETE, "/api/rooms/lobby/messages/1").await;
    let missing = world.ask(Method::DELETE, "/api/rooms/lobby/messages/9").await;

    assert_eq!([sent, again, edited, deleted], [const { 202 }; 4].map(|status| (status, json!({ "seq": 1 }))));
    let message = json!({
        "seq": 1, "id": "m1", "from": "Ana", "role": "user", "text": "hi\nthere", "at": "2026-05-01T12:00:00.000Z", "modality": "text",
        "reply_to": 1,
    });
    assert_eq!(history, (200, json!({ "messages": [message] })));
    assert_eq!(state.1["companions"][0]["buffer"], json!(["hello"]));
    assert_eq!(missing.0, 404);
}

#[tokio::test]
async fn the_state_has_every_field_even_when_it_is_null() {
    let world = World::new().await;

    let (status, state) = world.get("/api/rooms/lobby/state").await;

    assert_eq!(status, 200);
    let companion = json!({
        "id": "aria", "name": "Aria", "interjection": "average", "buffer": [], "message_count": 0, "check_count": 0,
        "next_interjection_at": 9, "lull_at": null, "lull_secs": 10.0, "doing": "listening", "trigger": null, "since": null,
        "retry_at": null, "paused": false, "closing": "none", "heard_closed": 0, "reopen_after": 9, "turns": 0, "max_turns": null,
        "repetition": true, "model": { "main": "main", "side": "side" }, "external": false,
    });
    let expected = json!({
        "companions": [companion], "floor": null, "rounds": [], "turn": null, "streak": 0, "max_companion_streak": 4, "turns": 0,
        "max_turns": null, "repetition": { "score": 0.0, "detections": 0, "judging": false }, "episode": null, "kept_away": null,
        "at": "2026-05-01T12:00:00.000Z",
    });
    assert_eq!(state, expected);
}

#[tokio::test]
async fn a_message_that_does_not_fit_is_refused_by_the_name_of_its_field() {
    let world = World::with(Server { max_text_chars: 10, ..settings() }).await;
    let cases = [
        (json!({ "text": "hi" }), "from"),
        (json!({ "from": "Ana" }), "text"),
        (json!({ "from": 7, "text": "hi" }), "from"),
        (json!({ "from": "", "text": "hi" }), "from"),
        (json!({ "from": " \u{200B} ", "text": "hi" }), "from"),
        (json!({ "from": "x".repeat(65), "text": "hi" }), "from"),
        (json!({ "from": "Ana\u{202E}", "text": "hi" }), "from"),
        (json!({ "from": "A\u{2067}na", "text": "hi" }), "from"),
        (json!({ "from": "A\nna", "text": "hi" }), "from"),
        (json!({ "from": "Ana", "text": "" }), "text"),
        (json!({ "from": "Ana", "text": " \n" }), "text"),
        (json!({ "from": "Ana", "text": null }), "text"),
        (json!({ "from": "Ana", "text": "12345678901" }), "text"),
        (json!({ "from": "Ana", "text": "a\u{0}b" }), "text"),
        (json!({ "from": "Ana", "text": "hi", "id": "" }), "id"),
        (json!({ "from": "Ana", "text": "hi", "id": "x".repeat(129) }), "id"),
        (json!({ "from": "Ana", "text": "hi", "reply_to": -1 }), "reply_to"),
        (json!({ "from": "Ana", "text": "hi", "reply_to": "1" }), "reply_to"),
        (json!({ "from": "Ana", "text": "hi", "mentions": ["ok", ""] }), "mentions[1]"),
        (json!({ "from": "Ana", "text": "hi", "mentions": vec!["a"; 65] }), "mentions"),
        (json!({ "from": "Ana", "text": "hi", "role": "companion" }), "role"),
    ];

    for (body, field) in cases {
        let (status, problem) = world.post("/api/rooms/lobby/messages", body.clone()).await;

        assert_eq!((status, &problem["field"]), (422, &json!(field)), "{body}");
    }
    assert_eq!(world.get("/api/rooms/lobby/history").await.1["messages"], json!([]));
}

#[tokio::test]
async fn the_history_is_read_in_parts_oldest_first() {
    let world = World::new().await;
    for text in ["1", "2", "3", "4", "5"] {
        world.post("/api/rooms/lobby/messages", json!({ "from": "Ana", "text": text })).await;
    }
    let texts = async |query: &str| {
        let (_, history) = world.get(&format!("/api/rooms/lobby/history?{query}")).await;
        history["messages"].as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap()).collect::<String>()
    };

    assert_eq!(texts("").await, "12345");
    assert_eq!(texts("limit=2").await, "45");
    assert_eq!(texts("after=1&limit=2&before=").await, "23");
    assert_eq!(texts("before=4&limit=2").await, "23");
}

#[tokio::test]
async fn an_invalid_query_is_refused_with_the_name_of_the_parameter() {
    let world = World::new().await;
    let cases = [
        ("/api/rooms/lobby/history?limit=0", "limit"),
        ("/api/rooms/lobby/history?limit=1001", "limit"),
        ("/api/rooms/lobby/history?limit=-1", "limit"),
        ("/api/rooms/lobby/history?after=x", "after"),
        ("/api/rooms/lobby/history?until=3", "until"),
        ("/api/decisions?after=3", "after"),
        ("/api/usage?from=yesterday", "from"),
        ("/api/usage?to=24h", "to"),
        ("/api/usage?from=2026-05-02T00:00:00Z&to=2026-05-01T00:00:00Z", "from"),
        ("/api/usage?guild=a%07b", "guild"),
        ("/api/usage?since=1", "since"),
        ("/api/usage/receptions?days=0", "days"),
        ("/api/usage/receptions?days=93", "days"),
        ("/api/usage/receptions?days=week", "days"),
        ("/api/usage/receptions?from=2026-05-01T00:00:00Z", "from"),
        ("/api/usage/safety?from=2026-05", "from"),
        ("/api/why", "room"),
        ("/api/why?room=lobby&at=noon", "at"),
        ("/api/why?room=lobby&at=12&message=3", "message"),
        ("/api/export?as=replay", "room"),
        ("/api/export?as=html", "room"),
        ("/api/export?as=pdf", "as"),
        ("/api/export?person=Ana", "guild"),
        ("/api/export?guild=home", "person"),
        ("/api/export?guild=home&person=Ana&room=lobby", "person"),
        ("/api/live?after=12", "after"),
    ];

    for (path, field) in cases {
        let (status, problem) = world.get(path).await;

        assert_eq!((status, &problem["field"]), (400, &json!(field)), "{path}: {problem}");
    }
}

#[tokio::test]
async fn a_path_with_invalid_ids_is_refused() {
    let world = World::new().await;

    let room = world.get("/api/rooms/a%20b").await;
    let long = world.get(&format!("/api/rooms/{}", "x".repeat(65))).await;
    let seq = world.ask(Method::DELETE, "/api/rooms/lobby/messages/first").await;
    let bytes = world.get("/api/rooms/%FF").await;
    let unknown = world.get("/api/nothing").await;

    assert_eq!((room.0, &room.1["field"]), (422, &json!("room")));
    assert_eq!((long.0, &long.1["field"]), (422, &json!("room")));
    assert_eq!((seq.0, &seq.1["field"]), (422, &json!("seq")));
    assert_eq!(bytes.0, 400);
    assert_eq!((unknown.0, &unknown.1["detail"]), (404, &json!("there is no /api/nothing")));
}

#[tokio::test]
async fn usage_is_returned_with_cost_and_limits() {
    let world = World::new().await;

    let (status, usage) = world.get("/api/usage?guild=home&from=2026-05-01T00:00:00%2B02:00").await;
    let unescaped = world.get("/api/usage?from=2026-05-01T00:00:00+02:00&to=").await;
    let unknown = world.get("/api/usage?guild=nowhere").await;

    let calls = json!({
        "calls": 3, "failed_calls": 1, "input_tokens": 1000, "output_tokens": 200, "cache_read_tokens": 400, "cost": 0.0014, "unpriced_calls": 0,
    });
    let mut total = json!({ "statements": 1, "evaluations": 1, "addresses": 1 });
    let mut by = json!({ "companion": null, "model": "m", "provider": "p", "role": "side" });
    for object in [&mut total, &mut by] {
        object.as_object_mut().unwrap().extend(calls.as_object().unwrap().clone());
    }
    total["speech"] = json!({ "recognised_secs": 1.5, "characters": 0, "cost": 0.015 });
    total["tools"] = json!({ "calls": 2, "cost": 0.01 });
    let mut guild = total.clone();
    guild["guild"] = "home".into();
    guild["tools_by"] = json!([{ "companion": "aria", "tool": "search", "calls": 2, "cost": 0.01 }]);
    guild["speech_by"] = json!([{
        "service": "speech_recognition", "companion": null, "provider": "p", "recognised_secs": 1.5, "characters": 0, "cost": 0.015,
    }]);
    guild["by"] = json!([by]);
    guild["guests"] = json!([{ "name": "Ben", "messages": 3, "voice_secs": 60, "tokens": 1200 }]);
    guild["caps"] = json!({
        "tokens": { "used": 1200, "limit": null },
        "statements": { "used": 1, "limit": 1, "free_at": "2026-05-01T12:01:00.000Z" },
        "tool_calls": { "used": 2, "limit": 1000 },
        "recognised_secs": { "used": 1, "limit": 600 },
    });
    let expected = json!({
        "from": "2026-04-30T22:00:00.000Z", "to": "2026-05-01T12:00:00.000Z", "currency": "USD", "guilds": [guild], "total": total,
    });
    assert_eq!((status, usage), (200, expected.clone()));
    assert_eq!(unescaped, (200, expected));
    assert_eq!(unknown.0, 404);
}

#[tokio::test]
async fn the_reception_of_statements_is_returned_by_day() {
    let world = World::new().await;

    let (status, receptions) = world.get("/api/usage/receptions?guild=home&days=7").await;
    let usual = world.get("/api/usage/receptions").await.1;
    let unknown = world.get("/api/usage/receptions?guild=nowhere").await;

    let by = json!([{
        "day": "2026-05-01", "companion": "aria", "trigger": "direct_address", "model": "m", "received": { "answered": 3, "talked_past": 1 },
    }]);
    let expected = json!({
        "from": "2026-04-25T00:00:00.000Z", "to": "2026-05-01T12:00:00.000Z", "guilds": [{ "guild": "home", "by": by }],
    });
    assert_eq!((status, receptions), (200, expected));
    assert_eq!(usual["from"], "2026-04-18T00:00:00.000Z");
    assert_eq!(unknown.0, 404);
}

#[tokio::test]
async fn figures_that_laws_ask_for_are_returned_by_month() {
    let world = World::new().await;

    let (status, figures) = world.get("/api/usage/safety?guild=home&from=2026-04-01T00:00:00Z").await;
    let unknown = world.get("/api/usage/safety?guild=nowhere").await;

    let sums = json!({ "told": { "first": 2, "day": 1, "interval": 0 }, "helped": 1, "refused": 0 });
    let month = json!({ "guild": "home", "month": "2026-05", "told": sums["told"], "helped": 1, "refused": 0 });
    assert_eq!((status, figures), (200, json!({ "from": "2026-04", "to": "2026-05", "months": [month], "total": sums })));
    assert_eq!(unknown.0, 404);
}

#[tokio::test]
async fn the_page_is_told_where_voices_go_before_a_call() {
    let world = World::new().await;

    let described = world.get("/api/rooms/lobby/voice").await;

    let recognition = json!({ "provider": "deepgram", "host": "ears.example" });
    let synthesis = json!([{ "provider": "rehearsal", "host": null }]);
    let expected =
        json!({ "recognition": recognition, "fallbacks": [], "recognises_words": true, "synthesis": synthesis, "people": [] });
    assert_eq!(described, (200, expected));
}

#[tokio::test]
async fn decisions_and_their_stories_are_returned() {
    let world = World::new().await;

    let decisions = world.get("/api/decisions?room=lobby&companion=&after=1").await;
    let none = world.get("/api/decisions?room=lobby&after=2").await;
    let now = world.get("/api/why?room=lobby&companion=aria").await;
    let event = world.get("/api/why?room=lobby&at=12").await;
    let message = world.get("/api/why?room=lobby&companion=Mira%20Vale&message=m-17").await;
    let moment = world.get("/api/why?room=lobby&at=2026-05-01T14:00:00%2B02:00").await;
    let unescaped = world.get("/api/why?room=lobby&at=2026-05-01T14:00:00+02:00").await;

    let decision = json!({
        "seq": 2, "at": "2026-05-01T12:00:00.000Z", "room": "lobby", "companion": "aria", "trigger": "lull", "decision": "NO",
        "reason": "model_no", "message_count": 1, "why": "nothing for me in lobby",
    });
    assert_eq!(decisions, (200, json!({ "decisions": [decision] })));
    assert_eq!(none.1, json!({ "decisions": [] }));
    let line = json!({ "at": "2026-05-01T12:00:00.000Z", "seq": null, "event": "message", "text": "nothing yet" });
    assert_eq!(now, (200, json!({ "room": "lobby", "story": [line], "decision": null, "waiting_for": null, "prompt": null })));
    assert_eq!(event.1["story"][0]["text"], "event 12");
    assert_eq!(message.1["story"][0]["text"], "message m-17 of Mira Vale");
    assert_eq!(moment.1["story"][0]["text"], "moment 1777636800000000");
    assert_eq!(unescaped, moment);
}

#[tokio::test]
async fn a_copy_that_a_command_verifies_is_deleted_when_its_connection_ends() {
    let world = World::new().await;
    let (file, mut deleted) = mpsc::channel::<()>(1);
    world.backend.probe().copy = Some(file);
    let request = world.request(Method::POST, "/api/backup").json(&json!({ "verified_by": 7 }));

    let mut response = request.send().await.unwrap();
    let line = response.chunk().await.unwrap().expect("a line");
    let is_there = deleted.try_recv() == Err(TryRecvError::Empty);
    drop(response);

    let expected = json!({ "to": "/data/verify-7.backup", "entries": 3 });
    assert_eq!((serde_json::from_slice::<Value>(&line).unwrap(), is_there), (expected, true));
    assert_eq!(deleted.recv().await, None);
}

#[tokio::test]
async fn a_copy_that_a_command_verifies_is_deleted_when_the_server_stops() {
    let mut world = World::new().await;
    let (file, mut deleted) = mpsc::channel::<()>(1);
    world.backend.probe().copy = Some(file);
    let request = world.request(Method::POST, "/api/backup").json(&json!({ "verified_by": 7 }));
    let response = request.send().await.unwrap();

    drop(world.stop.take());
    let rest = response.text().await.unwrap();

    assert_eq!((rest.lines().count(), deleted.recv().await), (1, None));
}

#[tokio::test]
async fn operators_can_manage_quarantine_backups_and_deletions() {
    let world = World::new().await;

    let quarantine = world.get("/api/quarantine").await;
    for act in [
        "/api/quarantine/discord:1/release",
        "/api/quarantine/channel:console:den/release",
        "/api/quarantine/a1/retry",
        "/api/quarantine/a1/drop",
        "/api/rooms/lobby/clear",
    ] {
        assert_eq!(world.ask(Method::POST, act).await.0, 204, "{act}");
    }
    let missing = world.ask(Method::POST, "/api/quarantine/b2/retry").await;
    let not_alone = world.ask(Method::POST, "/api/quarantine/channel:console:lobby/release").await;
    let backup = world.post("/api/backup", json!({ "to": "/tmp/copy.backup" })).await;
    let forgotten = world.post("/api/forget", json!({ "guild": "home", "person": "Ana" })).await;
    let nobody = world.post("/api/forget", json!({ "guild": "home", "person": " " })).await;
    let nowhere = world.post("/api/backup", json!({ "to": "" })).await;
    let neither = world.post("/api/backup", json!({})).await;

    let (at, detail) = ("2026-05-01T12:00:00.000Z", "a bug");
    let guild = json!({ "id": "discord:1", "since": at, "until": at, "detail": detail });
    let channel =
        json!({ "id": "channel:console:den", "guild": "home", "room": "den", "since": at, "until": at, "detail": detail });
    let message = json!({ "id": "a1", "guild": "home", "room": "lobby", "seq": 1, "at": at, "attempts": 3, "detail": detail });
    assert_eq!(quarantine, (200, json!({ "guilds": [guild], "channels": [channel], "messages": [message], "companions": [] })));
    assert_eq!((missing.0, not_alone.0), (404, 404));
    assert_eq!(backup, (200, json!({ "to": "/tmp/copy.backup", "entries": 3 })));
    assert_eq!(
        forgotten,
        (200, json!({ "messages": 2, "decisions": 1, "summaries": 0, "in_file_until": "2026-05-01T12:00:00.000Z" }))
    );
    assert_eq!((nobody.0, &nobody.1["field"]), (422, &json!("person")));
    assert_eq!((nowhere.0, &nowhere.1["field"]), (422, &json!("to")));
    assert_eq!((neither.0, &neither.1["field"]), (422, &json!("to")));
}

#[tokio::test]
async fn an_export_is_streamed_as_lines() {
    let world = World::new().await;

    let response = world.request(Method::GET, "/api/export?room=lobby&as=replay").send().await.unwrap();

    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    assert_eq!(response.text().await.unwrap(), "{\"n\":1}\n{\"as\":\"replay\"}\n");
}

#[tokio::test]
async fn the_messages_of_a_person_in_a_guild_are_exported() {
    let world = World::new().await;

    let response = world.request(Method::GET, "/api/export?guild=home&person=Ana").send().await.unwrap();

    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    assert_eq!(response.text().await.unwrap(), "{\"of\":\"Ana\",\"in\":\"home\"}\n");
}

#[tokio::test]
async fn an_export_that_fails_midway_does_not_look_complete() {
    let world = World::new().await;
    world.backend.add("torn");

    let read = async { world.request(Method::GET, "/api/export?room=torn").send().await?.bytes().await };
    let raw = world.raw("GET /api/export?room=torn HTTP/1.1\r\nHost: localhost\r\n\r\n").await;

    assert!(read.await.is_err());
    let last = raw.lines().rfind(|line| line.starts_with('{')).unwrap_or_default();
    assert!(
        serde_json::from_str::<Value>(last).is_ok_and(|why| why["status"] == 500),
        "the last line should be the problem: {raw}"
    );
}

#[tokio::test]
async fn companions_are_listed_with_their_settings() {
    let world = World::new().await;

    let (status, companions) = world.get("/api/companions").await;

    assert_eq!((status, &companions["companions"][0]["text_lull_timeout"]), (200, &json!(10.0)));
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused_as_a_problem() {
    let world = World::new().await;
    let path = "/api/rooms/lobby/messages";

    let syntax = world.post_raw(path, "{\"from\": \"Ana\",").await;
    let empty = world.post_raw(path, "").await;
    let array = world.post_raw(path, "[\"Ana\", \"hi\"]").await;
    let latin = world.post_raw(path, b"{\"from\": \"Jos\xe9\", \"text\": \"hi\"}".to_vec()).await;
    let surrogate = world.post_raw(path, r#"{"from": "Ana", "text": "\ud800"}"#).await;
    let deep = world.post_raw(path, "{\"from\":".to_owned() + &"[".repeat(30_000)).await;
    let form = world.request(Method::POST, path).header("content-type", "text/plain").body("{}").send().await.unwrap();

    assert_eq!([syntax.0, empty.0, array.0, latin.0, surrogate.0], [400, 400, 422, 400, 400]);
    assert!(matches!(deep.0, 400 | 422));
    assert!(syntax.1["detail"].as_str().unwrap().starts_with("the body is not valid JSON: "));
    assert_eq!(form.status(), 415);
    assert_eq!(form.headers()["content-type"], "application/problem+json");
}

#[tokio::test]
async fn json_is_accepted_without_a_content_type_and_with_parameters() {
    let world = World::new().await;
    let body = r#"{"from": "Ana", "text": "hi"}"#;
    let post = || world.request(Method::POST, "/api/rooms/lobby/messages").body(body);

    let bare = post().send().await.unwrap().status();
    let with_charset = post().header("content-type", "Application/JSON; charset=utf-8").send().await.unwrap().status();

    assert_eq!([bare, with_charset], [202, 202]);
}

#[tokio::test]
async fn an_unsupported_method_is_refused_with_the_allowed_ones() {
    let world = World::new().await;

    let response = world.request(Method::DELETE, "/api/rooms").send().await.unwrap();

    assert_eq!(response.status(), 405);
    assert_eq!(response.headers()["allow"], "GET,HEAD,POST");
    assert_eq!(response.headers()["content-type"], "application/problem+json");
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let world = World::new().await;

    let response = world.request(Method::HEAD, "/api/rooms").send().await.unwrap();

    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(response.text().await.unwrap(), "");
}

#[tokio::test]
async fn an_unavailable_backend_is_reported_with_retry_after() {
    let world = World::new().await;

    let response = world.request(Method::GET, "/api/rooms/full").send().await.unwrap();

    assert_eq!((response.status().as_u16(), &response.headers()["retry-after"]), (503, &"7".parse().unwrap()));
}

#[tokio::test]
async fn a_panicking_handler_does_not_affect_other_requests() {
    let world = World::new().await;

    let boom = world.get("/api/rooms/boom").await;
    let others = world.get("/api/rooms/lobby").await;

    assert_eq!((boom.0, &boom.1["title"]), (500, &json!("Internal Server Error")));
    assert_eq!(others.0, 200);
}

#[tokio::test]
async fn a_channel_of_another_platform_is_found_by_its_whole_id_with_and_without_escapes() {
    let world = World::new().await;
    world.backend.add_channel("discord:10", "discord:1", "#general · Home");

    for path in ["discord:10", "discord%3A10", "discord%3a10"] {
        let (status, room) = world.get(&format!("/api/rooms/{path}")).await;
        assert_eq!((status, &room["id"], &room["guild"]), (200, &json!("discord:10"), &json!("discord:1")), "{path}");
        assert_eq!(room["title"], "#general · Home");
        assert_eq!(world.get(&format!("/api/rooms/{path}/history")).await.0, 200);
        assert_eq!(world.get(&format!("/api/rooms/{path}/state")).await.0, 200);
        assert_eq!(world.ask(Method::POST, &format!("/api/rooms/{path}/clear")).await.0, 204);
        assert_eq!(world.get(&format!("/api/decisions?room={path}")).await.0, 200);
        assert_eq!(world.get(&format!("/api/why?room={path}")).await.0, 200);
        assert_eq!(world.get(&format!("/api/export?room={path}")).await.0, 200);
        let patched = world.send(Method::PATCH, &format!("/api/rooms/{path}"), json!({ "paused": true })).await;
        assert_eq!((patched.0, &patched.1["paused"]), (200, &json!(true)));
    }
    for path in ["console:lobby", "discord:", "discord:1:2", "discord%3A1%2F2", ":1"] {
        let (status, problem) = world.get(&format!("/api/rooms/{path}")).await;
        assert_eq!((status, &problem["field"]), (422, &json!("room")), "{path}");
        assert!(problem["detail"].as_str().unwrap().contains("discord:1234"), "{problem}");
    }
    assert_eq!(world.ask(Method::DELETE, "/api/rooms/discord%3A10").await.0, 202);
}

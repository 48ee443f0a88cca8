//! Voice is set up on the page while the server runs: tried, in force for the next call, and kept; `check`, `health` and the server agree.

use reqwest::{Method, StatusCode};

use super::*;

/// What the page sends for these services.
fn values(hearing: &deepgram::Fake, speaking: &elevenlabs::Fake, hearing_key: &str) -> Value {
    json!({ "values": {
        "speech.services.page_ears.api": "deepgram",
        "speech.services.page_ears.base_url": hearing.url,
        "speech.services.page_ears.api_key": hearing_key,
        "speech.recognition": ["page_ears"],
        "speech.services.page_voice.api": "elevenlabs",
        "speech.services.page_voice.base_url": speaking.url,
        "speech.services.page_voice.api_key": elevenlabs::KEY,
        "speech.services.page_voice.voice": "calm",
        "speech.synthesis": "page_voice",
    } })
}

fn about_speech(mut tried: Value) -> Value {
    tried["about"] = "speech".into();
    tried
}

#[tokio::test]
async fn voice_is_tried_and_set_up_on_the_page_without_a_restart() {
    let hearing = deepgram(&["How was your day?", QUESTION, QUESTION]).await;
    let speaking = elevenlabs::Fake::new([]).await;
    let model = Model::holding("nobody").await;
    let premises = model.serving(Premises::new());
    let server = premises.start().await;
    let send = async |method, path, body: Value| server.ask(method, path, Some(body)).await;

    let (_, wrong) = send(Method::POST, "/api/settings/try", about_speech(values(&hearing, &speaking, "wrong"))).await;
    let (status, tried) = send(Method::POST, "/api/settings/try", about_speech(values(&hearing, &speaking, deepgram::KEY))).await;
    let (_, unknown) = send(Method::PATCH, "/api/settings", json!({ "values": { "server.listen": "0.0.0.0:80" } })).await;
    let (kept_status, kept) = send(Method::PATCH, "/api/settings", values(&hearing, &speaking, deepgram::KEY)).await;

    assert_eq!((&wrong["works"], &wrong["lines"][1]["state"]), (&json!(false), &json!("problem")), "{wrong}");
    assert_eq!(
        (status, &tried["works"], &tried["understood"]),
        (StatusCode::OK, &json!(true), &json!("How was your day?")),
        "{tried}"
    );
    assert!(tried["audio"].as_str().is_some_and(|audio| audio.starts_with("UklGR")), "a WAV file: {tried}");
    assert_eq!(unknown["field"], "server.listen");
    assert_eq!(kept_status, StatusCode::OK, "{kept}");
    let mut scene =
        Scene { ana: Page::enter(&server, "lobby", "Ana").await, watch: server.watch("lobby", Some(0)).await, server };
    scene.ana.talk(&sentence()).await;
    assert_eq!(scene.message_of("Ana").await, spoken(QUESTION));
    scene.ana.hear_reply().await;
    scene.ana.leave().await;

    // The same settings hold for commands, and after a restart.
    let checked = premises.run(&["check"]).await.exits_with(0).stdout;
    assert!(checked.contains("page_voice") && checked.contains("page_ears"), "{checked}");
    premises.run(&["health"]).await.exits_with(0);
    let log = scene.server.kill().await;
    let server = premises.start().await;
    let shown = server.get("/api/settings").await;
    assert_eq!(shown["fields"]["speech.recognition"]["value"], json!(["page_ears"]), "{shown}");
    for text in [log, shown.to_string(), kept.to_string(), tried.to_string(), checked] {
        assert!(!text.contains(deepgram::KEY) && !text.contains(elevenlabs::KEY), "{text}");
    }
    server.stop().await;
}

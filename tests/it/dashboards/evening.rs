//! An evening with something of everything, so that there is something to measure: questions answered and not, rounds, a tie, a talk that
//! goes in circles, a server that is killed.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::harness::{Premises, Server, Watch};

/// How the models answer at the moment.
#[derive(Clone, Copy, Debug, Default)]
struct Mood {
    is_keen: bool,
    refuses_questions: bool,
    fails_at_words: bool,
    closing: Option<&'static str>,
}

/// Models, and a collector that takes every span.
#[derive(Clone, Default)]
struct Outside(Arc<Mutex<Mood>>);

/// Where the evening takes place.
pub struct Evening {
    premises: Premises,
    outside: Outside,
    collector: String,
}

impl Evening {
    pub async fn prepare() -> Self {
        let outside = Outside::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let router = Router::new().fallback(answer).with_state(outside.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let model = format!("{url}/v1");
        let rooms = r#"[
            { id = "study", guild = "home", companions = ["aria"] },
            { id = "lobby", guild = "home", companions = ["aria", "bruno", "cleo"] },
        ]"#;
        let mut premises = Premises::shipped().with("console.rooms", rooms);
        for (key, value) in [
            ("models.side.base_url", model.as_str()),
            ("models.side.model", "quick"),
            ("models.main.base_url", &model),
            ("models.main.model", "wordy"),
            ("models.side.input_price", "0.1"),
            ("models.side.output_price", "0.3"),
            ("models.main.input_price", "0.5"),
            ("models.main.output_price", "1.5"),
            ("models.pool.max_attempts", "2"),
            ("models.pool.backoff_secs", "0.01"),
            ("models.breaker.failures", "100"),
            ("turn_taking.turn_delay_secs", "0.01"),
            ("turn_taking.max_companion_streak", "2"),
        ] {
            premises.set(key, value);
        }
        // Aria alone considers pauses: who speaks after her does so because she has spoken.
        for (id, name, lull, tier) in
            [("aria", "Aria", 0.05, "very_eager"), ("bruno", "Bruno", 600.0, "very_quiet"), ("cleo", "Cleo", 600.0, "very_quiet")]
        {
            let text = format!("name = \"{name}\"\ntext_lull_timeout = {lull:?}\ninterjection = \"{tier}\"\n");
            premises.write_companion(id, &text);
        }
        Self { premises, outside, collector: format!("{url}/v1/traces") }
    }

    /// Starts the server, with a collector for its spans.
    pub async fn open(&self) -> Server {
        let mut command = self.premises.command(&[]);
        command.env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &self.collector).env("OTEL_BSP_SCHEDULE_DELAY", "100");
        Server::of(command).await
    }

    /// Kills the server in the middle of a talk, and starts it again.
    pub async fn interrupt(&self, server: Server) -> Server {
        self.mood(Mood { is_keen: true, ..Mood::default() });
        let mut watch = server.watch("study", None).await;
        server.say("study", "Ana", "aria, are you there?").await;
        watch.event("decision").await;
        server.kill().await;
        self.open().await
    }

    /// Something of everything. Who watches goes on watching.
    pub async fn take_place(&self, server: &Server) -> Vec<Watch> {
        let mut study = server.watch("study", None).await;
        let mut lobby = server.watch("lobby", None).await;
        self.in_company(server, &mut lobby).await;
        self.among_themselves(server, &mut lobby).await;
        self.alone(server, &mut study).await;
        self.without_models(server, &mut study).await;
        let (status, _) = server.ask(Method::GET, "/api/rooms/nowhere", None).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        vec![study, lobby]
    }

    /// A lull, an interjection, an address that is answered, and talk that is meant for somebody else.
    async fn alone(&self, server: &Server, study: &mut Watch) {
        self.mood(Mood::default());
        let mut met = (false, false);
        while met != (true, true) {
            server.say("study", "Ana", "It rains again.").await;
            match study.event("decision").await["trigger"].as_str() {
                Some("lull") => met.0 = true,
                Some("interjection") => met.1 = true,
                _ => {}
            }
        }
        self.mood(Mood { is_keen: true, ..Mood::default() });
        server.say("study", "Ana", "aria, what do you say?").await;
        study.event("statement").await;
        let aside = json!({ "from": "Ana", "text": "Your turn to cook.", "mentions": ["Kai"] });
        server.ask(Method::POST, "/api/rooms/study/messages", Some(aside)).await;
        decided(study, "other_addressed").await;
    }

    /// All three want to speak, equally; two do, and the third is stopped by the loop guard.
    async fn in_company(&self, server: &Server, lobby: &mut Watch) {
        self.mood(Mood { is_keen: true, ..Mood::default() });
        server.say("lobby", "Ana", "aria, bruno, cleo: what do you think?").await;
        decided(lobby, "loop_guard").await;
    }

    /// One speaks in a pause, another goes on from its words, both say the same; then one of them sees the end coming.
    async fn among_themselves(&self, server: &Server, lobby: &mut Watch) {
        server.say("lobby", "Ana", "It rains again.").await;
        lobby.event("repetition").await;
        decided(lobby, "loop_guard").await;
        self.mood(Mood { is_keen: true, closing: Some("pre-closing"), ..Mood::default() });
        server.say("lobby", "Ana", "cleo, it is getting late.").await;
        lobby.event("closing").await;
        self.mood(Mood::default());
    }

    /// A question that is refused and asked again, and words that never come.
    async fn without_models(&self, server: &Server, study: &mut Watch) {
        self.mood(Mood { refuses_questions: true, ..Mood::default() });
        server.say("study", "Ana", "aria, can you hear me?").await;
        study.event("error").await;
        self.mood(Mood { is_keen: true, fails_at_words: true, ..Mood::default() });
        server.say("study", "Ana", "aria, and now?").await;
        study.event("failed").await;
        self.mood(Mood::default());
    }

    fn mood(&self, mood: Mood) {
        *self.outside.0.lock().expect("no panic while held") = mood;
    }
}

/// Waits for a decision for this reason.
async fn decided(watch: &mut Watch, reason: &str) {
    while watch.event("decision").await["reason"] != reason {}
}

async fn answer(State(outside): State<Outside>, uri: Uri, body: axum::body::Bytes) -> Response {
    if uri.path() == "/v1/traces" {
        return StatusCode::OK.into_response();
    }
    let Ok(asked) = serde_json::from_slice::<Value>(&body) else { return StatusCode::BAD_REQUEST.into_response() };
    let mood = *outside.0.lock().expect("no panic while held");
    let is_question = asked["model"] == "quick";
    if is_question && mood.refuses_questions {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if !is_question && mood.fails_at_words {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let is_vote = asked["messages"].to_string().contains("Answer with one JSON object");
    let decision = if mood.is_keen { "YES" } else { "NO" };
    let words = match (is_question, is_vote) {
        (true, true) => {
            let closing = mood.closing.unwrap_or("none");
            json!({ "reason": "Why not.", "decision": decision, "importance": 5, "selected": false, "closing": closing })
                .to_string()
        }
        (true, false) => format!("Why not.\n{decision}"),
        (false, _) => "We have said that before, have we not?".to_owned(),
    };
    let answer = json!({
        "id": "answer",
        "model": asked["model"],
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": words }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 },
    });
    Json(answer).into_response()
}

//! An evening of talk that produces every kind of metric: answered and unanswered questions, rounds, a tie, repetition, a voice call, and a killed
//! server.

use std::sync::Arc;

use parking_lot::Mutex;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::call::Page;
use crate::harness::model::{Answer, Model, prompt};
use crate::harness::{Collector, Premises, Server, Watch};

/// How the models answer at present.
#[derive(Clone, Copy, Debug, Default)]
struct Behaviour {
    wants_to_speak: bool,
    refuses_questions: bool,
    fails_statements: bool,
    calls_a_tool: bool,
    closing: Option<&'static str>,
}

/// The server's premises, how its models answer, and its collector.
pub struct Evening {
    premises: Premises,
    behaviour: Arc<Mutex<Behaviour>>,
    collector: Collector,
}

impl Evening {
    pub async fn prepare() -> Self {
        let behaviour = Arc::<Mutex<Behaviour>>::default();
        let current = Arc::clone(&behaviour);
        let model = Model::start(move |request| answer(*current.lock(), request)).await;
        let rooms = r#"[
            { id = "study", guild = "home", companions = ["aria"] },
            { id = "lobby", guild = "home", companions = ["aria", "bruno", "cleo"] },
            { id = "parlour", guild = "home", companions = ["aria"] },
        ]"#;
        model.streams_with_cached(4);
        let mut premises = model.serving(Premises::shipped().with("console.rooms", rooms));
        for (key, value) in [
            ("models.side.input_price", "0.1"),
            ("models.side.output_price", "0.3"),
            ("models.main.input_price", "0.5"),
            ("models.main.output_price", "1.5"),
            ("models.pool.max_attempts", "2"),
            ("models.pool.backoff_secs", "0.01"),
            ("models.breaker.failures", "100"),
            ("turn_taking.turn_delay_secs", "0.01"),
            ("turn_taking.max_companion_streak", "3"),
        ] {
            premises.set(key, value);
        }
        // Only Aria considers lulls. The others speak after her because she has spoken.
        for (id, name, lull, level) in
            [("aria", "Aria", 0.05, "very_eager"), ("bruno", "Bruno", 600.0, "very_quiet"), ("cleo", "Cleo", 600.0, "very_quiet")]
        {
            let text = format!("name = \"{name}\"\ntext_lull_timeout = {lull:?}\ninterjection = \"{level}\"\n");
            premises.write_companion(id, &text);
        }
        Self { premises, behaviour, collector: Collector::start().await }
    }

    /// Starts the server, with a collector for its spans.
    pub async fn open(&self) -> Server {
        let mut command = self.premises.command(&[]);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &self.collector.url).env("OTEL_BSP_SCHEDULE_DELAY", "100");
        Server::of(command).await
    }

    /// Kills the server in the middle of a talk, and starts it again.
    pub async fn interrupt(&self, server: Server) -> Server {
        self.set_behaviour(Behaviour { wants_to_speak: true, ..Behaviour::default() });
        let mut watch = server.watch("study", None).await;
        server.say("study", "Ana", "aria, are you there?").await;
        watch.event("decision").await;
        server.kill().await;
        self.open().await
    }

    /// Produces every kind of event. Returns the open live connections.
    pub async fn run(&self, server: &Server) -> Vec<Watch> {
        let mut study = server.watch("study", None).await;
        let mut lobby = server.watch("lobby", None).await;
        self.tied_round(server, &mut lobby).await;
        self.repetition_and_closing(server, &mut lobby).await;
        self.one_companion(server, &mut study).await;
        self.failing_models(server, &mut study).await;
        self.voice_call(server).await;
        let (status, _) = server.ask(Method::GET, "/api/rooms/nowhere", None).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        vec![study, lobby]
    }

    /// One companion: a lull, an interjection, an answered address, a call of a tool, and a message for somebody else.
    async fn one_companion(&self, server: &Server, study: &mut Watch) {
        self.set_behaviour(Behaviour::default());
        let mut seen = (false, false);
        while seen != (true, true) {
            server.say("study", "Ana", "It rains again.").await;
            match study.event("decision").await["trigger"].as_str() {
                Some("lull") => seen.0 = true,
                Some("interjection") => seen.1 = true,
                _ => {}
            }
        }
        self.set_behaviour(Behaviour { wants_to_speak: true, ..Behaviour::default() });
        server.say("study", "Ana", "aria, what do you say?").await;
        study.event("statement").await;
        self.set_behaviour(Behaviour { wants_to_speak: true, calls_a_tool: true, ..Behaviour::default() });
        server.say("study", "Ana", "aria, roll a die.").await;
        study.event("statement").await;
        let message = json!({ "from": "Ana", "text": "Your turn to cook.", "mentions": ["Kai"] });
        server.ask(Method::POST, "/api/rooms/study/messages", Some(message)).await;
        decided(study, "other_addressed").await;
    }

    /// Three companions want to speak equally. All do, and the loop guard stops what follows.
    async fn tied_round(&self, server: &Server, lobby: &mut Watch) {
        self.set_behaviour(Behaviour { wants_to_speak: true, ..Behaviour::default() });
        server.say("lobby", "Ana", "aria, bruno, cleo: what do you think?").await;
        decided(lobby, "loop_guard").await;
    }

    /// One companion speaks in a lull, and two others say the same words after it. Then one votes that the conversation is closing.
    async fn repetition_and_closing(&self, server: &Server, lobby: &mut Watch) {
        server.say("lobby", "Ana", "It rains again.").await;
        lobby.event("repetition").await;
        decided(lobby, "loop_guard").await;
        self.set_behaviour(Behaviour { wants_to_speak: true, closing: Some("closing"), ..Behaviour::default() });
        server.say("lobby", "Ana", "cleo, it is getting late.").await;
        lobby.event("closing").await;
        self.set_behaviour(Behaviour::default());
    }

    /// A refused question that is asked again, and a statement that fails.
    async fn failing_models(&self, server: &Server, study: &mut Watch) {
        self.set_behaviour(Behaviour { refuses_questions: true, ..Behaviour::default() });
        server.say("study", "Ana", "aria, can you hear me?").await;
        study.event("error").await;
        self.set_behaviour(Behaviour { wants_to_speak: true, fails_statements: true, ..Behaviour::default() });
        server.say("study", "Ana", "aria, and now?").await;
        study.event("failed").await;
        self.set_behaviour(Behaviour::default());
    }

    /// Ana asks Aria aloud. Ben talks into the answer, which becomes quieter, and Ana stops it.
    async fn voice_call(&self, server: &Server) {
        self.set_behaviour(Behaviour { wants_to_speak: true, ..Behaviour::default() });
        let mut ana = Page::enter(server, "parlour", "Ana").await;
        let mut ben = Page::enter(server, "parlour", "Ben").await;
        ana.say("Aria, what do you say?").await;
        let speaking = ana.wait_for("speaking").await;
        ben.say("I was in the garden all morning, and nobody came by.").await;
        ana.wait_for("duck").await;
        ana.send(json!({ "type": "stop", "reply": speaking["reply"] })).await;
        ana.wait_for("cut").await;
        ben.leave().await;
        ana.leave().await;
        self.set_behaviour(Behaviour::default());
    }

    fn set_behaviour(&self, behaviour: Behaviour) {
        *self.behaviour.lock() = behaviour;
    }
}

/// Waits for a decision for this reason.
async fn decided(watch: &mut Watch, reason: &str) {
    while watch.event("decision").await["reason"] != reason {}
}

fn answer(behaviour: Behaviour, request: &Value) -> Answer {
    let is_question = request["model"] == "side";
    if is_question && behaviour.refuses_questions {
        return Answer::Refused(401, "not you".to_owned());
    }
    if !is_question && behaviour.fails_statements {
        return Answer::Refused(500, "not now".to_owned());
    }
    let has_called =
        request["messages"].as_array().is_some_and(|messages| messages.iter().any(|message| message["role"] == "tool"));
    if !is_question && behaviour.calls_a_tool && !has_called {
        return Answer::Call("roll", json!({ "dice": "1d6" }));
    }
    let decision = if behaviour.wants_to_speak { "YES" } else { "NO" };
    match (is_question, prompt(request).contains("Answer with one JSON object")) {
        (true, true) => {
            let closing = behaviour.closing.unwrap_or("none");
            json!({ "reason": "Why not.", "decision": decision, "importance": 5, "selected": false, "closing": closing })
                .to_string()
                .into()
        }
        (true, false) => format!("Why not.\n{decision}").into(),
        (false, _) => "We have said that before, have we not?".into(),
    }
}

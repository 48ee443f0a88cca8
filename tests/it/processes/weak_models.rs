//! Side models of 1 to 3 B parameters, which often answer in a form that nobody asked for.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::harness::model::{Answer, Model, prompt};
use crate::harness::{Premises, Watch};

/// How weak models answer a question for a vote, with `decision` and `reason` of the decision, and the number of calls that it takes.
const READABLE: [(&str, &[&str]); 11] = [
    (
        "prose around it",
        &["Sure! Here is my answer:\n{\"reason\": \"Ana asked me.\", \"decision\": \"YES\"}\nI hope this helps!"],
    ),
    ("a code fence", &["```json\n{\"reason\": \"Ana asked me.\", \"decision\": \"YES\", \"importance\": 7}\n```"]),
    ("Markdown", &["**Answer**\n\n**YES**"]),
    ("no closing brace", &["{\"reason\": \"Ana asked me.\", \"decision\": \"YES\", \"importance\": 7"]),
    ("cut in a key", &["{\"reason\": \"Ana asked me.\", \"decision\": \"YES\", \"importa"]),
    ("wrong types", &["{\"reason\": 1, \"decision\": true, \"importance\": \"7\", \"selected\": \"true\", \"closing\": null}"]),
    ("thoughts", &["<think>Maybe NO? She asked me, though.</think>\n{\"reason\": \"Ana asked me.\", \"decision\": \"YES\"}"]),
    ("two lines", &["Ana asked me.\nYES"]),
    ("an empty object at first", &["{}", "{\"reason\": \"Ana asked me.\", \"decision\": \"YES\"}"]),
    ("prose at first", &["I think that I could say something nice about that.", "YES"]),
    ("a template at first", &["{\"reason\": \"string\", \"decision\": \"string\"}", "```\n{\"decision\": \"yes\"}\n```"]),
];

/// Answers that cannot be read, not even after the stricter demand.
const UNREADABLE: [(&str, &[&str]); 5] = [
    ("an empty object", &["{}", "{}"]),
    ("prose", &["As an AI companion I enjoy conversations.", "I would be happy to help you with that!"]),
    ("wrong words", &["{\"decision\": \"MAYBE\"}", "{\"decision\": \"it depends\"}"]),
    ("an open object", &["{\"reason\": \"Ana ", "{\"reason\": \"She asked"]),
    ("a list", &["[1, 2, 3]", "Here is the JSON you asked for:"]),
];

const NO: &str = "{\"reason\": \"Not mine.\", \"decision\": \"NO\"}";

#[tokio::test]
async fn a_direct_address_is_answered_whatever_a_weak_model_writes() {
    let script: Arc<Mutex<Vec<String>>> = Arc::default();
    let answers = Arc::clone(&script);
    let side = Model::start(move |body| {
        let text = prompt(body);
        if !text.contains("You were directly addressed") {
            return NO.to_owned();
        }
        answers.lock().pop().unwrap_or_else(|| "no further call was expected".to_owned())
    })
    .await;
    let main = talkative().await;
    let server = salon(&side, &main).without_limits().start().await;
    let mut salon = server.watch("salon", Some(0)).await;

    let all = READABLE.iter().map(|case| (case, "model_yes")).chain(UNREADABLE.iter().map(|case| (case, "unreadable")));
    for (number, ((name, written), reason)) in all.enumerate() {
        *script.lock() = written.iter().rev().map(|text| (*text).to_owned()).collect();
        let before = addresses(&side);
        let seq = server.say("salon", "Ana", &format!("Aria, question {number}?")).await;

        let decision = decision_of_aria(&mut salon).await;
        let statement = salon.event_that("statement", |event| event["seq"].as_u64() > Some(seq)).await;
        let asked = addresses(&side)[before.len()..].to_vec();

        assert_eq!((&decision["decision"], &decision["reason"]), (&json!("YES"), &json!(reason)), "{name}: {decision}");
        assert_eq!(statement["companion"], "aria", "{name}");
        assert_eq!(asked.len(), written.len(), "{name}");
        for (call, text) in asked.iter().enumerate() {
            assert_eq!(text.contains("could not be read"), call == 1, "{name}: the second call demands the format");
        }
        if reason == "unreadable" {
            let vote = &decision["vote"];
            assert_eq!((&vote["state"], &vote["importance"]), (&json!("speak"), &json!(5.0)), "{name}: {decision}");
        }
        server.rest("salon").await;
    }

    let calls = side.asked().len() + main.asked().len();
    let usage = server.get("/api/usage").await;
    assert_eq!(usage["total"]["calls"], calls, "each call is counted, repeated ones too: {usage}");
    assert_eq!((&usage["total"]["input_tokens"], &usage["total"]["output_tokens"]), (&json!(10 * calls), &json!(5 * calls)));
    server.stop().await;
}

#[tokio::test]
async fn a_lull_with_unreadable_answers_is_a_no() {
    let side = Model::start(|_| "{}").await;
    let main = talkative().await;
    let premises = Premises::new().with_companion("aria", crate::harness::QUICK);
    let server = side.serving_as("side", main.serving_as("main", premises)).start().await;
    let mut lobby = server.watch("lobby", Some(0)).await;

    server.say("lobby", "Ana", "what a day").await;

    let decision = lobby.event("decision").await;
    let shown = ["trigger", "decision", "reason"].map(|field| decision[field].clone());
    assert_eq!(shown, ["lull", "NO", "unreadable"].map(Value::from), "{decision}");
    assert_eq!(side.asked().iter().map(|body| prompt(body).contains("could not be read")).collect::<Vec<_>>(), [false, true]);
    assert_eq!(main.asked().len(), 0);
    assert_eq!(server.get("/api/usage").await["total"]["calls"], 2);
    server.stop().await;
}

#[tokio::test]
async fn an_endpoint_that_refuses_a_schema_or_json_is_asked_without() {
    for (accepted, expected) in [
        ("json_schema", &["json_schema", "json_schema"][..]),
        ("json_object", &["json_schema", "json_object", "json_object"]),
        ("none", &["json_schema", "json_object", "none", "none"]),
    ] {
        let side = Model::start(move |body| match form(body) {
            "json_schema" if accepted != "json_schema" => {
                Answer::Refused(400, "response_format.type 'json_schema' is not supported".to_owned())
            }
            "json_object" if accepted == "none" => {
                Answer::Refused(400, "response_format is not supported by this model".to_owned())
            }
            _ if prompt(body).contains("You were directly addressed") => "{\"decision\": \"YES\"}".into(),
            _ => NO.into(),
        })
        .await;
        let main = talkative().await;
        let server = salon(&side, &main).start().await;
        let mut salon = server.watch("salon", Some(0)).await;

        for text in ["Aria, are you there?", "Aria, still?"] {
            server.say("salon", "Ana", text).await;
            let decision = decision_of_aria(&mut salon).await;
            assert_eq!(decision["reason"], "model_yes", "{accepted}: {decision}");
            salon.event("statement").await;
            server.rest("salon").await;
        }

        let asked = side.asked();
        let votes = asked.iter().filter(|body| prompt(body).contains("You were directly addressed"));
        assert_eq!(votes.map(form).collect::<Vec<_>>(), expected, "{accepted}: what is refused is not tried again");
        server.stop().await;
    }
}

/// The type of the `response_format` of a request.
fn form(body: &Value) -> &str {
    body["response_format"]["type"].as_str().unwrap_or("none")
}

/// The prompts of all questions about an address.
fn addresses(side: &Model) -> Vec<String> {
    side.asked().iter().map(prompt).filter(|text| text.contains("You were directly addressed")).collect()
}

async fn decision_of_aria(salon: &mut Watch) -> Value {
    salon.event_that("decision", |event| event["companion"] == "aria" && event["trigger"] == "direct_address").await
}

/// A main model that never says the same thing twice.
async fn talkative() -> Model {
    let said = std::sync::atomic::AtomicUsize::new(0);
    Model::start(move |_| {
        let number = said.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let words =
            ["oak", "harbour", "violin", "glacier", "saffron", "lantern", "meadow", "engine", "pepper", "comet", "marble"];
        let word = |step: usize| words[(number * step + step) % words.len()];
        format!("{} {number} {} {}", word(1), word(3), word(7))
    })
    .await
}

/// A room with Aria and Bruno, who speak when they are addressed.
fn salon(side: &Model, main: &Model) -> Premises {
    let quiet = |name: &str| format!("name = \"{name}\"\ninterjection = \"very_quiet\"\ntext_lull_timeout = 3600.0\n");
    let premises = Premises::shipped()
        .with_companion("aria", &quiet("Aria"))
        .with_companion("bruno", &quiet("Bruno"))
        .with("console.rooms", r#"[{ id = "salon", guild = "home", companions = ["aria", "bruno"] }]"#)
        .with("turn_taking.turn_delay_secs", "0");
    side.serving_as("side", main.serving_as("main", premises))
}

//! Companions in folders, and the briefs of long personas, with a model that keeps what it is asked.

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::harness::model::{Answer, Model};
use crate::harness::{Premises, QUICK};

#[tokio::test]
async fn the_folder_of_a_companion_is_reloaded_and_a_wrong_file_in_it_changes_nothing() {
    let (premises, model) = premises_with_model().await;
    premises.write_companion_file("aria", "companion.toml", QUICK);
    premises.write_companion_file("aria", "1-self.md", "You are Aria, from a folder.\n");
    let server = premises.start().await;
    server.say("lobby", "Ana", "Aria, who are you?").await;
    let first = decision(&model, 0).await;
    premises.write_companion_file("aria", "2-more.md", "You paint.\n");

    server.signal("HUP").await;
    server.logs("companions were reloaded").await;
    server.rest("lobby").await;
    server.say("lobby", "Ana", "Aria, and now?").await;
    let second = decision(&model, 1).await;
    premises.write_companion_file("aria", "3-bytes.md", b"\xff");
    server.signal("HUP").await;
    let line = server.logs("stays as it was").await;
    server.rest("lobby").await;
    server.say("lobby", "Ana", "Aria, and then?").await;
    let third = decision(&model, 2).await;

    assert!(first.starts_with("You are Aria.\n\nYou are Aria, from a folder.\n\nYour conversational"), "{first}");
    let both = "You are Aria.\n\nYou are Aria, from a folder.\n\nYou paint.\n\nYour conversational";
    assert!(second.starts_with(both) && third.starts_with(both), "{second}\n{third}");
    assert!(line.contains("aria/3-bytes.md") && line.contains("is not UTF-8 text"), "{line}");
    server.stop().await;
}

#[tokio::test]
async fn a_companion_whose_folder_is_skipped_at_a_reload_is_reported_until_it_is_back() {
    let premises = Premises::shipped();
    for id in ["aria", "bruno"] {
        premises.write_companion_file(id, "companion.toml", QUICK);
    }
    let server = premises.start().await;
    let keys = premises.path().join("config/companions/aria/companion.toml");
    std::fs::create_dir(premises.path().join("config/companions/pictures")).expect("a folder of nobody");

    std::fs::remove_file(&keys).expect("it was there");
    server.signal("HUP").await;
    let line = server.logs("a companion has left its rooms").await;
    let lost = server.get("/api/quarantine").await["companions"].clone();
    premises.write_companion_file("aria", "companion.toml", QUICK);
    server.signal("HUP").await;
    server.logs_many("companions were reloaded", 2).await;
    let back = server.get("/api/quarantine").await["companions"].clone();

    assert!(line.contains("WARN") && line.contains("companion=aria") && line.contains("companions/aria"), "{line}");
    assert_eq!((lost.as_array().map(Vec::len), &lost[0]["id"], back), (Some(1), &json!("aria"), json!([])), "{lost}");
    server.stop().await;
}

#[tokio::test]
async fn the_brief_of_a_long_persona_is_made_once_and_outlives_a_restart() {
    let (premises, model) = premises_with_model().await;
    let persona: String = (0..400).map(|n| format!("You own clock number {n}. ")).collect();
    premises.write_companion_file("aria", "companion.toml", QUICK);
    premises.write_companion_file("aria", "self.md", persona);
    let checked = premises.run(&["check"]).await;
    let server = premises.start().await;
    server.say("lobby", "Ana", "Aria, who are you?").await;
    let beginning = decision(&model, 0).await;
    server.logs("the side model made the brief of a long persona").await;
    server.rest("lobby").await;
    server.say("lobby", "Ana", "Aria, and now?").await;
    let brief = decision(&model, 1).await;
    server.rest("lobby").await;
    server.stop().await;

    let server = premises.start().await;
    server.say("lobby", "Ana", "Aria, are you still there?").await;
    let restarted = decision(&model, 2).await;
    let briefs = model.asked().iter().filter(|request| is_brief(request)).count();
    server.stop().await;
    let verified = premises.run(&["history", "verify", "--json"]).await;

    assert!(
        checked.stdout.contains("companion aria: its persona of about")
            && checked.stdout.contains("a brief that the side model makes"),
        "{checked:?}"
    );
    assert!(beginning.contains("You own clock number 1.") && beginning.contains("characters left out]"), "{beginning}");
    assert!(
        brief.starts_with("You are Aria.\n\nYou own clocks.\n\n")
            && restarted.starts_with("You are Aria.\n\nYou own clocks.\n\n")
    );
    assert_eq!(briefs, 1);
    assert_eq!(verified.object()["sound"], true, "{verified:?}");
}

/// A server that uses a model, and the model. It writes no brief before it was asked for a decision.
async fn premises_with_model() -> (Premises, Model) {
    let (decided, has_decided) = watch::channel(false);
    let answer = move |request: &Value| {
        if is_brief(request) {
            return Answer::Once(has_decided.clone(), "You own clocks.");
        }
        decided.send_replace(true);
        "Me.\nYES".into()
    };
    let model = Model::start(answer).await;
    (model.serving_as("side", Premises::new()), model)
}

/// The instructions of the decision of this number. An address asks for one if no statement is being made: else that is begun again.
async fn decision(model: &Model, number: usize) -> String {
    let is_decision = |request: &&Value| content(request, 1).contains("Would you like to respond?");
    model.wait_until(|asked| Some(content(asked.iter().filter(is_decision).nth(number)?, 0).to_owned())).await
}

fn is_brief(request: &Value) -> bool {
    content(request, 1).contains("Write this description again")
}

/// The content of a message of a request: the instructions (0), or what the model is told (1).
fn content(request: &Value, index: usize) -> &str {
    request["messages"][index]["content"].as_str().unwrap_or_default()
}

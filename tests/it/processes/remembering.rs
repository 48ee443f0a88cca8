//! What was said at the beginning is in the prompt of a much later reply, across a kill.

use crate::harness::Premises;
use crate::harness::model::{Model, prompt};

#[tokio::test]
async fn the_first_sentence_is_in_the_prompt_of_the_reply_to_the_sixtieth_message() {
    let side = Model::start(|body| {
        let text = prompt(body);
        let is_summary = text.contains("You keep the running summary");
        match (is_summary, text.contains("Zebulon"), text.contains("You were directly addressed")) {
            (true, true, _) => "Ana is called Zebulon.",
            (true, false, _) => "They counted.",
            (false, _, true) => "She asked me.\nYES",
            (false, _, false) => "Not now.\nNO",
        }
    })
    .await;
    let main = Model::start(|_| "You told me.").await;
    let premises = side
        .serving_as("side", main.serving_as("main", Premises::new()))
        .without_limits()
        .with_companion("aria", "name = \"Aria\"\npersona = \"You remember.\"\ntext_lull_timeout = 3600.0\n");
    let mut server = premises.start().await;

    server.say("lobby", "Ana", "My name is Zebulon, remember that.").await;
    for number in 2..60 {
        server.say("lobby", "Ana", &format!("This is number {number}, and it says nothing that anybody needs to know.")).await;
        if number == 45 {
            server.kill().await;
            server = premises.start().await;
        }
    }
    let mut lobby = server.watch("lobby", None).await;
    server.say("lobby", "Ana", "Aria, what is my name?").await;
    lobby.event("statement").await;

    let asked = main.asked();
    let text = prompt(asked.last().expect("a statement was asked for"));
    assert!(text.contains("Zebulon") && text.contains("This is number 59"), "{text}");
    server.stop().await;
}

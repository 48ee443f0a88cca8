//! `tertulia-lab evaluate`: recorded group chat, with `rehearsal` and with an endpoint.

use std::fs;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::harness::model::{Answer, Model, prompt};
use crate::harness::{PATIENCE, Premises};

const YES: &str = r#"{"reason": "They ask me.", "decision": "YES", "importance": 8, "selected": false, "closing": "none"}"#;
const NO: &str = r#"{"reason": "Not for me.", "decision": "NO", "importance": 2, "selected": false, "closing": "none"}"#;

/// Two excerpts. Al replies to messages 0 and 3, and not to 4.
fn chat(premises: Premises) -> Premises {
    let said = [
        ("bo", "al: my disk is full", vec![]),
        ("al", "delete something", vec![0]),
        ("al", "anything", vec![1]),
        ("bo", "which file?", vec![2]),
        ("cy", "lunch?", vec![]),
        ("al", "your music", vec![3]),
    ];
    let excerpt = |id: &str| {
        let messages = said.iter().enumerate().map(|(n, (from, text, replies_to))| {
            let text = format!("{text} ({id})");
            json!({ "n": n, "t": n * 30, "from": from, "text": text, "replies_to": replies_to, "annotated": true })
        });
        json!({ "id": id, "messages": messages.collect::<Vec<_>>() }).to_string()
    };
    fs::write(premises.path().join("chat.jsonl"), format!("{}\n{}\n", excerpt("one"), excerpt("two"))).expect("a file");
    premises
}

fn row<'a>(report: &'a Value, name: &str) -> &'a Value {
    let rows = report["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name} in {report}"))
}

#[tokio::test]
async fn rehearsal_is_measured_beside_the_rules_and_is_not_asked_again() {
    let premises = chat(Premises::new());
    let command = ["evaluate", "chat.jsonl", "--authors", "1", "--to", "trial", "--json"];

    let first = premises.run_lab(&command).await.exits_with(0);
    let second = premises.run_lab(&command).await.exits_with(0);
    let table = premises.run_lab(&command[..6]).await.exits_with(0);

    let (first_report, second_report) = (first.object(), second.object());
    assert_eq!((&first_report["decisions"], &first_report["measured"]), (&json!(6), &json!(6)), "{first_report}");
    assert_eq!(row(&first_report, "named")["all"]["recall"], json!(0.5));
    assert_eq!(row(&first_report, "named-or-next")["all"]["recall"], json!(1.0));
    assert_eq!((&first_report["asked"][0]["new"], &second_report["asked"][0]["new"]), (&json!(6), &json!(0)));
    assert_eq!(first_report["rows"], second_report["rows"]);
    assert!(first.stderr.contains("6 of 6 decisions\n"), "{first:?}");
    assert!(table.stdout.contains("says nothing: it has 4 replies and 2 other messages"), "{table:?}");
    assert!(table.stdout.contains("\nnamed-or-next") && table.stdout.contains("6 answers, 0 of them new"), "{table:?}");
    let html = fs::read_to_string(premises.path().join("trial/report.html")).expect("a report");
    assert!(html.contains("<svg") && !html.contains("<script"), "{html}");
    assert!(!premises.data().exists());
}

#[tokio::test]
async fn the_example_is_measured() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/chat.jsonl");

    let shown = Premises::new().run_lab(&["evaluate", example, "--baselines"]).await.exits_with(0);

    assert!(shown.stdout.starts_with("3 excerpts") && !shown.stdout.contains("Warning"), "{shown:?}");
}

#[tokio::test]
async fn an_endpoint_is_asked_with_the_prompt_of_a_room_up_to_the_cap_and_goes_on_later() {
    let model = Model::start(|body| {
        let text = prompt(body);
        let is_repeat = text.contains("could not be read");
        if text.contains("which file?") && !is_repeat {
            "perhaps"
        } else if text.contains("disk is full") {
            YES
        } else {
            NO
        }
    })
    .await;
    model.takes_tokens(5_000, 0);
    let premises = chat(model.serving(Premises::new()).with("models.side.max_concurrent", "1"));
    let command = ["evaluate", "chat.jsonl", "--authors", "1", "--to", "trial", "--most-cost", "12", "--json"];
    let unpriced = premises.run_lab(&command).await.exits_with(2);
    let premises = premises.with("models.side.input_price", "1000").with("models.side.output_price", "1000");

    let capped = premises.run_lab(&command).await.exits_with(1);
    let whole = premises.run_lab(&[&command[..6], &["--json"]].concat()).await.exits_with(0).object();

    assert!(unpriced.stderr.contains("models.side: has no price") && unpriced.stderr.contains("input_price"), "{unpriced:?}");
    assert!(capped.stderr.contains("--most-cost") && capped.stderr.contains("the same command goes on"), "{capped:?}");
    let asked = capped.object()["asked"][0].clone();
    assert!(asked["cost"].as_f64().is_some_and(|cost| cost > 0.0), "{asked}");
    let (new, calls) = (&whole["asked"][0]["new"], &whole["asked"][0]["calls"]);
    // In each excerpt two of the questions are asked twice. The cap cut off one of them between its calls.
    assert_eq!((&asked["new"], new, calls), (&json!(1), &json!(5), &json!(10)), "{whole}");
    assert_eq!(model.asked().len(), 11);
    let first = prompt(&model.asked()[0]);
    assert!(first.contains("my disk is full") && !first.contains("delete something"), "{first}");
    assert_eq!(row(&whole, "side")["all"]["recall"], json!(1.0), "{whole}");
}

#[tokio::test]
async fn two_settings_are_compared_by_what_they_decide_differently() {
    let [one, other] = [Model::start(|_| YES).await, Model::start(|_| NO).await];
    let premises = chat(Premises::new());
    for (folder, model) in [("config", &one), ("other", &other)] {
        let folder = premises.path().join(folder);
        fs::create_dir_all(&folder).expect("a folder");
        let table = format!("[models.main]\nbase_url = \"{}\"\nmodel = \"{}\"\n", model.url, "m");
        fs::write(folder.join("default.toml"), table).expect("settings");
    }

    let compared = premises
        .run_lab(&["evaluate", "chat.jsonl", "--authors", "1", "--against", "other", "--json"])
        .await
        .exits_with(0)
        .object();

    let comparison = &compared["comparison"];
    assert_eq!(
        (&comparison["both_yes"], &comparison["only_first"]),
        (&json!(0), &json!({ "count": 6, "replied": 4 })),
        "{compared}"
    );
    assert_eq!(comparison["differences"]["recall"]["by"], json!(-1.0));
    assert_eq!(comparison["examples"].as_array().map(Vec::len), Some(6));
    assert_eq!(comparison["examples"][0]["why"], json!(["They ask me.", "Not for me."]));
}

#[tokio::test]
async fn the_gate_decides_when_a_free_run_asks() {
    let premises = chat(Premises::new());

    let free = premises.run_lab(&["evaluate", "chat.jsonl", "--authors", "1", "--free", "--json"]).await.exits_with(0).object();

    assert_eq!(
        (&free["companions"], &free["messages"], &free["asked"]["direct_address"]),
        (&json!(2), &json!(6), &json!(2)),
        "{free}"
    );
    assert!(free["usage"]["calls"].as_u64() >= Some(2), "{free}");
}

#[tokio::test]
async fn ctrl_c_ends_a_run_with_what_was_answered() {
    let model = Model::start(|body| if prompt(body).contains("which file?") { Answer::Never } else { NO.into() }).await;
    let premises = chat(model.serving(Premises::new()).with("models.side.max_concurrent", "1"));
    let mut command = premises.lab(&["evaluate", "chat.jsonl", "--authors", "1", "--to", "trial"]);
    let running = command.spawn().expect("the program can be started");
    let id = running.id().expect("it runs").to_string();
    model.wait_until(|asked| asked.iter().any(|body| prompt(body).contains("which file?")).then_some(())).await;

    let sent = Command::new("kill").args(["-INT", &id]).status().await.expect("kill can be run");
    let ended = tokio::time::timeout(PATIENCE, running.wait_with_output()).await.expect("it ends").expect("it can be waited for");

    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(sent.success() && ended.status.code() == Some(1), "{errors}");
    assert!(errors.contains("stopped after 1 of 6: Ctrl-C was pressed"), "{errors}");
    let kept = fs::read_to_string(premises.path().join("trial/answers.jsonl")).expect("answers");
    assert_eq!(kept.lines().count(), 1);
}

#[tokio::test]
async fn a_room_of_ones_own_is_evaluated_by_who_speaks_next() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.exchange("lobby", "hey aria, how was your day?").await;
    server.stop().await;
    premises.run(&["history", "export", "--room", "lobby", "--as", "chat", "--out", "lobby.jsonl"]).await.exits_with(0);

    let table = premises.run_lab(&["evaluate", "lobby.jsonl", "--companion", "aria"]).await.exits_with(0);

    assert!(table.stdout.contains("1 excerpt, 1 companion, 1 decision"), "{table:?}");
    assert!(table.stdout.contains("label turn_60s") && table.stdout.contains("few reply links"), "{table:?}");
    let nobody = premises.run_lab(&["evaluate", "lobby.jsonl", "--companion", "zed"]).await.exits_with(2);
    assert!(nobody.stderr.contains("they have: aria"), "{nobody:?}");
}

#[tokio::test]
async fn what_is_wrong_with_a_file_is_reported_with_its_line() {
    let premises = chat(Premises::new());
    let mut text = fs::read_to_string(premises.path().join("chat.jsonl")).expect("the chat");
    text.push_str("{\"id\": 5}\n");
    fs::write(premises.path().join("wrong.jsonl"), text).expect("a file");

    let refused = premises.run_lab(&["evaluate", "wrong.jsonl"]).await.exits_with(2);

    assert!(
        refused.stderr.contains("wrong.jsonl:3: is not an excerpt") && refused.stderr.contains("docs/evaluate.md"),
        "{refused:?}"
    );
    assert_eq!(refused.stdout, "");
}

//! The real binary: output and exit codes of `tertulia discord check`.

use serde_json::json;

use super::super::home::Home;
use crate::harness::Premises;

#[tokio::test]
async fn the_command_reports_success_and_the_invitation() {
    let Home { discord, guild, .. } = Home::new().await;
    let premises = Premises::new().for_discord(&discord);

    let (text, object) = (
        premises.run(&["discord", "check"]).await,
        premises.run(&["discord", "check", "--json", "--server", &guild.to_string()]).await,
    );

    assert_eq!((text.code, object.code), (Some(0), Some(0)), "{text:?} {object:?}");
    assert!(text.stdout.starts_with("good     token "), "{}", text.stdout);
    assert!(text.stdout.contains("Home: companions can speak in 1 of the 1 channels"), "{}", text.stdout);
    assert!(text.stdout.ends_with("\nDiscord would work\n"), "{}", text.stdout);
    let object = object.object();
    assert_eq!((&object["ok"], &object["shards"], &object["identifies_left"]), (&json!(true), &json!(1), &json!(1_000)));
    assert_eq!(object["lines"][0]["state"], "good");
    assert!(object["invitation"].as_str().is_some_and(|link| link.contains("client_id=")), "{object}");
    assert!(!text.stdout.contains(&discord.token()) && !object.to_string().contains(&discord.token()));
}

#[tokio::test]
async fn the_command_exits_with_1_when_discord_would_not_work() {
    let Home { discord, .. } = Home::new().await;
    let premises = Premises::new().for_discord(&discord);
    let old = discord.token();
    discord.reset_token();

    let ran = premises.run(&["discord", "check"]).await.exits_with(1);

    assert!(ran.stdout.starts_with("problem  token ") && ran.stdout.contains("Reset Token"), "{}", ran.stdout);
    assert_eq!(ran.stderr, "tertulia: Discord would not work: 1 problem\n");
    assert!(!ran.stdout.contains(&old), "{}", ran.stdout);
}

#[tokio::test]
async fn the_command_exits_with_2_on_a_missing_or_malformed_token_or_wrong_usage() {
    let none = Premises::new().run(&["discord", "check"]).await;
    let wrong = Premises::new().with("discord.token", "clientsecret").run(&["discord", "check"]).await;
    let usage = Premises::new().run(&["discord", "check", "--server", "home"]).await;

    assert_eq!([none.code, wrong.code, usage.code], [Some(2); 3], "{none:?} {wrong:?} {usage:?}");
    assert!(none.stderr.contains("set TERTULIA__DISCORD__TOKEN"), "{}", none.stderr);
    assert!(wrong.stderr.contains("is not a bot's token") && !wrong.stderr.contains("clientsecret"), "{}", wrong.stderr);
    assert!(usage.stderr.contains("is not an id of Discord's"), "{}", usage.stderr);
}

#[tokio::test]
async fn the_questions_of_a_review_are_answered_from_the_settings_without_a_token() {
    let plain = Premises::new().run(&["discord", "check", "--answers"]).await.exits_with(0);
    let changed = Premises::new()
        .with("storage.retention_days", "20")
        .with("discord.reactions", "true")
        .with("discord.message_content", "off")
        .with("safety.privacy", "https://example.org/privacy")
        .with("models.main.base_url", "https://models.example/v1")
        .with("models.main.model", "m");
    let object = changed.run(&["discord", "check", "--answers", "--json"]).await.object();

    assert!(plain.stdout.contains("No: until somebody deletes it"), "{}", plain.stdout);
    assert!(plain.stdout.contains("To nobody: models and voices are built in"), "{}", plain.stdout);
    assert!(!plain.stdout.contains("emoji"), "{}", plain.stdout);
    let answers = object["answers"].as_array().expect("a list");
    let all = object.to_string();
    for part in ["Yes: 20 days", "with which emoji", "nothing to apply for", "example.org/privacy", "https://models.example/v1"] {
        assert!(all.contains(part), "{part} in {all}");
    }
    assert!(
        answers.len() == 13 && answers.iter().all(|answer| answer["question"].as_str().is_some_and(|text| text.ends_with('?')))
    );
}

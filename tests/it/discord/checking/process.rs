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

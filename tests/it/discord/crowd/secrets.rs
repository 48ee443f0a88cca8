//! Discord's tokens appear neither in the log nor in the API.

use super::town::Town;

#[tokio::test(flavor = "multi_thread")]
async fn no_discord_token_is_logged_even_at_trace_level() {
    let town = Town::small().await;
    let premises = town.premises().with("telemetry.log", "trace");
    let server = premises.start().await;
    town.load_rooms().await;

    town.discord.say(town.channels[0].first_person(), town.channels[0].id, "Aria, are you there?");
    town.discord.wait_for("an answer", |state| !state.journal.posts.is_empty()).await;
    let api: Vec<String> = [
        server.get("/metrics").await.to_string(),
        server.get("/api/export").await.to_string(),
        server.get("/readyz").await.to_string(),
    ]
    .into();
    let log = server.stop().await;

    let (webhooks, interactions) = town.discord.look(|state| {
        let webhooks: Vec<String> = state.world.webhooks.values().map(|webhook| webhook.token.clone()).collect();
        let interactions: Vec<String> = state.world.interactions.values().map(|interaction| interaction.token.clone()).collect();
        (webhooks, interactions)
    });
    assert!(!webhooks.is_empty() && !interactions.is_empty());
    for secret in webhooks.iter().chain(&interactions).chain([&town.discord.token()]) {
        assert!(!secret.is_empty());
        let line = log.lines().find(|line| line.contains(secret.as_str()));
        assert!(line.is_none(), "the log contains {secret}: {line:?}");
        assert!(api.iter().all(|answer| !answer.contains(secret.as_str())), "an answer contains {secret}");
    }
}

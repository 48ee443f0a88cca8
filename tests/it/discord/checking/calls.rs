//! The voice channels that the bot enters by itself: whether it could, and what to click.

use tertulia::adapters::discord::check::{Report, Servers, State};

use super::super::counterpart::{Counterpart, Id, Kind, Permissions};
use super::super::home::Home;
use super::{about, line, run_check, run_check_with};

async fn check(discord: &Counterpart, channels: &[Id]) -> Report {
    let ids = channels.iter().map(Id::to_string).collect();
    run_check_with(discord, Servers::First(10), |section| section.voice_channels = ids).await
}

#[tokio::test]
async fn each_voice_channel_of_the_settings_is_checked_for_connect_and_speak() {
    let Home { discord, guild, .. } = Home::new().await;
    let (role, harbour) = (discord.bot_role(guild), discord.voice_channel(guild, "harbour"));

    assert!(about(&run_check(&discord).await, "voice").is_empty(), "no voice channel is named");
    let report = check(&discord, &[harbour]).await;
    assert_eq!(line(&report, "voice").state, State::Good, "{report}");
    for (denied, click) in [(Permissions::CONNECT, "allow Connect"), (Permissions::SPEAK, "allow Speak")] {
        discord.deny(harbour, role, denied);
        let report = check(&discord, &[harbour]).await;
        let text = line(&report, "voice").to_string();
        assert!(text.contains("Home: ") && text.contains("#harbour") && text.contains(click), "{text}");
        assert!(!report.would_work(), "{report}");
    }
}

#[tokio::test]
async fn channels_that_are_unknown_or_have_no_call_are_problems_and_stages_are_explained() {
    let Home { discord, guild, general, .. } = Home::new().await;
    let stage = discord.channel_of(guild, Kind::Stage, "stage");

    let report = check(&discord, &[general, Id(77), stage]).await;

    let lines = about(&report, "voice");
    let texts: Vec<_> = lines.iter().map(ToString::to_string).collect();
    assert_eq!(lines.iter().map(|line| line.state).collect::<Vec<_>>(), [State::Problem, State::Warning, State::Problem]);
    assert!(texts[0].contains("#general") && texts[0].contains("has no call"), "{}", texts[0]);
    assert!(texts[1].contains("#stage") && texts[1].contains("Invite to Speak"), "{}", texts[1]);
    assert!(texts[2].contains("does not see: 77") && texts[2].contains("Copy Channel ID"), "{}", texts[2]);
}

#[tokio::test]
async fn a_voice_channel_in_a_server_that_is_not_checked_is_no_problem() {
    let Home { discord, guild, .. } = Home::new().await;
    let away = discord.guild("Away");
    let harbour = discord.voice_channel(away, "harbour");
    let only_home = Servers::These(vec![super::super::home::snowflake(guild)]);

    let report = run_check_with(&discord, only_home, |section| section.voice_channels = vec![harbour.to_string()]).await;

    assert_eq!(line(&report, "voice").state, State::Warning, "{report}");
    assert!(line(&report, "voice").to_string().contains("--server ID"), "{report}");
}

//! In which channels companions could speak, and what to click where they could not.

use tertulia::adapters::discord::check::{Line, Report, Servers, State};

use super::super::counterpart::{Counterpart, INVITED, Kind, Permissions, Rules};
use super::super::home::{Home, snowflake};
use super::{about, assert_line, line, run_check, run_check_with};

fn names(line: &Line) -> Vec<&str> {
    line.channels.iter().map(|channel| channel.name.as_str()).collect()
}

fn line_containing<'a>(report: &'a Report, words: &str) -> &'a Line {
    let found = report.lines.iter().find(|line| line.to_string().contains(words));
    found.unwrap_or_else(|| panic!("nothing says {words:?} in\n{report}"))
}

#[tokio::test]
async fn each_channel_lists_its_missing_permissions_and_how_to_grant_them() {
    let Home { discord, guild, .. } = Home::new().await;
    let role = discord.bot_role(guild);
    let without = |name: &str, kind, denied| {
        let channel = discord.channel_of(guild, kind, name);
        discord.deny(channel, role, denied);
        channel
    };
    without("rules", Kind::Text, Permissions::MANAGE_WEBHOOKS);
    without("news", Kind::Announcement, Permissions::MANAGE_WEBHOOKS | Permissions::READ_MESSAGE_HISTORY);
    without("ideas", Kind::Forum, Permissions::SEND_MESSAGES);
    without("secret", Kind::Text, Permissions::VIEW_CHANNEL);
    without("stage", Kind::Voice, Permissions::CONNECT);
    discord.channel_of(guild, Kind::Category, "a category");
    let full = discord.channel(guild, "full");
    for n in 0..15 {
        discord.foreign_webhook(full, &format!("webhook {n}"));
    }

    let report = run_check(&discord).await;

    let hidden = if discord.look(|state| state.rules.obfuscates_channels) { 1 } else { 2 };
    let summary = format!("companions can speak in 2 of the 5 channels that the bot sees; {hidden} more it does not see");
    assert_eq!(line_containing(&report, &summary).state, State::Good);
    assert_eq!(names(line_containing(&report, "allow Manage Webhooks")), ["rules", "news"]);
    assert_eq!(names(line_containing(&report, "allow Read Message History")), ["news"]);
    assert_eq!(names(line_containing(&report, "allow Send Messages")), ["ideas"]);
    assert_eq!(names(line_containing(&report, "has 15 webhooks")), ["full"]);
    assert!(report.would_work(), "{report}");
}

#[tokio::test]
async fn a_full_channel_with_our_webhook_is_usable() {
    let Home { discord, general, .. } = Home::new().await;
    for n in 0..14 {
        discord.foreign_webhook(general, &format!("webhook {n}"));
    }
    let own = discord.foreign_webhook(general, "tertulia");
    discord.with(|state| {
        let bot = state.world.bot();
        state.change_webhook(own, |webhook| webhook.application = Some(bot));
    });

    let report = run_check(&discord).await;

    assert_line(&report, "permissions", State::Good, &["can speak in 1 of the 1"]);
    assert_eq!(about(&report, "webhooks").len(), 0);
}

#[tokio::test]
async fn channels_that_are_listed_but_not_viewable_are_counted() {
    let discord = Counterpart::with_rules(Rules { obfuscates_channels: false, ..Rules::roomy() }).await;
    let guild = discord.guild("Home");
    discord.channel(guild, "general");
    let secret = discord.channel(guild, "secret");
    discord.deny(secret, discord.bot_role(guild), Permissions::VIEW_CHANNEL);

    assert_line(
        &run_check(&discord).await,
        "permissions",
        State::Good,
        &["1 of the 1 channels that the bot sees; 1 more it does not see"],
    );
}

#[tokio::test]
async fn a_server_without_a_usable_channel_is_a_warning_and_a_problem_if_it_was_named() {
    let Home { discord, guild, .. } = Home::new().await;
    let mute = discord.guild_without_bot("Mute");
    discord.invite_bot(mute, INVITED & !Permissions::MANAGE_WEBHOOKS);
    discord.channel(mute, "general");

    let both = run_check(&discord).await;
    let named = run_check_with(&discord, Servers::These(vec![snowflake(guild), snowflake(mute)]), |_| {}).await;

    assert_eq!(line_containing(&both, "Mute: companions can speak in 0 of the 1").state, State::Warning);
    assert!(both.would_work(), "{both}");
    assert_eq!(line_containing(&named, "Mute: companions can speak in 0 of the 1").state, State::Problem);
    assert!(!named.would_work(), "{named}");
    assert_eq!(names(line_containing(&named, "allow Manage Webhooks")), ["general"]);
}

#[tokio::test]
async fn a_server_whose_channels_are_all_hidden_says_how_to_show_one() {
    let Home { discord, guild, general, .. } = Home::new().await;
    discord.deny(general, discord.bot_role(guild), Permissions::VIEW_CHANNEL);

    assert_line(&run_check(&discord).await, "permissions", State::Problem, &["0 of the 0 channels", "allow View Channel"]);
}

#[tokio::test]
async fn a_server_that_the_bot_is_not_in_gets_the_invitation() {
    let Home { discord, .. } = Home::new().await;
    let other = discord.guild_without_bot("Other");
    let nowhere = discord.with(|state| state.world.new_id());

    for server in [other, nowhere] {
        let report = run_check_with(&discord, Servers::These(vec![snowflake(server)]), |_| {}).await;

        assert_line(&report, "servers", State::Problem, &["is not in the server", "Open the link below", &server.to_string()]);
        assert!(!report.would_work());
    }
}

#[tokio::test]
async fn missing_commands_a_timeout_and_administrator_rights_are_reported() {
    let Home { discord, guild, .. } = Home::new().await;
    let powerful = discord.guild_without_bot("Powerful");
    discord.invite_bot(powerful, Permissions::ADMINISTRATOR);
    discord.channel(powerful, "general");
    discord.with(|state| {
        let bot = state.world.bot();
        state.world.without_commands.insert(guild);
        state.change_member(guild, bot, |member| member.timed_out = true);
    });

    let report = run_check(&discord).await;

    assert!(line_containing(&report, "Home: the bot is timed out").to_string().contains("Remove Timeout"), "{report}");
    let commands = line_containing(&report, "Home: The command /tertulia is missing");
    assert!(commands.to_string().contains("Invite the bot again with the scopes bot and applications.commands"), "{commands}");
    assert_eq!(line_containing(&report, "Powerful: companions can speak in 1").state, State::Good);
    assert!(report.to_string().contains("it is an administrator there, which is not necessary"), "{report}");
}

#[tokio::test]
async fn control_characters_in_names_do_not_reach_the_terminal() {
    let Home { discord, guild, general, .. } = Home::new().await;
    discord.deny(general, discord.bot_role(guild), Permissions::MANAGE_WEBHOOKS);
    discord.with(|state| {
        state.world.channels.get_mut(&general).expect("a channel").name = "gen\u{1b}[31m\u{202e}eral".to_owned();
        state.world.guilds.get_mut(&guild).expect("a guild").name = "\u{1b}]0;x\u{7}".to_owned();
    });

    let output = run_check(&discord).await.to_string();

    assert!(output.chars().all(|char| char == '\n' || !char.is_control()) && !output.contains('\u{202e}'), "{output:?}");
}

#[tokio::test]
async fn only_the_requested_number_of_servers_is_checked() {
    let Home { discord, .. } = Home::new().await;
    for n in 0..3 {
        let guild = discord.guild(&format!("More {n}"));
        discord.channel(guild, "general");
    }

    let (two, none) =
        (run_check_with(&discord, Servers::First(2), |_| {}).await, run_check_with(&discord, Servers::First(0), |_| {}).await);

    assert_eq!((about(&two, "permissions").len(), about(&none, "permissions").len()), (2, 0));
    assert!(line(&two, "servers").said.contains("in 4; 2 of them"), "{two}");
}

#[tokio::test]
async fn a_server_that_requires_two_factors_is_a_problem_despite_all_permissions() {
    let Home { discord, guild, .. } = Home::new().await;
    discord.with(|state| state.world.without_two_factors.insert(guild));

    let report = run_check(&discord).await;

    assert_line(&report, "permissions", State::Problem, &["Home: This server requires two-factor", "Enable Authenticator App"]);
    assert!(!report.would_work());
}

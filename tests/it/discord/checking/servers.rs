//! Where companions could speak, and what to click where they could not.

use tertulia::adapters::discord::check::{Line, Report, Servers, State};

use super::super::counterpart::Counterpart;
use super::super::counterpart::channels::{Kind, Overwrite};
use super::super::counterpart::driver::make::INVITED;
use super::super::counterpart::id::Id;
use super::super::counterpart::permissions::{
    ADMINISTRATOR, CONNECT, MANAGE_WEBHOOKS, READ_MESSAGE_HISTORY, SEND_MESSAGES, VIEW_CHANNEL,
};
use super::super::counterpart::rules::Rules;
use super::{about, assert_line, checked, checked_with, home, line, snowflake};

fn bot_role(discord: &Counterpart, guild: Id) -> Id {
    discord.look(|state| state.world.guilds[&guild].members[&state.world.bot()].roles[0])
}

fn names(line: &Line) -> Vec<&str> {
    line.channels.iter().map(|channel| channel.name.as_str()).collect()
}

/// The line that says this.
fn saying<'a>(report: &'a Report, words: &str) -> &'a Line {
    let found = report.lines.iter().find(|line| line.to_string().contains(words));
    found.unwrap_or_else(|| panic!("nothing says {words:?} in\n{report}"))
}

#[tokio::test]
async fn each_channel_says_what_it_lacks_and_what_to_click() {
    let (discord, guild, _) = home().await;
    let role = bot_role(&discord, guild);
    let without = |name: &str, kind, denied| {
        let channel = discord.channel_of(guild, kind, name);
        discord.overwrite(channel, Overwrite::role(role, 0, denied));
        channel
    };
    without("rules", Kind::Text, MANAGE_WEBHOOKS);
    without("news", Kind::Announcement, MANAGE_WEBHOOKS | READ_MESSAGE_HISTORY);
    without("ideas", Kind::Forum, SEND_MESSAGES);
    without("secret", Kind::Text, VIEW_CHANNEL);
    without("stage", Kind::Voice, CONNECT);
    discord.channel_of(guild, Kind::Category, "a category");
    let full = discord.channel(guild, "full");
    for n in 0..15 {
        discord.foreign_webhook(full, &format!("webhook {n}"));
    }

    let report = checked(&discord).await;

    let hidden = if discord.look(|state| state.rules.obfuscates_channels) { 1 } else { 2 };
    let said = format!("companions can speak in 2 of the 5 channels that the bot sees; {hidden} more it does not see");
    assert_eq!(saying(&report, &said).state, State::Good);
    assert_eq!(names(saying(&report, "allow Manage Webhooks")), ["rules", "news"]);
    assert_eq!(names(saying(&report, "allow Read Message History")), ["news"]);
    assert_eq!(names(saying(&report, "allow Send Messages")), ["ideas"]);
    assert_eq!(names(saying(&report, "has 15 webhooks")), ["full"]);
    assert!(report.would_work(), "{report}");
}

#[tokio::test]
async fn a_full_channel_whose_webhook_is_ours_has_room() {
    let (discord, _, general) = home().await;
    for n in 0..14 {
        discord.foreign_webhook(general, &format!("webhook {n}"));
    }
    let own = discord.foreign_webhook(general, "tertulia");
    discord.with(|state| {
        let bot = state.world.bot();
        state.change_webhook(own, |webhook| webhook.application = Some(bot));
    });

    let report = checked(&discord).await;

    assert_line(&report, "permissions", State::Good, &["can speak in 1 of the 1"]);
    assert_eq!(about(&report, "webhooks").len(), 0);
}

#[tokio::test]
async fn channels_that_the_bot_is_shown_and_may_not_see_are_counted() {
    let discord = Counterpart::with_rules(Rules { obfuscates_channels: false, ..Rules::roomy() }).await;
    let guild = discord.guild("Home");
    discord.channel(guild, "general");
    let secret = discord.channel(guild, "secret");
    discord.overwrite(secret, Overwrite::role(bot_role(&discord, guild), 0, VIEW_CHANNEL));

    assert_line(
        &checked(&discord).await,
        "permissions",
        State::Good,
        &["1 of the 1 channels that the bot sees; 1 more it does not see"],
    );
}

#[tokio::test]
async fn a_server_where_nothing_can_be_said_is_a_problem_unless_others_do_well() {
    let (discord, guild, _) = home().await;
    let mute = discord.guild_without_bot("Mute");
    discord.invite_bot(mute, INVITED & !MANAGE_WEBHOOKS);
    discord.channel(mute, "general");

    let both = checked(&discord).await;
    let named = checked_with(&discord, Servers::These(vec![snowflake(guild), snowflake(mute)]), |_| {}).await;

    assert_eq!(saying(&both, "Mute: companions can speak in 0 of the 1").state, State::Warning);
    assert!(both.would_work(), "{both}");
    assert_eq!(saying(&named, "Mute: companions can speak in 0 of the 1").state, State::Problem);
    assert!(!named.would_work(), "{named}");
    assert_eq!(names(saying(&named, "allow Manage Webhooks")), ["general"]);
}

#[tokio::test]
async fn a_server_whose_channels_are_all_hidden_says_how_to_show_one() {
    let (discord, guild, general) = home().await;
    discord.overwrite(general, Overwrite::role(bot_role(&discord, guild), 0, VIEW_CHANNEL));

    assert_line(&checked(&discord).await, "permissions", State::Problem, &["0 of the 0 channels", "allow View Channel"]);
}

#[tokio::test]
async fn a_server_that_the_bot_is_not_in_gets_the_invitation() {
    let (discord, _, _) = home().await;
    let other = discord.guild_without_bot("Other");
    let nowhere = discord.with(|state| state.world.new_id());

    for server in [other, nowhere] {
        let report = checked_with(&discord, Servers::These(vec![snowflake(server)]), |_| {}).await;

        assert_line(&report, "servers", State::Problem, &["is not in the server", "Open the link below", &server.to_string()]);
        assert!(!report.would_work());
    }
}

#[tokio::test]
async fn a_bot_without_commands_one_that_is_timed_out_and_an_administrator_are_told() {
    let (discord, guild, _) = home().await;
    let powerful = discord.guild_without_bot("Powerful");
    discord.invite_bot(powerful, ADMINISTRATOR);
    discord.channel(powerful, "general");
    discord.with(|state| {
        let bot = state.world.bot();
        state.world.without_commands.insert(guild);
        state.change_member(guild, bot, |member| member.timed_out = true);
    });

    let report = checked(&discord).await;

    assert!(saying(&report, "Home: the bot is timed out").to_string().contains("Remove Timeout"), "{report}");
    let commands = saying(&report, "Home: The command /tertulia is missing");
    assert!(commands.to_string().contains("Invite the bot again with the scopes bot and applications.commands"), "{commands}");
    assert_eq!(saying(&report, "Powerful: companions can speak in 1").state, State::Good);
    assert!(report.to_string().contains("it is an administrator there, which is not necessary"), "{report}");
}

#[tokio::test]
async fn names_of_others_obey_no_terminal() {
    let (discord, guild, general) = home().await;
    discord.overwrite(general, Overwrite::role(bot_role(&discord, guild), 0, MANAGE_WEBHOOKS));
    discord.with(|state| {
        state.world.channels.get_mut(&general).expect("a channel").name = "gen\u{1b}[31m\u{202e}eral".to_owned();
        state.world.guilds.get_mut(&guild).expect("a guild").name = "\u{1b}]0;x\u{7}".to_owned();
    });

    let told = checked(&discord).await.to_string();

    assert!(told.chars().all(|char| char == '\n' || !char.is_control()) && !told.contains('\u{202e}'), "{told:?}");
}

#[tokio::test]
async fn only_so_many_servers_are_looked_at_as_are_asked_for() {
    let (discord, _, _) = home().await;
    for n in 0..3 {
        let guild = discord.guild(&format!("More {n}"));
        discord.channel(guild, "general");
    }

    let (two, none) =
        (checked_with(&discord, Servers::First(2), |_| {}).await, checked_with(&discord, Servers::First(0), |_| {}).await);

    assert_eq!((about(&two, "permissions").len(), about(&none, "permissions").len()), (2, 0));
    assert!(line(&two, "servers").said.contains("in 4; 2 of them"), "{two}");
}

#[tokio::test]
async fn a_server_that_demands_two_factors_is_told_though_every_permission_is_there() {
    let (discord, guild, _) = home().await;
    discord.with(|state| state.world.without_two_factors.insert(guild));

    let report = checked(&discord).await;

    assert_line(&report, "permissions", State::Problem, &["Home: This server requires two-factor", "Enable Authenticator App"]);
    assert!(!report.would_work());
}

//! Who may use which command: every subcommand, for a member, for people who may manage the channels or the server, and for somebody of another
//! server.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tertulia::ports::backend::room_service::RoomService as _;

use super::super::counterpart::Permissions;
use super::{Scene, at, companion, me, sub};

/// What a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// *Manage Channels* there.
    Channels,
    /// *Manage Server*.
    Server,
    /// Either of them.
    Either,
}

fn table() -> Vec<(Needs, &'static str, Value)> {
    use Needs::{Channels, Either, Nothing, Server};
    let text = |name: &str, value: &str| json!({ "type": 3, "name": name, "value": value });
    let group = |group: &str, name: &str| json!([{ "type": 2, "name": group, "options": sub(name, json!([])) }]);
    let plain = |name: &'static str| (name, sub(name, json!([])));
    let of = |needs, (name, options)| (needs, name, options);
    vec![
        of(Nothing, plain("status")),
        (Channels, "join", sub("join", json!([companion("ben")]))),
        (Channels, "leave", sub("leave", json!([companion("ben")]))),
        (Channels, "talkativeness", sub("talkativeness", json!([text("level", "quiet")]))),
        of(Channels, plain("pause")),
        of(Nothing, plain("why")),
        (Nothing, "recall", sub("recall", json!([text("words", "tea")]))),
        of(Nothing, plain("memory")),
        (Server, "memory", sub("memory", json!([text("server", "on")]))),
        (Server, "memory", sub("memory", json!([text("across", "off")]))),
        of(Nothing, plain("reminders")),
        (Nothing, "timezone", sub("timezone", json!([text("zone", "UTC")]))),
        (Nothing, "forget", me("forget", json!([]))),
        (Nothing, "ignore", me("ignore", json!([text("switch", "off")]))),
        of(Nothing, plain("export-me")),
        // The permission in the voice channel is checked in the tests of calls.
        (Nothing, "voice", group("voice", "status")),
        (Nothing, "say", sub("say", json!([companion("aria"), text("text", "Hi.")]))),
        of(Nothing, plain("about")),
        of(Nothing, plain("help")),
        of(Nothing, plain("stop")),
        of(Nothing, plain("again")),
        of(Nothing, plain("next")),
        of(Channels, plain("clear")),
        of(Nothing, plain("companion")),
        of(Either, plain("setup")),
        of(Nothing, plain("roles")),
        (Server, "roles", sub("roles", json!([text("list", "may_address"), { "type": 8, "name": "role", "value": "1" }]))),
        (Server, "own", group("own", "make")),
        (Server, "own", json!([{ "type": 2, "name": "own", "options": sub("change", json!([companion("luna")])) }])),
        (Server, "own", json!([{ "type": 2, "name": "own", "options": sub("remove", json!([companion("luna")])) }])),
    ]
}

#[tokio::test]
async fn every_command_is_allowed_for_those_who_have_its_permission_and_for_nobody_else() {
    let scene = Scene::new().await;
    let server = scene.discord.member_with(scene.guild, "Sue", Permissions::MANAGE_GUILD);
    scene.final_answer(scene.kim, scene.general, sub("join", json!([companion("aria")]))).await;
    let people = [
        (scene.ana, "a member", [Needs::Nothing].as_slice()),
        (scene.kim, "who may manage channels", &[Needs::Nothing, Needs::Channels, Needs::Either]),
        (server, "who may manage the server", &[Needs::Nothing, Needs::Server, Needs::Either]),
    ];

    for (needs, name, options) in table() {
        for (user, who, held) in &people {
            let interaction = scene.discord.command(*user, scene.general, options.clone());
            scene.discord.answer_to(interaction).await;
            let answer = scene.discord.final_answer(interaction).await.content;
            let is_refused = answer.contains("you need the permission") || answer.starts_with("Only people with the permission");
            assert_eq!(is_refused, !held.contains(&needs), "{name} for {who}: {answer}");
        }
    }
    let registered = scene.discord.look(|state| {
        let command = state.world.commands.iter().find(|command| command.name() == "tertulia").expect("it is registered");
        let options = command.data["options"].as_array().expect("subcommands").clone();
        options.iter().map(|option| option["name"].as_str().expect("a name").to_owned()).collect::<BTreeSet<_>>()
    });
    let walked: BTreeSet<_> = table().into_iter().map(|(_, name, _)| name.to_owned()).collect();
    assert_eq!(walked, registered, "every command is in the table");
}

#[tokio::test]
async fn somebody_who_manages_another_server_changes_nothing_here() {
    let scene = Scene::new().await;
    let (guild, away, zoe) = scene.elsewhere();
    let role = scene.discord.role(guild, "Head", Permissions::MANAGE_GUILD);
    scene.discord.give_role(guild, zoe, role);
    scene.final_answer(scene.kim, scene.general, sub("join", json!([companion("aria")]))).await;
    let home = super::super::home::snowflake(scene.guild).guild();
    let before = scene.backend.of_guild(&home).await.expect("rooms").rooms;

    for (_, _, options) in table() {
        let interaction = scene.discord.command(zoe, away, options);
        scene.discord.answer_to(interaction).await;
    }
    let reached = scene.discord.invoke(zoe, away, "tertulia", sub("join", json!([companion("ben"), at(scene.general)])));

    assert!(reached.is_err(), "Discord offers no channel of another server");
    assert_eq!(scene.backend.of_guild(&home).await.expect("rooms").rooms, before);
}

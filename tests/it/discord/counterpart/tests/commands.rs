//! Which commands can be registered.

use serde_json::{Value, json};

use super::super::{Counterpart, Id, Permissions, Rules};
use super::client::Rest;
use crate::discord::home::Home;

/// Registers a command.
async fn register(rest: &Rest, application: Id, command: Value) -> super::client::RestResponse {
    rest.post(&format!("/applications/{application}/commands"), command).await
}

fn named(name: &str) -> Value {
    json!({ "name": name, "description": "What it does" })
}

#[tokio::test]
async fn a_command_of_the_same_name_is_replaced() {
    let discord = Counterpart::start().await;
    let rest = Rest::new(&discord);
    let application = discord.bot();

    let first = register(&rest, application, named("one")).await;
    let again = register(&rest, application, named("one")).await;
    let changed = register(&rest, application, json!({ "name": "one", "description": "Something else" })).await;

    assert_eq!([first.status, again.status, changed.status], [201, 200, 200]);
    assert_eq!(first.body, again.body, "nothing changes, not even the version");
    assert_eq!(changed.id(), first.id());
    assert_ne!(changed.body["version"], first.body["version"]);
    assert_eq!(rest.get(&format!("/applications/{application}/commands")).await.body, json!([changed.body]));
}

#[tokio::test]
async fn invalid_commands_are_refused() {
    let discord = Counterpart::with_rules(Rules::roomy()).await;
    let rest = Rest::new(&discord);
    let application = discord.bot();
    let with = |options: Value| json!({ "name": "tertulia", "description": "d", "options": options });
    let option = |name: &str, more: Value| {
        let mut option = json!({ "type": 3, "name": name, "description": "d" });
        option.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        option
    };
    let sub = |name: &str, options: Value| json!({ "type": 1, "name": name, "description": "d", "options": options });
    let choices = |count: usize| json!({ "choices": vec![json!({ "name": "c", "value": "c" }); count] });

    for bad in [
        named("Upper"),
        named("two words"),
        named(&"x".repeat(33)),
        json!({ "name": "x" }),
        json!({ "name": "x", "description": "d".repeat(101) }),
        json!({ "name": "x", "description": "d", "default_member_permissions": "all" }),
        with(json!([option("one", json!({})), option("two", json!({ "required": true }))])),
        with(json!([option("one", json!({})), option("one", json!({}))])),
        with(json!([option("one", choices(26))])),
        with(json!([option("one", json!({ "autocomplete": true, "choices": [{ "name": "c", "value": "c" }] }))])),
        with(json!([sub("outer", json!([sub("inner", json!([]))]))])),
        with((0..26).map(|number| option(&format!("o{number}"), json!({}))).collect()),
        with(
            (0..25)
                .map(|number| {
                    sub(
                        &format!("s{number}"),
                        json!([option(
                            &"x".repeat(32),
                            json!({ "choices": vec![json!({ "name": "x".repeat(90), "value": "x".repeat(90) }); 3] })
                        )]),
                    )
                })
                .collect(),
        ),
        json!({}),
    ] {
        assert_eq!(register(&rest, application, bad.clone()).await.refusal(), (400, 50035), "{bad}");
    }
    let good = with(json!([
        sub("status", json!([])),
        sub("join", json!([option("companion", json!({ "required": true, "autocomplete": true }))]))
    ]));
    assert_eq!(register(&rest, application, good).await.status, 201);
}

#[tokio::test]
async fn commands_belong_to_their_application() {
    let discord = Counterpart::with_rules(Rules { command_creates: 2, ..Rules::quick() }).await;
    let (home, away) = (discord.guild("Home"), discord.guild_without_bot("Away"));
    let rest = Rest::new(&discord);
    let application = discord.bot();
    let path = |guild: Id| format!("/applications/{application}/guilds/{guild}/commands");

    assert_eq!(rest.get("/applications/5/commands").await.refusal(), (403, 20012));
    assert_eq!(rest.get(&path(away)).await.refusal(), (403, 50001));
    assert_eq!(rest.get(&path(home)).await.body, json!([]));
    for (name, status) in [("here", 201), ("there", 201), ("everywhere", 400), ("there", 200)] {
        let made = register(&rest, application, named(name)).await;
        assert_eq!(made.status, status, "two new ones a day, and known ones do not count: {made:?}");
    }
}

#[tokio::test]
async fn people_see_the_commands_that_they_may_use() {
    let Home { discord, guild, general, ana, .. } = Home::new().await;
    let (direct, _) = discord.direct(ana, "hi");
    let rest = Rest::new(&discord);
    let application = discord.bot();
    let mut managing = named("manage");
    managing["default_member_permissions"] = json!(Permissions::MANAGE_GUILD);
    managing["contexts"] = json!([0]);
    for command in [managing, named("help")] {
        register(&rest, application, command).await;
    }
    let sees = |name: &str, channel: Id, options: Value| discord.invoke(ana, channel, name, options).is_ok();

    assert!(sees("help", general, json!([])) && sees("help", direct, json!([])));
    assert!(!sees("nothing", general, json!([])));
    assert!(!sees("help", general, json!([{ "name": "much", "type": 3, "value": "x" }])), "no such option");
    assert!(!sees("manage", general, json!([])));
    discord.give_role(guild, ana, discord.role(guild, "Keepers", Permissions::MANAGE_GUILD));
    assert!(sees("manage", general, json!([])) && !sees("manage", direct, json!([])));
}

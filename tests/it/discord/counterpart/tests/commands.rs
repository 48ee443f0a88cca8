//! Which commands can be registered.

use reqwest::Method;
use serde_json::{Value, json};

use super::super::{Counterpart, Id, Permissions, Rules};
use super::client::Rest;
use crate::discord::home::Home;

async fn register(rest: &Rest, application: Id, commands: Value) -> super::client::RestResponse {
    rest.ask(Method::PUT, &format!("/applications/{application}/commands"), commands).await
}

fn named(name: &str) -> Value {
    json!({ "name": name, "description": "What it does" })
}

#[tokio::test]
async fn registering_replaces_all_commands_and_keeps_unchanged_ones() {
    let discord = Counterpart::start().await;
    let rest = Rest::new(&discord);
    let application = discord.bot();

    let first = register(&rest, application, json!([named("one"), named("two")])).await.body;
    let again = register(&rest, application, json!([named("one"), named("two")])).await.body;
    let mut changed = named("one");
    changed["description"] = json!("Something else");
    let last = register(&rest, application, json!([changed])).await.body;

    assert_eq!(first, again, "nothing changes, not even a version");
    assert_eq!((&last[0]["id"], last.as_array().map(Vec::len)), (&first[0]["id"], Some(1)));
    assert_ne!(last[0]["version"], first[0]["version"]);
    let path = format!("/applications/{application}/commands");
    assert_eq!(rest.get(&path).await.body, last);
    assert_eq!(rest.post(&path, named("three")).await.status, 201);
    let known = rest.post(&path, named("three")).await;
    assert_eq!(known.status, 200);
    assert_eq!(rest.delete(&format!("{path}/{}", known.id())).await.status, 204);
    assert_eq!(rest.delete(&format!("{path}/{}", known.id())).await.refusal(), (404, 10063));
}

#[tokio::test]
async fn invalid_commands_are_refused() {
    let discord = Counterpart::with_rules(Rules::roomy()).await;
    let rest = Rest::new(&discord);
    let application = discord.bot();
    let with = |options: Value| json!([{ "name": "tertulia", "description": "d", "options": options }]);
    let option = |name: &str, more: Value| {
        let mut option = json!({ "type": 3, "name": name, "description": "d" });
        option.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        option
    };
    let sub = |name: &str, options: Value| json!({ "type": 1, "name": name, "description": "d", "options": options });
    let choices = |count: usize| json!({ "choices": vec![json!({ "name": "c", "value": "c" }); count] });

    for bad in [
        json!([named("Upper")]),
        json!([named("two words")]),
        json!([named(&"x".repeat(33))]),
        json!([{ "name": "x" }]),
        json!([{ "name": "x", "description": "d".repeat(101) }]),
        json!([named("same"), named("same")]),
        json!([{ "name": "x", "description": "d", "default_member_permissions": "all" }]),
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
    assert_eq!(register(&rest, application, (0..101).map(|n| named(&format!("c{n}"))).collect()).await.refusal(), (400, 30032));
    let good = with(json!([
        sub("status", json!([])),
        sub("join", json!([option("companion", json!({ "required": true, "autocomplete": true }))]))
    ]));
    assert_eq!(register(&rest, application, good).await.status, 200);
}

#[tokio::test]
async fn commands_belong_to_their_application_and_guild() {
    let discord = Counterpart::with_rules(Rules { command_creates: 2, ..Rules::quick() }).await;
    let (home, away) = (discord.guild("Home"), discord.guild_without_bot("Away"));
    let rest = Rest::new(&discord);
    let application = discord.bot();
    let path = |guild: Id| format!("/applications/{application}/guilds/{guild}/commands");

    let made = rest.ask(Method::PUT, &path(home), json!([named("here")])).await;
    assert_eq!(made.body[0]["guild_id"], json!(home));
    assert_eq!(rest.get(&path(away)).await.refusal(), (403, 50001));
    assert_eq!(rest.get("/applications/5/commands").await.refusal(), (403, 20012));
    assert_eq!(rest.post(&path(home), named("there")).await.status, 201);
    assert_eq!(rest.post(&path(home), named("everywhere")).await.refusal(), (400, 30034), "two new ones a day");
    assert_eq!(rest.post(&path(home), named("there")).await.status, 200, "known ones do not count");
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
    register(&rest, application, json!([managing, named("help")])).await;
    let sees = |name: &str, channel: Id, options: Value| discord.invoke(ana, channel, name, options).is_ok();

    assert!(sees("help", general, json!([])) && sees("help", direct, json!([])));
    assert!(!sees("nothing", general, json!([])));
    assert!(!sees("help", general, json!([{ "name": "much", "type": 3, "value": "x" }])), "no such option");
    assert!(!sees("manage", general, json!([])));
    discord.give_role(guild, ana, discord.role(guild, "Keepers", Permissions::MANAGE_GUILD));
    assert!(sees("manage", general, json!([])) && !sees("manage", direct, json!([])));
}

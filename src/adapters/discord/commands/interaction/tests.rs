use serde_json::json;

use super::*;

#[test]
fn every_command_is_read_with_its_options() {
    let text = |name: &str, value: &str| json!({ "type": 3, "name": name, "value": value });
    let sub = |name: &str, options: Value| json!([{ "type": 1, "name": name, "options": options }]);
    let me = |group: &str, options: Value| json!([{ "type": 2, "name": group, "options": sub("me", options) }]);
    let voice = |name: &str| json!([{ "type": 2, "name": "voice", "options": sub(name, json!([])) }]);
    let own = |name: &str, options: Value| json!([{ "type": 2, "name": "own", "options": sub(name, options) }]);
    let some = |text: &str| Some(text.to_owned());

    for (options, expected) in [
        (sub("status", json!([])), Command::Status { companion: None }),
        (json!([{ "type": 1, "name": "status" }]), Command::Status { companion: None }),
        (sub("status", json!([text("companion", "aria")])), Command::Status { companion: some("aria") }),
        (sub("join", json!([text("companion", " aria ")])), Command::Join { companion: "aria".to_owned(), to: None }),
        (sub("leave", json!([text("companion", "aria")])), Command::Leave { companion: "aria".to_owned(), from: None }),
        (
            sub("talkativeness", json!([text("level", "very_quiet"), text("companion", "aria")])),
            Command::Talkativeness { level: Some(Level::Tier("very_quiet")), quiet_hours: None, companion: some("aria") },
        ),
        (
            sub("talkativeness", json!([text("level", "default")])),
            Command::Talkativeness { level: Some(Level::Default), quiet_hours: None, companion: None },
        ),
        (
            sub("talkativeness", json!([text("quiet_hours", "23:00-08:00")])),
            Command::Talkativeness { level: None, quiet_hours: some("23:00-08:00"), companion: None },
        ),
        (sub("pause", json!([])), Command::Pause { companion: None, on: true }),
        (sub("pause", json!([text("switch", "off")])), Command::Pause { companion: None, on: false }),
        (sub("why", json!([])), Command::Why { companion: None }),
        (me("forget", json!([])), Command::ForgetMe { sure: false }),
        (sub("stop", json!([text("companion", "aria")])), Command::Stop { companion: some("aria") }),
        (sub("clear", json!([])), Command::Clear { sure: false }),
        (me("ignore", json!([])), Command::IgnoreMe { on: true }),
        (me("ignore", json!([text("switch", "off")])), Command::IgnoreMe { on: false }),
        (voice("join"), Command::VoiceJoin { to: None }),
        (voice("leave"), Command::VoiceLeave),
        (voice("status"), Command::VoiceStatus),
        (
            json!([{ "type": 2, "name": "voice", "options": sub("notes", json!([text("switch", "off")])) }]),
            Command::VoiceNotes { on: false },
        ),
        (
            sub("say", json!([text("companion", "aria"), text("text", " Hi. ")])),
            Command::Say { companion: "aria".to_owned(), text: "Hi.".to_owned() },
        ),
        (sub("companion", json!([text("companion", "aria")])), Command::Companion { companion: some("aria") }),
        (sub("setup", json!([])), Command::SetUp(SetupRequest::Begin)),
        (sub("roles", json!([])), Command::Roles(RoleOptions { list: None, role: None, on: true })),
        (
            sub("roles", json!([text("list", "never_answered"), text("role", "8"), text("switch", "off")])),
            Command::Roles(RoleOptions { list: Some(RoleList::NeverAnswered), role: Snowflake::new(8), on: false }),
        ),
        (own("make", json!([])), Command::Own(OwnRequest::Make)),
        (own("change", json!([text("companion", "luna")])), Command::Own(OwnRequest::Change { companion: "luna".to_owned() })),
        (
            own("remove", json!([text("companion", "luna")])),
            Command::Own(OwnRequest::Remove { companion: "luna".to_owned(), sure: false }),
        ),
        (sub("reminders", json!([])), Command::Reminders { cancel: None }),
        (sub("timezone", json!([])), Command::TimeZone { zone: None }),
        (sub("timezone", json!([text("zone", " Europe/Berlin ")])), Command::TimeZone { zone: some("Europe/Berlin") }),
        (sub("about", json!([])), Command::About),
        (sub("help", json!([])), Command::Help),
    ] {
        let read = read_json(&used_command(options.clone()));

        assert!(matches!(&read.action, Action::Command(command) if *command == expected), "{options}: {:?}", read.action);
        assert_eq!((read.person.id.get(), read.here.channel.get(), read.here.guild), (7, 3, Snowflake::new(2)));
    }
}

#[test]
fn unsupported_interactions_are_recognised_and_can_be_answered() {
    let sub = |name: &str, options: Value| json!([{ "type": 1, "name": name, "options": options }]);

    for options in [
        json!([]),
        json!([{ "name": "status" }, { "name": "help" }]),
        sub("sing", json!([])),
        sub("join", json!([])),
        sub("talkativeness", json!([{ "name": "level", "value": "loud" }])),
        sub("talkativeness", json!([{ "name": "level", "value": 7 }])),
        sub("pause", json!([{ "name": "switch", "value": "perhaps" }])),
        sub("forget", json!([{ "name": "everybody" }])),
        sub("voice", json!([{ "name": "sing" }])),
        sub("voice", json!([])),
        sub("roles", json!([{ "name": "list", "value": "kings" }])),
        sub("roles", json!([{ "name": "role", "value": "x" }])),
        sub("own", json!([{ "name": "sell" }])),
        sub("own", json!([{ "name": "change" }])),
        // A channel that is not among the resolved ones.
        sub("join", json!([{ "name": "companion", "value": "aria" }, { "name": "where", "value": "99" }])),
        sub("join", json!([{ "name": "companion", "value": "aria" }, { "name": "where", "value": 99 }])),
    ] {
        let read = read_json(&used_command(options.clone()));

        assert!(matches!(read.action, Action::Unknown { choices: false }), "{options}: {:?}", read.action);
        assert_eq!(read.handle.id.get(), 1);
    }
    for (field, value) in [("type", json!(3)), ("data", json!({ "name": "other", "type": 1 })), ("data", Value::Null)] {
        let mut interaction = used_command(sub("help", json!([])));
        interaction[field] = value;
        assert!(matches!(read_json(&interaction).action, Action::Unknown { .. }), "{interaction}");
    }
}

#[test]
fn a_question_has_the_text_of_its_message_and_a_choice_has_the_id_of_its_question() {
    let mut asked = used_command(Value::Null);
    let message = json!({ "id": "30", "channel_id": "3", "author": { "id": "8", "username": "bob" }, "content": "Tea?" });
    asked["data"] = json!({
        "name": "Ask a companion about this", "type": 3, "target_id": "30", "resolved": { "messages": { "30": message } },
    });
    let mut chosen = used_command(Value::Null);
    chosen["type"] = json!(3);
    chosen["data"] = json!({ "custom_id": "ask:77", "component_type": 3, "values": ["aria"] });
    chosen["member"]["user"]["global_name"] = json!("Ana");

    let read = read_json(&asked);
    let Action::Ask(message) = read.action else { panic!("{:?}", read.action) };
    assert_eq!((message.id.get(), message.content()), (30, "Tea?"));
    let read = read_json(&chosen);
    let Action::Choose { question, companion } = read.action else { panic!("{:?}", read.action) };
    assert_eq!((question.get(), &*companion, &*read.person.name), (77, "aria", "Ana"));

    for (field, value) in [("target_id", json!("31")), ("type", json!(1)), ("name", json!("tertulia")), ("resolved", json!({}))] {
        let mut malformed = asked.clone();
        malformed["data"][field] = value;
        assert!(matches!(read_json(&malformed).action, Action::Unknown { .. }), "{malformed}");
    }
    for (field, value) in
        [("custom_id", json!("other:77")), ("custom_id", json!("ask:x")), ("values", json!([])), ("values", json!(7))]
    {
        let mut malformed = chosen.clone();
        malformed["data"][field] = value;
        assert!(matches!(read_json(&malformed).action, Action::Unknown { .. }), "{malformed}");
    }
}

#[test]
fn the_buttons_below_a_call_name_it_and_say_yes_or_no() {
    let mut pressed = used_command(json!([]));
    pressed["type"] = json!(3);
    for (id, wanted) in [("call:yes:7", Some((7, true))), ("call:no:7", Some((7, false))), ("call:yes:", None), ("call:7", None)]
    {
        pressed["data"] = json!({ "custom_id": id, "component_type": 2 });

        let read = read_json(&pressed);

        let decided = match read.action {
            Action::Command(Command::DecideCall { call, confirm }) => Some((call, confirm)),
            _ => None,
        };
        assert_eq!(decided, wanted, "{id}");
    }
}

#[test]
fn a_chosen_channel_has_its_permissions() {
    let mut interaction = used_command(json!([{ "type": 1, "name": "join", "options": [
        { "type": 3, "name": "companion", "value": "aria" }, { "type": 7, "name": "where", "value": "30" },
    ] }]));
    let thread = json!({
        "id": "30", "type": 11, "parent_id": "3", "permissions": "16", "app_permissions": "1024", "thread_metadata": { "locked": true },
    });
    interaction["data"]["resolved"] = json!({ "channels": { "30": thread } });

    let Action::Command(Command::Join { to: Some(to), .. }) = read_json(&interaction).action else { panic!("it is not a join") };

    assert_eq!((to.channel.get(), to.parent, to.guild, to.is_locked), (30, Snowflake::new(3), Snowflake::new(2), true));
    assert!(to.user_may_change());
    assert_eq!(to.missing().unwrap()[0], Need::Webhooks);
    let channel_ref = to.channel_ref();
    assert_eq!((channel_ref.guild.as_str(), channel_ref.channel.as_str()), ("discord:2", "discord:30"));
    assert_eq!(channel_ref.parent.unwrap().as_str(), "discord:3");
    // A channel's parent is a category, and not a thread's channel.
    interaction["data"]["resolved"]["channels"]["30"]["type"] = json!(0);
    let Action::Command(Command::Join { to: Some(to), .. }) = read_json(&interaction).action else { panic!("it is not a join") };
    assert_eq!(to.parent, None);
}

#[test]
fn discords_permissions_decide_who_may_change_a_channel() {
    for (permissions, may) in
        [("0", false), ("16", true), ("8", true), ("1024", false), ("x", false), ("18446744073709551615", true)]
    {
        let mut interaction = used_command(json!([{ "name": "help" }]));
        interaction["member"]["permissions"] = json!(permissions);
        assert_eq!(read_json(&interaction).here.user_may_change(), may, "{permissions}");
    }
    let mut direct = used_command(json!([{ "name": "help" }]));
    for gone in ["guild_id", "member"] {
        direct.as_object_mut().unwrap().remove(gone);
    }
    direct["user"] = json!({ "id": "7" });
    direct["channel"] = json!({ "id": "3", "type": 1 });
    let read = read_json(&direct);
    assert!(read.here.user_may_change() && read.here.is_direct());
    assert_eq!((read.here.guild_id().as_str(), read.here.missing()), ("dm:discord:3", Some(Vec::new())));
}

#[test]
fn a_form_has_the_typed_texts_within_their_limit() {
    let mut interaction = used_command(Value::Null);
    let row = |name: &str, value: String| json!({ "type": 1, "components": [{ "type": 4, "custom_id": name, "value": value }] });
    interaction["type"] = json!(5);
    interaction["data"] =
        json!({ "custom_id": "own::", "components": [row("name", "Luna".to_owned()), row("persona", "x".repeat(9_000))] });

    let action = read_json(&interaction).action;
    let Action::Command(Command::Own(OwnRequest::Written { of: None, form })) = action else { panic!("{action:?}") };

    assert_eq!((&*form.name, form.persona.len(), &*form.picture), ("Luna", 4_000, ""));
    interaction["data"]["custom_id"] = json!("theirs");
    assert!(matches!(read_json(&interaction).action, Action::Unknown { choices: false }));
}

#[test]
fn typed_text_is_cut() {
    let mut interaction = used_command(json!([{ "type": 1, "name": "leave", "options": [
        { "type": 3, "name": "companion", "value": "x".repeat(100_000), "focused": true },
    ] }]));
    interaction["type"] = json!(4);

    let Action::Typing(typing) = read_json(&interaction).action else { panic!("it is not autocomplete") };

    assert_eq!((&*typing.command, typing.typed.len(), typing.at), ("leave", LONGEST_TYPED, None));
}

#[test]
fn no_error_holds_the_token() {
    for broken in
        [r#"{"id":"1","application_id":"2","token":"secret","type":"#, r#"{"id":"x","token":"secret"}"#, r#"{"token":"secret"}"#]
    {
        let error = read(broken).unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
    let read = read_json(&used_command(json!([{ "name": "help" }])));
    assert!(!format!("{read:?}").contains("a-token"), "{read:?}");
}

fn read_json(interaction: &Value) -> Interaction {
    read(&interaction.to_string()).unwrap()
}

/// An interaction by somebody without permissions in a channel of a guild.
fn used_command(options: Value) -> Value {
    json!({
        "id": "1",
        "application_id": "9",
        "token": "a-token",
        "type": 2,
        "guild_id": "2",
        "channel_id": "3",
        "channel": { "id": "3", "type": 0, "parent_id": "4" },
        "member": { "user": { "id": "7" }, "permissions": "0" },
        "app_permissions": "0",
        "data": { "id": "5", "name": "tertulia", "type": 1, "options": options },
    })
}

//! What is registered with Discord: the command `/tertulia`, its subcommands and their options, the entry in the menu of a message, and
//! every text of theirs.
//!
//! Where it is offered in other languages one day, their texts belong here.

use serde_json::{Map, Value, json};

/// The command's name.
pub const TERTULIA: &str = "tertulia";
pub(super) const STATUS: &str = "status";
pub(super) const JOIN: &str = "join";
pub(super) const LEAVE: &str = "leave";
pub(super) const TALKATIVENESS: &str = "talkativeness";
pub(super) const PAUSE: &str = "pause";
pub(super) const WHY: &str = "why";
pub(super) const FORGET: &str = "forget";
pub(super) const IGNORE: &str = "ignore";
pub(super) const ME: &str = "me";
pub(super) const SAY: &str = "say";
pub(super) const HELP: &str = "help";
/// The entry in the menu of a message.
pub(super) const ASK: &str = "Ask a companion about this";
pub(super) const COMPANION: &str = "companion";
pub(super) const WHERE: &str = "where";
pub(super) const LEVEL: &str = "level";
pub(super) const SWITCH: &str = "switch";
pub(super) const ON: &str = "on";
pub(super) const OFF: &str = "off";
pub(super) const SURE: &str = "sure";
pub(super) const TEXT: &str = "text";
/// Every subcommand, and every group of them.
pub(super) const SUBCOMMANDS: [&str; 10] = [STATUS, JOIN, LEAVE, TALKATIVENESS, PAUSE, WHY, FORGET, IGNORE, SAY, HELP];
/// As much as can be said at once, in characters: shown to others, it has to fit into a message with the two names.
pub(super) const LONGEST_SAID: usize = 1_500;

/// The kinds of commands (Discord's documentation, "Application Commands", "Application Command Types").
pub(super) const CHAT_INPUT: u8 = 1;
pub(super) const MESSAGE: u8 = 3;

/// The kinds of options (Discord's documentation, "Application Commands", "Application Command Option Type").
const SUB_COMMAND: u8 = 1;
const SUB_COMMAND_GROUP: u8 = 2;
const STRING: u8 = 3;
const BOOLEAN: u8 = 5;
const CHANNEL: u8 = 7;
/// Where companions can live: text, voice, announcements, the three kinds of threads, stages, forums, media.
const CHANNEL_TYPES: [u8; 9] = [0, 2, 5, 10, 11, 12, 13, 15, 16];

/// How readily a companion speaks up without being asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// One of the tiers, as settings name it.
    Tier(&'static str),
    /// What the companion's own settings say.
    Default,
}

const DEFAULT: &str = "default";
/// Every level: as it is sent, as it is chosen, as it is told of.
const LEVELS: [(&str, &str, &str); 6] = [
    ("very_quiet", "Very quiet", "rarely speaks up unless somebody turns to it"),
    ("quiet", "Quiet", "seldom speaks up unless somebody turns to it"),
    ("average", "Average", "speaks up now and then"),
    ("eager", "Eager", "often speaks up"),
    ("very_eager", "Very eager", "speaks up whenever it can"),
    (DEFAULT, "Default: as whoever runs the bot set it", ""),
];

impl Level {
    /// The level that is sent under this name.
    pub fn named(name: &str) -> Option<Self> {
        let (name, ..) = LEVELS.iter().find(|(known, ..)| *known == name)?;
        Some(if *name == DEFAULT { Self::Default } else { Self::Tier(name) })
    }

    /// The name that it is sent under.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tier(name) => name,
            Self::Default => DEFAULT,
        }
    }
}

/// A tier in words; one that is not known by its name.
pub(super) fn tier_in_words(tier: &str) -> &str {
    LEVELS.iter().find(|(known, _, words)| *known == tier && !words.is_empty()).map_or(tier, |(_, _, words)| words)
}

/// What `/tertulia` is, as it is registered.
pub(super) fn command() -> Value {
    let whom = |text| optional_companion(text);
    json!({
        "name": TERTULIA,
        "type": CHAT_INPUT,
        "description": "Companions in this channel: who is here, who comes and goes, how much they talk",
        // In servers that the bot was added to, and in direct messages with it.
        "integration_types": [0],
        "contexts": [0, 1],
        "options": [
            subcommand(STATUS, "Who is here, and whether they can hear and speak", &[whom("Only this companion")]),
            subcommand(JOIN, "Let a companion into a channel", &[
                companion("Who is to come", true),
                channel("Another channel than this one; a forum means all its posts"),
            ]),
            subcommand(LEAVE, "Send a companion out of a channel", &[
                companion("Who is to go", true),
                channel("Another channel than this one"),
            ]),
            subcommand(TALKATIVENESS, "How readily companions speak up here without being asked to", &[
                levels(),
                whom("Only this companion; all who are here if left out"),
            ]),
            subcommand(PAUSE, "Silence companions in this channel, or let them go on", &[
                whom("Only this companion; all who are here if left out"),
                switch("on: silence them (if left out); off: let them go on"),
            ]),
            subcommand(WHY, "Why companions spoke here, or did not; only you see it", &[whom("Only this companion")]),
            group(FORGET, "What is remembered of you", subcommand(ME, "Remove what you said on this server from memory", &[
                json!({ "type": BOOLEAN, "name": SURE, "description": "It cannot be taken back: choose True to do it" }),
            ])),
            group(IGNORE, "Whether companions listen to you", subcommand(ME, "Companions of this server stop listening to you", &[
                switch("on: they ignore you (if left out); off: they listen again"),
            ])),
            subcommand(SAY, "Say something to a companion; everybody here sees it", &[
                companion("Whom to say it to", true),
                json!({ "type": STRING, "name": TEXT, "description": "What to say", "required": true, "max_length": LONGEST_SAID }),
            ]),
            subcommand(HELP, "What you can do here", &[]),
        ],
    })
}

/// The entry in the menu of a message, as it is registered.
fn ask() -> Value {
    json!({ "name": ASK, "type": MESSAGE, "integration_types": [0], "contexts": [0, 1] })
}

fn subcommand(name: &str, description: &str, options: &[Value]) -> Value {
    json!({ "type": SUB_COMMAND, "name": name, "description": description, "options": options })
}

fn group(name: &str, description: &str, subcommand: Value) -> Value {
    json!({ "type": SUB_COMMAND_GROUP, "name": name, "description": description, "options": [subcommand] })
}

fn companion(description: &str, required: bool) -> Value {
    json!({ "type": STRING, "name": COMPANION, "description": description, "required": required, "autocomplete": true })
}

fn optional_companion(description: &str) -> Value {
    companion(description, false)
}

fn channel(description: &str) -> Value {
    json!({ "type": CHANNEL, "name": WHERE, "description": description, "channel_types": CHANNEL_TYPES })
}

fn switch(description: &str) -> Value {
    let choices = [ON, OFF].map(|name| json!({ "name": name, "value": name }));
    json!({ "type": STRING, "name": SWITCH, "description": description, "choices": choices })
}

fn levels() -> Value {
    let choices = LEVELS.map(|(value, name, _)| json!({ "name": name, "value": value }));
    let description = "How readily they speak up";
    json!({ "type": STRING, "name": LEVEL, "description": description, "required": true, "choices": choices })
}

/// How the commands stand among those that an application has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// `/tertulia` is not there.
    Missing,
    /// Something is there as an older or newer server registered it.
    Outdated,
    /// Nothing is to be done.
    AsItShouldBe,
}

/// How the commands stand among those that Discord lists.
pub fn standing(listed: &[Value]) -> Standing {
    if registered_as(listed, &command()).is_none() {
        return Standing::Missing;
    }
    if to_register(listed).is_empty() { Standing::AsItShouldBe } else { Standing::Outdated }
}

/// The commands that are missing or different among those that Discord lists, as they should be.
pub(super) fn to_register(listed: &[Value]) -> Vec<Value> {
    let is_there = |wanted: &Value| registered_as(listed, wanted).is_some_and(|own| is_same(own, wanted));
    [command(), ask()].into_iter().filter(|wanted| !is_there(wanted)).collect()
}

/// What Discord lists under the name and type of a command.
fn registered_as<'a>(listed: &'a [Value], wanted: &Value) -> Option<&'a Value> {
    let kind = |command: &Value| command["type"].as_u64().unwrap_or(CHAT_INPUT.into());
    listed.iter().find(|command| command["name"] == wanted["name"] && kind(command) == kind(wanted))
}

/// Whether Discord has a command as it should be. It gives back more than it was given, and leaves out what is usual.
fn is_same(registered: &Value, wanted: &Value) -> bool {
    essence(registered) == essence(wanted)
}

/// What a person would notice: what is known here, without what is as usual.
fn essence(of: &Value) -> Value {
    const NOTICED: [&str; 21] = [
        "name",
        "name_localizations",
        "description",
        "description_localizations",
        "type",
        "options",
        "required",
        "choices",
        "value",
        "autocomplete",
        "channel_types",
        "min_value",
        "max_value",
        "min_length",
        "max_length",
        "default_member_permissions",
        "integration_types",
        "contexts",
        "nsfw",
        "dm_permission",
        "handler",
    ];
    let is_usual = |name: &str, value: &Value| match value {
        Value::Null => true,
        Value::Bool(flag) => *flag == (name == "dm_permission"),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Number(_) => false,
    };
    let Some(fields) = of.as_object() else { return of.clone() };
    let noticed = fields.iter().filter(|(name, value)| NOTICED.contains(&name.as_str()) && !is_usual(name, value));
    let inside = |name: &str, value: &Value| match value {
        Value::Array(list) if matches!(name, "options" | "choices") => list.iter().map(essence).collect(),
        Value::Array(list) => {
            // Sets, in any order.
            let mut numbers: Vec<_> = list.iter().map(Value::as_u64).collect();
            numbers.sort_unstable();
            json!(numbers)
        }
        value => value.clone(),
    };
    let essence: Map<String, Value> = noticed.map(|(name, value)| (name.clone(), inside(name, value))).collect();
    Value::Object(essence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_however_discord_writes_it() {
        let wanted = command();
        let mut told = wanted.clone();
        told["id"] = json!("1");
        told["version"] = json!("2");
        told["application_id"] = json!("3");
        told["default_member_permissions"] = Value::Null;
        told["dm_permission"] = json!(true);
        told["nsfw"] = json!(false);
        told["contexts"] = json!([1, 0]);
        told["name_localizations"] = Value::Null;
        told["options"][9].as_object_mut().unwrap().remove("options");
        told["options"][0]["options"][0].as_object_mut().unwrap().remove("required");
        told["options"][1]["options"][1]["channel_types"] = json!([16, 15, 13, 12, 11, 10, 5, 2, 0]);

        assert!(is_same(&told, &wanted));
        assert!(is_same(&wanted, &wanted));
    }

    #[test]
    fn whatever_a_person_would_notice_is_a_difference() {
        let wanted = command();
        let changes: [fn(&mut Value); 8] = [
            |told| told["description"] = json!("Something else"),
            |told| told["contexts"] = json!([0]),
            |told| told["default_member_permissions"] = json!("8"),
            |told| told["options"][1]["options"][0]["autocomplete"] = json!(false),
            |told| told["options"][3]["options"][0]["choices"][0]["name"] = json!("Silent"),
            |told| told["options"][1]["options"][1]["channel_types"] = json!([0]),
            |told| drop(told["options"].as_array_mut().unwrap().pop()),
            |told| told["options"].as_array_mut().unwrap().swap(0, 1),
        ];

        for (number, change) in changes.into_iter().enumerate() {
            let mut told = wanted.clone();
            change(&mut told);
            assert!(!is_same(&told, &wanted), "change {number}");
        }
        assert!(!is_same(&Value::Null, &wanted));
    }

    #[test]
    fn what_is_missing_or_different_is_registered_and_nothing_else() {
        let with = |command: Value, field: &str, value: Value| {
            let mut changed = command;
            changed[field] = value;
            changed
        };
        // Discord gives such a command an empty description.
        let as_told = with(ask(), "description", json!(""));
        let renamed = with(ask(), "contexts", json!([0]));

        assert_eq!(to_register(&[command(), as_told.clone()]), [Value::Null; 0]);
        assert_eq!(to_register(&[]), [command(), ask()]);
        assert_eq!(to_register(&[command(), renamed.clone()]), [ask()]);
        assert_eq!(to_register(&[as_told.clone(), with(command(), "description", json!("Old"))]), [command()]);
        assert_eq!(
            [vec![], vec![as_told.clone()], vec![command()], vec![command(), renamed], vec![command(), as_told]]
                .map(|all| standing(&all)),
            [Standing::Missing, Standing::Missing, Standing::Outdated, Standing::Outdated, Standing::AsItShouldBe]
        );
    }

    #[test]
    fn every_level_is_read_as_it_is_offered() {
        let offered = levels();
        let mut read =
            offered["choices"].as_array().unwrap().iter().map(|choice| Level::named(choice["value"].as_str().unwrap()));

        assert_eq!(read.clone().flatten().count(), LEVELS.len());
        assert_eq!(read.next_back(), Some(Some(Level::Default)));
        assert_eq!(Level::named("loud"), None);
        let tiers = crate::settings::companion::Interjection::ALL.map(|tier| tier_in_words(tier.as_str()).to_owned());
        assert!(tiers.iter().all(|words| words.contains("speak")), "{tiers:?}");
    }
}

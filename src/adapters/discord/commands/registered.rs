//! What is registered with Discord: the one command `/tertulia`, its subcommands and their options, and every text of theirs.
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
pub(super) const HELP: &str = "help";
pub(super) const COMPANION: &str = "companion";
pub(super) const WHERE: &str = "where";
pub(super) const LEVEL: &str = "level";
pub(super) const SWITCH: &str = "switch";
pub(super) const ON: &str = "on";
pub(super) const OFF: &str = "off";
pub(super) const SURE: &str = "sure";
/// Every subcommand, and every group of them.
pub(super) const SUBCOMMANDS: [&str; 9] = [STATUS, JOIN, LEAVE, TALKATIVENESS, PAUSE, WHY, FORGET, IGNORE, HELP];

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
        "type": 1,
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
            subcommand(HELP, "What you can do here", &[]),
        ],
    })
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

/// How the command stands among those that an application has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is not there.
    Missing,
    /// It is there as an older or newer server registered it.
    Outdated,
    /// Nothing is to be done.
    AsItShouldBe,
}

/// How the command stands among those that Discord lists.
pub fn standing(listed: &[Value]) -> Standing {
    let is_ours = |command: &&Value| command["name"] == TERTULIA && matches!(command["type"].as_u64(), None | Some(1));
    match listed.iter().find(is_ours) {
        None => Standing::Missing,
        Some(own) if is_same(own, &command()) => Standing::AsItShouldBe,
        Some(_) => Standing::Outdated,
    }
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
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
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
        told["options"][8].as_object_mut().unwrap().remove("options");
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

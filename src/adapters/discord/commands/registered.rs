//! The commands registered with Discord, with all their texts: `/tertulia`, its subcommands and options, and the entries in the menus of messages
//! and users.
//!
//! `languages.json` has the translations of the texts.

use serde_json::{Map, Value, json};
use twilight_model::application::command::{
    Command, CommandOption, CommandOptionChoice, CommandOptionChoiceValue, CommandOptionType, CommandType,
};
use twilight_model::application::interaction::InteractionContextType;
use twilight_model::channel::ChannelType;
use twilight_model::id::Id;
use twilight_model::oauth::ApplicationIntegrationType;

use super::quoting::name;
use super::text::{Text, say, translations};

pub const TERTULIA: &str = "tertulia";
pub(super) const STATUS: &str = "status";
pub(super) const JOIN: &str = "join";
pub(super) const LEAVE: &str = "leave";
pub(super) const TALKATIVENESS: &str = "talkativeness";
pub(super) const PAUSE: &str = "pause";
pub(super) const WHY: &str = "why";
pub(super) const RECALL: &str = "recall";
pub(super) const MEMORY: &str = "memory";
pub(super) const REMINDERS: &str = "reminders";
pub(super) const TIME_ZONE: &str = "timezone";
pub(super) const ZONE: &str = "zone";
pub(super) const FORGET: &str = "forget";
pub(super) const IGNORE: &str = "ignore";
pub(super) const EXPORT_ME: &str = "export-me";
pub(super) const ME: &str = "me";
pub(super) const VOICE: &str = "voice";
pub(super) const SAY: &str = "say";
pub(super) const ABOUT: &str = "about";
pub(super) const HELP: &str = "help";
/// The entries in the menu of a message.
pub(super) const ASK: &str = "Ask a companion about this";
pub(super) const WHY_OF: &str = "Why?";
pub(super) const FORGET_MESSAGE: &str = "Forget this";
pub(super) const ANSWER_AGAIN: &str = "Answer again";
/// The entry in the menu of a user.
pub(super) const PAUSE_FOR_ME: &str = "Pause for me";
pub(super) const COMPANION: &str = "companion";
pub(super) const WHERE: &str = "where";
pub(super) const LEVEL: &str = "level";
pub(super) const QUIET_HOURS: &str = "quiet_hours";
pub(super) const SWITCH: &str = "switch";
pub(super) const ON: &str = "on";
pub(super) const OFF: &str = "off";
pub(super) const PROFILE: &str = "companion";
pub(super) const SETUP: &str = "setup";
pub(super) const ROLES: &str = "roles";
pub(super) const OWN: &str = "own";
pub(super) const MAKE: &str = "make";
pub(super) const CHANGE: &str = "change";
pub(super) const REMOVE: &str = "remove";
pub(super) const LIST: &str = "list";
pub(super) const ROLE: &str = "role";
pub(super) const MAY_ADDRESS: &str = "may_address";
pub(super) const NEVER_ANSWERED: &str = "never_answered";
pub(super) const STOP: &str = "stop";
pub(super) const NEXT: &str = "next";
pub(super) const CLEAR: &str = "clear";
pub(super) const AGAIN: &str = "again";
/// The beginnings of the ids of buttons that confirm a command.
pub(super) const SURE_FORGET: &str = "forget:";
pub(super) const SURE_CLEAR: &str = "clear:";
pub(super) const TEXT: &str = "text";
pub(super) const WORDS: &str = "words";
pub(super) const NOTE: &str = "note";
pub(super) const NOTES: &str = "notes";
pub(super) const SERVER: &str = "server";
pub(super) const ACROSS: &str = "across";
/// The length limit of `/tertulia say`. The text and both names must fit into one message.
pub(super) const LONGEST_SAID: u16 = 1_500;
/// The length limit of a note.
const LONGEST_NOTE: u16 = 240;
/// The length limit of the name of a time zone.
const LONGEST_ZONE: u16 = 64;
/// The length limit of a search.
const LONGEST_SEARCHED: u16 = 200;

/// The types of channels that companions can join.
pub const CHANNEL_TYPES: [ChannelType; 9] = [
    ChannelType::GuildText,
    ChannelType::GuildVoice,
    ChannelType::GuildAnnouncement,
    ChannelType::AnnouncementThread,
    ChannelType::PublicThread,
    ChannelType::PrivateThread,
    ChannelType::GuildStageVoice,
    ChannelType::GuildForum,
    ChannelType::GuildMedia,
];
/// The types of channels that have calls.
const VOICE_TYPES: [ChannelType; 2] = [ChannelType::GuildVoice, ChannelType::GuildStageVoice];

/// How readily a companion speaks up unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// It speaks only when spoken to.
    SpokenTo,
    /// A level, as named in the settings.
    Tier(&'static str),
    /// The value of the companion's own settings.
    Default,
}

const DEFAULT: &str = "default";
pub(super) const SPOKEN_TO: &str = "spoken_to";
/// The levels: value, name in the list.
pub(super) const LEVELS: [(&str, &str); 7] = [
    (SPOKEN_TO, "Only when spoken to"),
    ("very_quiet", "Very quiet"),
    ("quiet", "Quiet"),
    ("average", "Average"),
    ("eager", "Eager"),
    ("very_eager", "Very eager"),
    (DEFAULT, "Default: as configured for the companion"),
];

impl Level {
    /// Finds a level by its value.
    pub fn named(name: &str) -> Option<Self> {
        let (name, _) = LEVELS.iter().find(|(known, _)| *known == name)?;
        Some(match *name {
            DEFAULT => Self::Default,
            SPOKEN_TO => Self::SpokenTo,
            tier => Self::Tier(tier),
        })
    }

    /// The value in Discord's options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SpokenTo => SPOKEN_TO,
            Self::Tier(name) => name,
            Self::Default => DEFAULT,
        }
    }
}

/// How readily a companion speaks up.
pub(super) fn tier_sentence(tier: &str, companion: &str) -> Text {
    let name = name(companion);
    match tier {
        SPOKEN_TO => say!("{name} speaks only when it is spoken to.", name = name),
        "very_quiet" => say!("{name} rarely speaks up unless it is addressed.", name = name),
        "quiet" => say!("{name} seldom speaks up unless it is addressed.", name = name),
        "eager" => say!("{name} often speaks up.", name = name),
        "very_eager" => say!("{name} speaks up whenever it can.", name = name),
        _ => say!("{name} speaks up now and then.", name = name),
    }
}

/// The definition of `/tertulia`.
pub(super) fn command() -> Value {
    let only = |text| companion(text, false);
    let description = "Companions in this channel: who is here, who comes and goes, how much they talk";
    registered(
        TERTULIA,
        CommandType::ChatInput,
        description,
        vec![
            subcommand(STATUS, "Who is here, and whether they can read and speak", vec![only("Only this companion")]),
            subcommand(
                JOIN,
                "Add a companion to a channel",
                vec![
                    companion("The companion to add", true),
                    channel("Another channel than this one; a forum means all its posts", &CHANNEL_TYPES),
                ],
            ),
            subcommand(
                LEAVE,
                "Remove a companion from a channel",
                vec![companion("The companion to remove", true), channel("Another channel than this one", &CHANNEL_TYPES)],
            ),
            subcommand(
                TALKATIVENESS,
                "How readily companions speak up here unasked",
                vec![
                    levels(),
                    only("Only this companion; all who are here if left out"),
                    option(
                        CommandOptionType::String,
                        QUIET_HOURS,
                        "When they speak only when spoken to: 23:00-08:00, always or never",
                    ),
                ],
            ),
            subcommand(
                PAUSE,
                "Pause companions in this channel, or resume them",
                vec![
                    only("Only this companion; all who are here if left out"),
                    switch("on: pause them (if left out); off: resume them"),
                ],
            ),
            subcommand(WHY, "Why companions spoke here, or did not; only you see it", vec![only("Only this companion")]),
            subcommand(
                RECALL,
                "Find what was said here; only you see it",
                vec![CommandOption {
                    required: Some(true),
                    min_length: Some(1),
                    max_length: Some(LONGEST_SEARCHED),
                    ..option(CommandOptionType::String, WORDS, "Words of it, in any of their forms")
                }],
            ),
            subcommand(
                MEMORY,
                "What companions noted about you here; only you see it",
                vec![
                    option(
                        CommandOptionType::Integer,
                        NOTE,
                        "The number of a note: it is erased, or corrected if there is a text",
                    ),
                    CommandOption {
                        max_length: Some(LONGEST_NOTE),
                        ..option(CommandOptionType::String, TEXT, "What is to be remembered instead")
                    },
                    choice(ME, "off: erase the notes about me, and take no more", &[ON, OFF].map(|name| (name, name))),
                    choice(
                        SERVER,
                        "Whether companions of this server take notes, for its managers",
                        &[ON, OFF].map(|name| (name, name)),
                    ),
                    choice(
                        ACROSS,
                        "Whether they use notes of public channels in all channels, for its managers",
                        &[ON, OFF].map(|name| (name, name)),
                    ),
                ],
            ),
            group(
                FORGET,
                "What is remembered of you",
                vec![subcommand(ME, "Remove what you said on this server from memory; it asks first", Vec::new())],
            ),
            group(
                IGNORE,
                "Whether companions listen to you",
                vec![subcommand(
                    ME,
                    "Companions of this server stop listening to you",
                    vec![switch("on: they ignore you (if left out); off: they listen again")],
                )],
            ),
            subcommand(EXPORT_ME, "What is kept of what you said, as a file that only you see", Vec::new()),
            group(
                VOICE,
                "Companions in the call of a voice channel",
                vec![
                    subcommand(
                        JOIN,
                        "Bring the companions of a voice channel into its call",
                        vec![channel("The voice channel; yours if left out", &VOICE_TYPES)],
                    ),
                    subcommand(LEAVE, "Send the companions out of the call", Vec::new()),
                    subcommand(STATUS, "Who is heard in the call, and whether there is a problem", Vec::new()),
                    subcommand(
                        NOTES,
                        "Whether the words of voice notes in this channel are recognised",
                        vec![CommandOption { required: Some(true), ..switch("on: of all voice notes; off: of none") }],
                    ),
                ],
            ),
            subcommand(
                SAY,
                "Say something to a companion; everybody here sees it",
                vec![
                    companion("The companion to say it to", true),
                    CommandOption {
                        required: Some(true),
                        max_length: Some(LONGEST_SAID),
                        ..option(CommandOptionType::String, TEXT, "What to say")
                    },
                ],
            ),
            subcommand(ABOUT, "What the companions are, who runs them, and what is kept; only you see it", Vec::new()),
            subcommand(HELP, "What you can do here", Vec::new()),
            subcommand(STOP, "Stop what companions are writing here", vec![only("Only this companion")]),
            subcommand(CLEAR, "Have companions begin anew in this channel; it asks first", Vec::new()),
            subcommand(PROFILE, "Who the companions of this server are, with pictures", vec![only("Only this companion")]),
            subcommand(SETUP, "Set companions up with menus: channels, talkativeness, memory, roles", Vec::new()),
            subcommand(
                ROLES,
                "Which roles may address companions, and which are never answered",
                vec![
                    choice(
                        LIST,
                        "The list to change",
                        &[
                            (MAY_ADDRESS, "Roles that may address companions; everybody if there are none"),
                            (NEVER_ANSWERED, "Roles that are never answered"),
                        ],
                    ),
                    option(CommandOptionType::Role, ROLE, "The role to add or to remove"),
                    switch("on: add the role (if left out); off: remove it"),
                ],
            ),
            group(
                OWN,
                "Companions that this server makes itself, if the operator allows it",
                vec![
                    subcommand(MAKE, "Make a companion of this server's own", Vec::new()),
                    subcommand(CHANGE, "Change one: name, persona, picture", vec![companion("The companion to change", true)]),
                    subcommand(
                        REMOVE,
                        "Remove one for good; it asks first",
                        vec![companion("The companion to remove for good", true)],
                    ),
                ],
            ),
            subcommand(AGAIN, "Have the newest answer here replaced by another one", Vec::new()),
            subcommand(NEXT, "Let a companion speak next, or all of them once", vec![only("Only this companion")]),
            subcommand(REMINDERS, "Your reminders in this channel, to cancel them; only you see it", Vec::new()),
            subcommand(
                TIME_ZONE,
                "The time zone in which your times are read; only you see it",
                vec![CommandOption {
                    max_length: Some(LONGEST_ZONE),
                    ..option(CommandOptionType::String, ZONE, "Its name, such as Europe/Berlin; default: that of the server")
                }],
            ),
        ],
    )
}

/// The definitions of the entries in the menus of messages (at most five) and users.
fn menu() -> [Value; 5] {
    let (of_message, of_user) = (CommandType::Message, CommandType::User);
    let entries = [
        (ASK, of_message),
        (WHY_OF, of_message),
        (FORGET_MESSAGE, of_message),
        (ANSWER_AGAIN, of_message),
        (PAUSE_FOR_ME, of_user),
    ];
    entries.map(|(entry, kind)| registered(entry, kind, "", Vec::new()))
}

/// A command for guilds that the bot was added to, and for direct messages with it.
fn registered(name: &str, kind: CommandType, description: &str, options: Vec<CommandOption>) -> Value {
    #[expect(deprecated, reason = "all fields are required")]
    let command = Command {
        name: name.to_owned(),
        kind,
        description: description.to_owned(),
        options,
        integration_types: Some(vec![ApplicationIntegrationType::GuildInstall]),
        contexts: Some(vec![InteractionContextType::Guild, InteractionContextType::BotDm]),
        version: Id::new(1),
        application_id: None,
        default_member_permissions: None,
        description_localizations: None,
        dm_permission: None,
        guild_id: None,
        id: None,
        name_localizations: None,
        nsfw: None,
    };
    let mut command = json!(command);
    localize(&mut command);
    // Removes default values, and the fields that Discord sets.
    essence(&command)
}

/// Adds the translations of names and descriptions.
fn localize(command: &mut Value) {
    for field in ["description", "name"] {
        let translations = command[field].as_str().and_then(translations);
        if let Some(translations) = translations {
            command[format!("{field}_localizations")] = json!(translations);
        }
    }
    for list in ["options", "choices"] {
        command[list].as_array_mut().into_iter().flatten().for_each(localize);
    }
}

fn option(kind: CommandOptionType, name: &str, description: &str) -> CommandOption {
    CommandOption {
        kind,
        name: name.to_owned(),
        description: description.to_owned(),
        autocomplete: None,
        channel_types: None,
        choices: None,
        description_localizations: None,
        file_types: None,
        max_length: None,
        max_value: None,
        min_length: None,
        min_value: None,
        name_localizations: None,
        options: None,
        required: None,
    }
}

fn subcommand(name: &str, description: &str, options: Vec<CommandOption>) -> CommandOption {
    CommandOption { options: Some(options), ..option(CommandOptionType::SubCommand, name, description) }
}

fn group(name: &str, description: &str, subcommands: Vec<CommandOption>) -> CommandOption {
    CommandOption { options: Some(subcommands), ..option(CommandOptionType::SubCommandGroup, name, description) }
}

fn companion(description: &str, required: bool) -> CommandOption {
    let name = option(CommandOptionType::String, COMPANION, description);
    CommandOption { required: Some(required), autocomplete: Some(true), ..name }
}

fn channel(description: &str, types: &[ChannelType]) -> CommandOption {
    CommandOption { channel_types: Some(types.to_vec()), ..option(CommandOptionType::Channel, WHERE, description) }
}

fn switch(description: &str) -> CommandOption {
    choice(SWITCH, description, &[ON, OFF].map(|name| (name, name)))
}

fn levels() -> CommandOption {
    choice(LEVEL, "How readily they speak up", &LEVELS)
}

/// An option with a fixed list of values, each with its name.
fn choice(name: &str, description: &str, choices: &[(&str, &str)]) -> CommandOption {
    let choices = choices.iter().map(|(value, name)| CommandOptionChoice {
        name: (*name).to_owned(),
        name_localizations: None,
        value: CommandOptionChoiceValue::String((*value).to_owned()),
    });
    CommandOption { choices: Some(choices.collect()), ..option(CommandOptionType::String, name, description) }
}

/// Whether the registered commands are the current ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// `/tertulia` is not registered.
    Missing,
    /// A command is missing, or registered by an older or newer server.
    Outdated,
    Current,
}

/// Compares the commands that Discord lists with the current ones.
pub fn status(listed: &[Value]) -> Status {
    if registered_as(listed, &command()).is_none() {
        return Status::Missing;
    }
    if to_register(listed).is_empty() { Status::Current } else { Status::Outdated }
}

/// The commands that are missing from Discord's list or differ from it.
pub(super) fn to_register(listed: &[Value]) -> Vec<Value> {
    let is_current = |wanted: &Value| registered_as(listed, wanted).is_some_and(|own| is_same(own, wanted));
    all().into_iter().filter(|wanted| !is_current(wanted)).collect()
}

/// The definitions of all commands.
pub(super) fn all() -> Vec<Value> {
    [command()].into_iter().chain(menu()).collect()
}

/// The registered command with the same name and type.
fn registered_as<'a>(listed: &'a [Value], wanted: &Value) -> Option<&'a Value> {
    let kind = |command: &Value| command["type"].as_u64().unwrap_or(u8::from(CommandType::ChatInput).into());
    listed.iter().find(|command| command["name"] == wanted["name"] && kind(command) == kind(wanted))
}

/// Whether a registered command is current. Discord adds fields and omits default values.
fn is_same(registered: &Value, wanted: &Value) -> bool {
    essence(registered) == essence(wanted)
}

/// The fields of a command that are visible to users, without default values.
fn essence(command: &Value) -> Value {
    const NOTICEABLE: [&str; 21] = [
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
    let is_default = |name: &str, value: &Value| match value {
        Value::Null => true,
        Value::Bool(flag) => *flag == (name == "dm_permission"),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Number(_) => false,
    };
    let Some(fields) = command.as_object() else { return command.clone() };
    let noticeable = fields.iter().filter(|(name, value)| NOTICEABLE.contains(&name.as_str()) && !is_default(name, value));
    let normalized = |name: &str, value: &Value| match value {
        Value::Array(list) if matches!(name, "options" | "choices") => list.iter().map(essence).collect(),
        Value::Array(list) => {
            // `channel_types` is a set, so its order is ignored.
            let mut numbers: Vec<_> = list.iter().map(Value::as_u64).collect();
            numbers.sort_unstable();
            json!(numbers)
        }
        value => value.clone(),
    };
    let essence: Map<String, Value> = noticeable.map(|(name, value)| (name.clone(), normalized(name, value))).collect();
    Value::Object(essence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_the_same_with_the_fields_that_discord_adds_or_leaves_out() {
        let wanted = command();
        let mut registered = wanted.clone();
        registered["id"] = json!("1");
        registered["version"] = json!("2");
        registered["application_id"] = json!("3");
        registered["default_member_permissions"] = Value::Null;
        registered["dm_permission"] = json!(true);
        registered["nsfw"] = json!(false);
        registered["contexts"] = json!([1, 0]);
        registered["name_localizations"] = Value::Null;
        registered["options"][13].as_object_mut().unwrap().remove("options");
        registered["options"][0]["options"][0].as_object_mut().unwrap().remove("required");
        registered["options"][1]["options"][1]["channel_types"] = json!([16, 15, 13, 12, 11, 10, 5, 2, 0]);

        assert!(is_same(&registered, &wanted));
        assert!(is_same(&wanted, &wanted));
    }

    #[test]
    fn every_noticeable_change_is_a_difference() {
        let wanted = command();
        let changes: [fn(&mut Value); 8] = [
            |registered| registered["description"] = json!("Something else"),
            |registered| registered["contexts"] = json!([0]),
            |registered| registered["default_member_permissions"] = json!("8"),
            |registered| registered["options"][1]["options"][0]["autocomplete"] = json!(false),
            |registered| registered["options"][3]["options"][0]["choices"][0]["name"] = json!("Silent"),
            |registered| registered["options"][1]["options"][1]["channel_types"] = json!([0]),
            |registered| drop(registered["options"].as_array_mut().unwrap().pop()),
            |registered| registered["options"].as_array_mut().unwrap().swap(0, 1),
        ];

        for (number, change) in changes.into_iter().enumerate() {
            let mut registered = wanted.clone();
            change(&mut registered);
            assert!(!is_same(&registered, &wanted), "change {number}");
        }
        assert!(!is_same(&Value::Null, &wanted));
    }

    #[test]
    fn only_missing_or_different_commands_are_registered() {
        let with = |command: &Value, field: &str, value: Value| {
            let mut changed = command.clone();
            changed[field] = value;
            changed
        };
        let wanted = all();
        // Discord lists commands of menus with an empty description.
        let listed: Vec<Value> = wanted[1..].iter().map(|entry| with(entry, "description", json!(""))).collect();
        let current = [&wanted[..1], &listed].concat();
        let renamed = with(&wanted[1], "contexts", json!([0]));
        let of_another_version = with(&wanted[0], "description", json!("Old"));

        assert_eq!(to_register(&current), [Value::Null; 0]);
        assert_eq!(to_register(&[]), wanted);
        assert_eq!(to_register(&[&[wanted[0].clone(), renamed], &listed[1..]].concat()), wanted[1..2]);
        assert_eq!(to_register(&[&[of_another_version], &listed[..]].concat()), wanted[..1]);
        assert_eq!(
            [vec![], listed.clone(), wanted[..1].to_vec(), current].map(|all| status(&all)),
            [Status::Missing, Status::Missing, Status::Outdated, Status::Current]
        );
    }

    /// Discord's limits: 100 characters, and 32 for a name; no name twice beside each other (Discord's documentation, "Application Commands").
    #[test]
    fn every_text_is_translated_within_the_limits() {
        const LANGUAGES: [&str; 6] = ["de", "es-419", "es-ES", "fr", "ja", "pt-BR"];
        fn in_language<'a>(command: &'a Value, field: &str, language: &str) -> &'a str {
            let text = command[format!("{field}_localizations")][language].as_str();
            text.unwrap_or_else(|| panic!("nobody translated {} into {language}", command[field]))
        }
        fn check(command: &Value, is_choice: bool) {
            for language in LANGUAGES {
                // The command itself has the same name everywhere.
                if command["name"] != TERTULIA {
                    let name = in_language(command, "name", language);
                    assert!((1..=if is_choice { 100 } else { 32 }).contains(&name.chars().count()), "{name}");
                    let is_allowed = |c: char| c.is_alphanumeric() && c.to_lowercase().eq([c]) || c == '-' || c == '_';
                    assert!(is_choice || command["description"].is_null() || name.chars().all(is_allowed), "{name}");
                }
                if !command["description"].is_null() {
                    let description = in_language(command, "description", language);
                    assert!((1..=100).contains(&description.chars().count()), "{description}");
                }
                for list in ["options", "choices"] {
                    let siblings = command[list].as_array().into_iter().flatten();
                    let mut names = siblings.map(|sibling| in_language(sibling, "name", language)).collect::<Vec<_>>();
                    names.sort_unstable();
                    assert!(names.is_sorted_by(|one, other| one < other), "{language}: {names:?}");
                }
            }
            for (list, is_choice) in [("options", false), ("choices", true)] {
                command[list].as_array().into_iter().flatten().for_each(|inner| check(inner, is_choice));
            }
        }

        all().iter().for_each(|command| check(command, false));
    }

    /// Only the longest translation of each text counts, and all together must have at most 8,000 characters.
    #[test]
    fn the_command_is_not_too_large_in_any_language() {
        fn size(part: &Value) -> usize {
            let longest = |field: &str| {
                let translations = part[format!("{field}_localizations")].as_object().into_iter().flat_map(Map::values);
                [&part[field]].into_iter().chain(translations).filter_map(Value::as_str).map(|text| text.chars().count()).max()
            };
            let own: usize = ["name", "description", "value"].into_iter().filter_map(longest).sum();
            own + ["options", "choices"].iter().filter_map(|list| part[*list].as_array()).flatten().map(size).sum::<usize>()
        }

        assert!(size(&command()) <= 8_000, "{}", size(&command()));
    }

    #[test]
    fn every_offered_level_is_parsed() {
        let offered = json!(levels());
        let mut read =
            offered["choices"].as_array().unwrap().iter().map(|choice| Level::named(choice["value"].as_str().unwrap()));

        assert_eq!(read.clone().flatten().count(), LEVELS.len());
        assert_eq!(read.next_back(), Some(Some(Level::Default)));
        assert_eq!(Level::named("loud"), None);
        let tiers = crate::settings::companion::Interjection::ALL.map(|tier| Level::named(tier.as_str()));
        assert!(tiers.iter().all(Option::is_some), "{tiers:?}");
    }
}

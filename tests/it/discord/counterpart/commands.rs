//! Application commands: what can be registered, and where each is available. Those of single guilds are not supported.
//!
//! <https://docs.discord.com/developers/interactions/application-commands>

use serde_json::{Value, json};

use super::{Id, Permissions, Refusal};

const SUB_COMMAND: u64 = 1;
const SUB_COMMAND_GROUP: u64 = 2;
/// How many characters all names, descriptions and values of a command may have together.
const SIZE: usize = 8_000;

/// A global command.
#[derive(Clone, Debug)]
pub struct Command {
    pub id: Id,
    pub version: Id,
    /// The JSON that was registered.
    pub data: Value,
}

impl Command {
    pub fn name(&self) -> &str {
        self.data["name"].as_str().unwrap_or_default()
    }

    pub fn kind(&self) -> u64 {
        self.data["type"].as_u64().unwrap_or(1)
    }

    /// The permissions that a member needs by default. None: no permission is needed.
    pub fn needs(&self) -> Option<Permissions> {
        let bits = self.data["default_member_permissions"].as_str()?.parse().ok()?;
        Some(Permissions::from_bits_retain(bits))
    }

    /// Whether it is available in a guild, or in direct messages with the bot if there is no guild.
    pub fn is_for(&self, guild: Option<Id>) -> bool {
        let context = if guild.is_some() { 0 } else { 1 };
        let contexts = self.data["contexts"].as_array();
        contexts.is_none_or(|contexts| contexts.iter().any(|one| one.as_u64() == Some(context)))
    }

    /// A list shows translations only on request.
    ///
    /// <https://docs.discord.com/developers/interactions/application-commands#get-global-application-commands>
    pub fn json(&self, application: Id, has_localizations: bool) -> Value {
        let mut json = self.data.clone();
        for (field, usual) in [("default_member_permissions", Value::Null), ("nsfw", json!(false)), ("options", json!([]))] {
            if json[field].is_null() {
                json[field] = usual;
            }
        }
        for localized in ["name_localizations", "description_localizations"] {
            if !has_localizations {
                json[localized] = Value::Null;
            }
        }
        if json["integration_types"].is_null() {
            json["integration_types"] = json!([0]);
        }
        as_stored(&mut json["options"]);
        if self.kind() != 1 {
            json["description"] = json!("");
        }
        json["id"] = json!(self.id);
        json["application_id"] = json!(application);
        json["version"] = json!(self.version);
        json["type"] = json!(self.kind());
        json
    }
}

/// Validates a command that is about to be registered.
///
/// # Errors
///
/// A wrong name or description, too many or misplaced options, or a command that is too large.
pub fn check(command: &Value, path: &[&str]) -> Result<(), Refusal> {
    let kind = command["type"].as_u64().unwrap_or(1);
    let wrong = |field: &str, code: &str, message: &str| Refusal::field(&[path, &[field]].concat(), code, message);
    let name = command["name"].as_str().ok_or_else(|| wrong("name", "BASE_TYPE_REQUIRED", "This field is required"))?;
    if !(1..=4).contains(&kind) {
        return Err(wrong("type", "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4}."));
    }
    if kind == 1 {
        check_name(name, path)?;
        check_description(command, path)?;
        check_options(&command["options"], path, 0)?;
    } else if !(1..=32).contains(&name.chars().count()) {
        return Err(Refusal::length(&[path, &["name"]].concat(), 1, 32));
    } else if command["description"].as_str().is_some_and(|text| !text.is_empty()) || !command["options"].is_null() {
        let message = "Context menu commands cannot have description or options";
        return Err(Refusal::field(path, "APPLICATION_COMMAND_CONTEXT_MENU", message));
    }
    let permissions = &command["default_member_permissions"];
    if !permissions.is_null() && permissions.as_str().and_then(|bits| bits.parse::<u64>().ok()).is_none() {
        return Err(wrong("default_member_permissions", "NUMBER_TYPE_COERCE", "Value is not int."));
    }
    if size(command) > SIZE {
        return Err(Refusal::field(path, "APPLICATION_COMMAND_TOO_LARGE", "Command exceeds maximum size (8000)"));
    }
    Ok(())
}

fn check_name(name: &str, path: &[&str]) -> Result<(), Refusal> {
    let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '\'');
    // Letters that have a lower case must be in lower case.
    let lower = name.chars().all(|c| c.to_lowercase().eq([c]));
    if !(1..=32).contains(&name.chars().count()) || !name.chars().all(is_allowed) || !lower {
        let path = [path, &["name"]].concat();
        return Err(Refusal::field(&path, "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid"));
    }
    Ok(())
}

fn check_description(described: &Value, path: &[&str]) -> Result<(), Refusal> {
    let length = described["description"].as_str().map_or(0, |text| text.chars().count());
    if (1..=100).contains(&length) { Ok(()) } else { Err(Refusal::length(&[path, &["description"]].concat(), 1, 100)) }
}

fn check_options(options: &Value, path: &[&str], depth: usize) -> Result<(), Refusal> {
    let options = options.as_array().map_or(&[][..], Vec::as_slice);
    if options.len() > 25 {
        return Err(Refusal::field(&[path, &["options"]].concat(), "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length."));
    }
    let mut optional = false;
    for (number, option) in options.iter().enumerate() {
        let number = number.to_string();
        let path = [path, &["options", &number]].concat();
        let wrong = |field: &str, code: &str, message: &str| Refusal::field(&[&path[..], &[field]].concat(), code, message);
        let kind = option["type"].as_u64().unwrap_or_default();
        check_name(option["name"].as_str().unwrap_or_default(), &path)?;
        check_description(option, &path)?;
        let nested = kind == SUB_COMMAND || kind == SUB_COMMAND_GROUP;
        // Groups hold subcommands, subcommands hold parameters, and nothing else is nested.
        let misplaced = (kind == SUB_COMMAND_GROUP && depth > 0) || (kind == SUB_COMMAND && depth > 1);
        if !(1..=11).contains(&kind) || misplaced {
            return Err(wrong("type", "APPLICATION_COMMAND_OPTIONS_TYPE_INVALID", "Sub-command option type is invalid"));
        }
        if nested {
            check_options(&option["options"], &path, if kind == SUB_COMMAND { 2 } else { 1 })?;
            continue;
        }
        let required = option["required"].as_bool().unwrap_or_default();
        if required && optional {
            let message = "Required options must be placed before non-required options";
            return Err(wrong("required", "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", message));
        }
        optional |= !required;
        let choices = option["choices"].as_array().map_or(0, Vec::len);
        if choices > 25 {
            return Err(wrong("choices", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length."));
        }
        if choices > 0 && option["autocomplete"] == json!(true) {
            let message = "Autocomplete and choices are mutually exclusive";
            return Err(wrong("autocomplete", "APPLICATION_COMMAND_AUTOCOMPLETE_CHOICES", message));
        }
    }
    let mut names: Vec<&str> = options.iter().filter_map(|option| option["name"].as_str()).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        let path = [path, &["options"]].concat();
        let message = "Option names must be unique";
        return Err(Refusal::field(&path, "APPLICATION_COMMAND_OPTIONS_NAME_ALREADY_EXISTS", message));
    }
    Ok(())
}

/// Discord returns no fields of an option that have their default.
fn as_stored(options: &mut Value) {
    for option in options.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        option.retain(|field, value| !matches!(field.as_str(), "required" | "autocomplete") || *value != json!(false));
        if let Some(options) = option.get_mut("options") {
            as_stored(options);
        }
    }
}

fn size(part: &Value) -> usize {
    let own: usize =
        ["name", "description", "value"].iter().filter_map(|field| part[field].as_str()).map(|text| text.chars().count()).sum();
    let nested = ["options", "choices"].iter().filter_map(|field| part[field].as_array()).flatten();
    own + nested.map(size).sum::<usize>()
}

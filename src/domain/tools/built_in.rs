//! The built-in tools: what they are called, what they take, and what they answer.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::moment::Moment;
use super::super::named::named;
use super::super::policy::zone::Zone;
use super::super::text::one_line;
use super::Effect;

named! {
    /// A tool of this server.
    pub enum BuiltIn {
        Roll = "roll",
        Choose = "choose",
        Time = "time",
        Recall = "recall",
        Remind = "remind",
        Poll = "poll",
    }
}

/// The most dice of a roll, the most sides of a die, and the most that is added.
const MOST_DICE: i64 = 100;
const MOST_SIDES: i64 = 1_000;
const MOST_BONUS: i64 = 1_000_000;
/// The most things to choose from, and the longest one, in characters.
const MOST_OPTIONS: usize = 50;
const LONGEST_OPTION: usize = 200;
/// The limits of Discord's polls: the number of answers, and the longest answer and question, in characters. One more marks a cut.
const MOST_ANSWERS: usize = 10;
const LONGEST_ANSWER: usize = 54;
const LONGEST_QUESTION: usize = 299;

/// A question with answers to choose from, below a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Poll {
    pub question: Arc<str>,
    pub options: Vec<Arc<str>>,
}

impl Poll {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// Returns what is wrong with them.
    pub fn read(arguments: &Map<String, Value>) -> Result<Self, String> {
        let question = one_line(&text_argument(arguments, "question")?, LONGEST_QUESTION).into();
        let mut options = options(arguments, MOST_ANSWERS, LONGEST_ANSWER)?;
        let mut known = BTreeSet::new();
        options.retain(|option| known.insert(option.to_lowercase()));
        if options.len() < 2 {
            return Err("two of the \"options\" must differ".to_owned());
        }
        Ok(Self { question, options: options.into_iter().map(Arc::from).collect() })
    }
}

/// As prompts show it.
impl fmt::Display for Poll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[poll: {} Answers: {}]", self.question, self.options.join(" / "))
    }
}

impl BuiltIn {
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.as_str() == name)
    }

    pub const fn effect(self) -> Effect {
        match self {
            // A poll is a part of the statement.
            Self::Roll | Self::Choose | Self::Time | Self::Recall | Self::Poll => Effect::ReadOnly,
            Self::Remind => Effect::Journal,
        }
    }

    /// The description for models.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Roll => "Rolls dice. Call it when somebody asks for a roll, and never invent a result.",
            Self::Choose => "Picks one of several things at random, when somebody asks for a random choice.",
            Self::Time => "Tells the date and time in a place, when somebody asks for it.",
            Self::Recall => "Finds older messages of this room by words, when somebody asks what was said earlier.",
            Self::Poll => {
                "Adds a poll to what you say now, when somebody asks for a poll or a vote. Say its question in your own words, too."
            }
            Self::Remind => {
                "Sets, lists or cancels reminders of the person who asks, in this room. Call it when somebody asks to be reminded, and never \
                 promise a reminder without it."
            }
        }
    }

    /// The JSON schema of the arguments.
    pub fn parameters(self) -> Value {
        let (name, property) = match self {
            Self::Remind => return reminders_parameters(),
            Self::Poll => return poll_parameters(),
            Self::Roll => ("dice", json!({ "type": "string", "description": "dice such as 2d6, d20+3 or 4d8-1" })),
            Self::Choose => ("options", json!({ "type": "array", "items": { "type": "string" }, "minItems": 2 })),
            Self::Time => ("zone", json!({ "type": "string", "description": "a time zone such as Asia/Tokyo" })),
            Self::Recall => ("words", json!({ "type": "string", "description": "the words to look for" })),
        };
        json!({ "type": "object", "properties": { name: property }, "required": [name], "additionalProperties": false })
    }
}

fn poll_parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "question": { "type": "string" },
            "options": { "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": MOST_ANSWERS },
        },
        "required": ["question", "options"],
        "additionalProperties": false,
    })
}

fn reminders_parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "action": { "type": "string", "enum": ["set", "list", "cancel"] },
            "text": { "type": "string", "description": "set: what the person wants to be reminded of" },
            "in_minutes": { "type": "number", "description": "set: in how many minutes; either this or at" },
            "at": { "type": "string", "description": "set: when, as 2027-03-28T14:30, 14:30 or tomorrow 14:30 in the person's time zone, or with an offset" },
            "number": { "type": "integer", "description": "cancel: the number of the reminder" },
        },
        "required": ["action"],
        "additionalProperties": false,
    })
}

/// A text argument of a call. Small models also send numbers.
///
/// # Errors
/// Returns what is missing.
pub fn text_argument(arguments: &Map<String, Value>, name: &str) -> Result<String, String> {
    let text = match arguments.get(name) {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    if text.is_empty() { Err(format!("the argument {name:?} is missing; give it as a text")) } else { Ok(text) }
}

/// Rolls dice in the usual notation: `2d6`, `d20+3`, `d%`. `fraction` draws a number in `0.0..1.0`.
///
/// # Errors
/// Returns what is wrong with the notation.
pub fn roll(notation: &str, mut fraction: impl FnMut() -> f64) -> Result<String, String> {
    let wrong = || {
        let shown = one_line(notation, 40);
        format!(
            "{shown:?} is not a roll of dice; write for example 2d6, d20+3 or 4d8-1, with at most {MOST_DICE} dice of 2 to {MOST_SIDES} sides"
        )
    };
    let plain: String = notation.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_lowercase();
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit())).map(i64::from);
    let (dice, bonus) = match plain.find(['+', '-']) {
        Some(at) => {
            let bonus = number(&plain[at + 1..]).filter(|bonus| *bonus <= MOST_BONUS).ok_or_else(wrong)?;
            (&plain[..at], if plain[at..].starts_with('-') { -bonus } else { bonus })
        }
        None => (&*plain, 0),
    };
    let (count, sides) = dice.split_once(['d', 'w']).ok_or_else(wrong)?;
    let count = if count.is_empty() { 1 } else { number(count).ok_or_else(wrong)? };
    let sides = if sides == "%" { 100 } else { number(sides).ok_or_else(wrong)? };
    if !(1..=MOST_DICE).contains(&count) || !(2..=MOST_SIDES).contains(&sides) {
        return Err(wrong());
    }
    let rolled: Vec<i64> = (0..count).map(|_| 1 + drawn(&mut fraction, sides)).collect();
    let total = rolled.iter().sum::<i64>() + bonus;
    if rolled.len() == 1 && bonus == 0 {
        return Ok(format!("{plain}: {total}"));
    }
    let each = rolled.iter().map(i64::to_string).collect::<Vec<_>>().join(" + ");
    let bonus = match bonus {
        0 => String::new(),
        more @ 1.. => format!(" + {more}"),
        less => format!(" - {}", -less),
    };
    Ok(format!("{plain}: {each}{bonus} = {total}"))
}

/// A number below `limit`.
fn drawn(fraction: &mut impl FnMut() -> f64, limit: i64) -> i64 {
    ((fraction() * limit as f64) as i64).min(limit - 1)
}

/// Picks one of the options.
///
/// # Errors
/// Returns what is wrong with them.
pub fn choose(arguments: &Map<String, Value>, mut fraction: impl FnMut() -> f64) -> Result<String, String> {
    let options = options(arguments, MOST_OPTIONS, LONGEST_OPTION)?;
    Ok(options[drawn(&mut fraction, options.len() as i64) as usize].clone())
}

/// Reads the argument `options`: texts, each cut to `longest` characters.
fn options(arguments: &Map<String, Value>, most: usize, longest: usize) -> Result<Vec<String>, String> {
    let options = arguments.get("options").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let options: Vec<String> = options
        .iter()
        .map(|option| one_line(&option.as_str().map_or_else(|| option.to_string(), str::to_owned), longest))
        .filter(|option| !option.is_empty())
        .collect();
    if !(2..=most).contains(&options.len()) {
        return Err(format!("give \"options\" as a list of 2 to {most} texts"));
    }
    Ok(options)
}

/// The time in a place, given by the name of its time zone, the end of that name, such as `Tokyo`, or an offset from UTC.
///
/// # Errors
/// Returns what to do instead if there is no such time zone.
pub fn time(place: &str, now: Moment) -> Result<String, String> {
    let place = one_line(place, 60);
    let city = place.split(',').next().unwrap_or_default().trim().replace(' ', "_");
    let is_there = |name: &str| name.rsplit('/').next().is_some_and(|last| last.eq_ignore_ascii_case(&city));
    let there =
        || jiff::tz::db().available().map(|name| name.to_string()).filter(|name| name.contains('/') && is_there(name)).min();
    let zone = Zone::parse(&place).map(|zone| (place.clone(), zone));
    let zone = zone.or_else(|| there().and_then(|name| Zone::parse(&name).map(|zone| (name, zone))));
    let (name, zone) = zone.ok_or_else(|| {
        format!("{place:?} is not a time zone that this machine knows; give one such as Asia/Tokyo, or an offset from UTC such as +09:00")
    })?;
    Ok(format!("{} in {name}", now.zoned(zone.time_zone()).strftime("%A, %-d %B %Y, %H:%M (%:z)")))
}

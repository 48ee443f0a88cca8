//! Reminders that people set for themselves in a room (docs/design/reminders.md).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::{DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan as _, Zoned};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::id::{CompanionId, PersonId, Seq};
use super::message::{Author, Message};
use super::moment::Moment;
use super::policy::zone::Zone;
use super::text::one_line;

/// The most open reminders of a person in a room.
pub const MOST_OPEN: usize = 20;
/// The most characters of a reminder's text.
pub const MOST_CHARS: usize = 500;
/// The shortest and the longest time until a reminder is due.
const SOONEST: Duration = Duration::from_secs(60);
const LATEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// A reminder that comes this much later than it was due says so.
const LATE: Duration = Duration::from_secs(120);

/// The kind of the event that announces a reminder (docs/design/gate.md G-33).
pub const KIND: &str = "reminder";

/// A reminder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reminder {
    /// Its number in the room, from 1.
    pub number: u64,
    /// The person who set it, and who is reminded.
    pub of: Author,
    /// What the person is reminded of, in words. Empty after deletion.
    pub text: Arc<str>,
    /// When it is due, by the machine's clock.
    pub due: Moment,
    /// The name of the time zone in which the person set it. None: the guild's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<Arc<str>>,
    /// The messages that asked for it. The deletion of one erases the reminder.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "write_one_or_more",
        deserialize_with = "one_or_more"
    )]
    pub asked: Vec<Seq>,
    /// The companion that was asked, which acknowledges it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub companion: Option<CompanionId>,
}

/// A reminder to set.
#[derive(Clone, Debug, PartialEq)]
pub struct NewReminder {
    /// The person who sets it, and who is reminded.
    pub of: Author,
    pub text: Arc<str>,
    /// When it is due: RFC 3339, or a local time of the person.
    pub at: Option<Arc<str>>,
    /// In how many minutes it is due.
    pub in_minutes: Option<f64>,
    /// The time zone of `at`. `None`: the one that the person chose, or the guild's.
    pub zone: Option<Arc<str>>,
    /// The companion that is asked for it.
    pub companion: Option<CompanionId>,
    /// The messages that ask for it.
    pub asked: Vec<Seq>,
}

/// One message is written as its number, which older versions read, too.
fn write_one_or_more<S: Serializer>(asked: &[Seq], serializer: S) -> Result<S::Ok, S::Error> {
    match asked {
        [one] => one.serialize(serializer),
        all => all.serialize(serializer),
    }
}

/// Older records have the number of one message.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Seq>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Asked {
        One(Seq),
        More(Vec<Seq>),
    }
    Ok(match Asked::deserialize(deserializer)? {
        Asked::One(seq) => vec![seq],
        Asked::More(all) => all,
    })
}

impl Reminder {
    pub fn is_redacted(&self) -> bool {
        self.text.is_empty()
    }

    pub fn is_of(&self, person: &PersonId) -> bool {
        *self.of.id == *person.as_str()
    }

    /// Removes its text and its person.
    pub fn redact(&mut self) {
        self.text = "".into();
        (self.of.id, self.of.name) = ("".into(), "".into());
        (self.zone, self.asked) = (None, Vec::new());
    }

    /// When it is due, as its person reads a clock.
    pub fn local(&self, guild: &TimeZone) -> String {
        self.due.zoned(&zone_of(self.zone.as_deref(), guild)).strftime("%Y-%m-%d %H:%M (%:Q)").to_string()
    }

    /// If it is late now: when it was due, as its person reads a clock.
    pub fn late(&self, now: Moment, guild: &TimeZone) -> Option<String> {
        if now.since(self.due) <= LATE {
            return None;
        }
        let zone = zone_of(self.zone.as_deref(), guild);
        let (due, now) = (self.due.zoned(&zone), now.zoned(&zone));
        let form = if due.date() == now.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
        Some(due.strftime(form).to_string())
    }
}

/// The time zone with this name, or else the guild's.
fn zone_of(name: Option<&str>, guild: &TimeZone) -> TimeZone {
    name.and_then(Zone::parse).map_or_else(|| guild.clone(), |zone| zone.time_zone().clone())
}

/// The reminders of a room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reminders {
    /// The number of the newest one that was ever set.
    newest: u64,
    /// Those that are not due.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    open: BTreeMap<u64, Reminder>,
    /// Those whose event is on record, with its number, until a statement acknowledges it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    announced: BTreeMap<u64, (Seq, Reminder)>,
}

impl Reminders {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Those that are not due, in the order of their numbers.
    pub fn open(&self) -> impl Iterator<Item = &Reminder> {
        self.open.values()
    }

    /// Those that are due, and that no statement has acknowledged.
    pub fn announced(&self) -> impl Iterator<Item = (Seq, &Reminder)> {
        self.announced.values().map(|(seq, reminder)| (*seq, reminder))
    }

    /// The numbers of a person's reminders, also of those that are due.
    pub fn of(&self, person: &PersonId) -> Vec<u64> {
        let all = self.open.values().chain(self.announced.values().map(|(_, reminder)| reminder));
        all.filter(|reminder| reminder.is_of(person)).map(|reminder| reminder.number).collect()
    }

    /// When the next one is due. `is_left_out`: the number is not considered.
    pub fn next_due(&self, is_left_out: impl Fn(u64) -> bool) -> Option<Moment> {
        self.open.values().filter(|reminder| !is_left_out(reminder.number)).map(|reminder| reminder.due).min()
    }

    /// The reminder with the next number that a person wants, and how its local time was understood.
    ///
    /// # Errors
    /// Returns an error if it is wanted at no usable time, or if the person has as many as allowed.
    pub fn planned(&self, wanted: NewReminder, now: Moment, guild: &TimeZone) -> Result<(Reminder, Reading), NotSet> {
        let NewReminder { of, text, at, in_minutes, zone, companion, asked } = wanted;
        if self.open.values().filter(|reminder| reminder.of.id == of.id).count() >= MOST_OPEN {
            return Err(NotSet::TooMany);
        }
        let (due, reading) = due(at.as_deref(), in_minutes, now, &zone_of(zone.as_deref(), guild))?;
        Ok((Reminder { number: self.newest + 1, of, text, due, zone, asked, companion }, reading))
    }

    pub(crate) fn set(&mut self, reminder: &Reminder) {
        self.newest = self.newest.max(reminder.number);
        if !reminder.is_redacted() {
            self.open.insert(reminder.number, reminder.clone());
        }
    }

    pub(crate) fn remove(&mut self, number: u64) {
        self.open.remove(&number);
        self.announced.remove(&number);
    }

    /// Applies the message that announces a reminder, or that ends it because no companion acknowledged it.
    pub(crate) fn apply_said(&mut self, seq: Seq, message: &Message) {
        let Some(number) = message.reminder else { return };
        match self.open.remove(&number) {
            Some(reminder) if !message.background => drop(self.announced.insert(number, (seq, reminder))),
            _ => drop(self.announced.remove(&number)),
        }
    }

    /// Applies a statement that acknowledges these events.
    pub(crate) fn acknowledge(&mut self, events: &[Seq]) {
        self.announced.retain(|_, (seq, _)| !events.contains(seq));
    }

    /// Erases those that these messages asked for, or announce.
    pub(crate) fn delete(&mut self, messages: &[Seq]) {
        let is_kept = |reminder: &Reminder| !reminder.asked.iter().any(|asked| messages.contains(asked));
        self.open.retain(|_, reminder| is_kept(reminder));
        self.announced.retain(|_, (seq, reminder)| is_kept(reminder) && !messages.contains(seq));
    }
}

/// Why a reminder is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSet {
    #[error("the person already has {MOST_OPEN} open reminders in this room; cancel one first")]
    TooMany,
    #[error("the text must have 1 to {MOST_CHARS} characters")]
    Text,
    #[error("give either `at` or `in_minutes`")]
    OneTime,
    #[error("`at` must be a time such as 2027-03-28T14:30, 14:30, or 2027-03-28T14:30:00+01:00")]
    Unreadable,
    #[error("that time is over, or less than a minute away")]
    TooSoon,
    #[error("that time is more than a year away")]
    TooLate,
}

impl NotSet {
    /// The key of its sentence for people.
    pub const fn key(self) -> &'static str {
        match self {
            Self::TooMany => "refusals.reminders_too_many",
            Self::Text => "refusals.reminders_text",
            Self::OneTime => "refusals.reminders_one_time",
            Self::Unreadable => "refusals.reminders_unreadable",
            Self::TooSoon => "refusals.reminders_too_soon",
            Self::TooLate => "refusals.reminders_too_late",
        }
    }
}

/// What a call of the tool `remind` asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    Set { text: Arc<str>, at: Option<Arc<str>>, in_minutes: Option<f64> },
    List,
    Cancel(u64),
}

impl Wanted {
    /// Reads the arguments of a call. Small models also send numbers as texts.
    ///
    /// # Errors
    /// Returns what is wrong with them.
    pub fn read(arguments: &Map<String, Value>) -> Result<Self, String> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        let number = |name: &str| arguments.get(name).and_then(Value::as_f64).or_else(|| text(name)?.parse::<f64>().ok());
        match text("action").unwrap_or("set") {
            "list" => Ok(Self::List),
            "cancel" => {
                let cancelled = number("number").filter(|number| *number >= 1.0).map(|number| Self::Cancel(number as u64));
                cancelled.ok_or_else(|| "give the number of the reminder as `number`; the action list tells it".to_owned())
            }
            "set" => match text("text").filter(|text| text.chars().count() <= MOST_CHARS) {
                Some(words) => Ok(Self::Set {
                    text: one_line(words, MOST_CHARS).into(),
                    at: text("at").map(Arc::from),
                    in_minutes: number("in_minutes"),
                }),
                None => Err(NotSet::Text.to_string()),
            },
            other => Err(format!("{:?} is not one of set, list and cancel", one_line(other, 40))),
        }
    }
}

/// How a local time was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// It exists once.
    Plain,
    /// The clocks skip it on that day. The reminder is later by as much as they are put forward.
    Skipped,
    /// The clocks show it twice on that day. The first time counts, if it is not over.
    Twice,
}

/// When a reminder is due that is wanted at a time, or in so many minutes. A local time is in `zone`.
///
/// # Errors
/// Returns an error if that is no time, or not between a minute and a year from now.
fn due(at: Option<&str>, in_minutes: Option<f64>, now: Moment, zone: &TimeZone) -> Result<(Moment, Reading), NotSet> {
    let (due, reading) = match (at, in_minutes) {
        (Some(at), None) => time(at.trim(), &now.zoned(zone))?,
        (None, Some(minutes)) => {
            let wait = Duration::try_from_secs_f64(minutes * 60.0);
            let too = if minutes < 1.0 { NotSet::TooSoon } else { NotSet::TooLate };
            (now + wait.map_err(|_| if minutes.is_nan() { NotSet::Unreadable } else { too })?, Reading::Plain)
        }
        _ => return Err(NotSet::OneTime),
    };
    if due < now + SOONEST {
        return Err(NotSet::TooSoon);
    }
    if due.since(now) > LATEST { Err(NotSet::TooLate) } else { Ok((due, reading)) }
}

fn time(at: &str, now: &Zoned) -> Result<(Moment, Reading), NotSet> {
    let moment = |time: Timestamp| Moment::from_micros(u64::try_from(time.as_microsecond()).unwrap_or_default());
    // An offset that the zone contradicts is an error.
    let with_zone = || at.parse::<Zoned>().map(|zoned| zoned.timestamp());
    if let Ok(time) = if at.contains('[') { with_zone() } else { at.parse() } {
        return Ok((moment(time), Reading::Plain));
    }
    let local = |local: DateTime| {
        let ambiguous = now.time_zone().to_ambiguous_zoned(local);
        let reading = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } => Reading::Plain,
            AmbiguousOffset::Gap { .. } => Reading::Skipped,
            AmbiguousOffset::Fold { .. } => Reading::Twice,
        };
        let first = ambiguous.clone().compatible().map_err(|_| NotSet::Unreadable)?;
        if reading == Reading::Twice && first <= *now {
            return Ok((moment(ambiguous.later().map_err(|_| NotSet::Unreadable)?.timestamp()), Reading::Plain));
        }
        Ok((moment(first.timestamp()), reading))
    };
    // A date alone would be a reminder at midnight. The parsers ignore an offset or a zone that does not fit.
    let at = at.to_ascii_lowercase();
    let is_of = |text: &str, others: &str| text.contains(':') && text.chars().all(|c| c.is_ascii_digit() || others.contains(c));
    let has_offset = at.rfind(['-', '+']) > at.find(':');
    if let (Ok(time), true, false) = (at.parse::<DateTime>(), is_of(&at, ":.-t "), has_offset) {
        return local(time);
    }
    let (is_tomorrow, at) = at.strip_prefix("tomorrow ").map_or((false, &*at), |at| (true, at.trim_start()));
    let at = if at.find(':') == Some(1) { format!("0{at}") } else { at.to_owned() };
    let time = at.parse::<Time>().ok().filter(|_| is_of(&at, ":.")).ok_or(NotSet::Unreadable)?;
    let today = now.date().to_datetime(time);
    match local(today)? {
        (due, reading) if due > moment(now.timestamp()) && !is_tomorrow => Ok((due, reading)),
        _ => local(today.saturating_add(1.day())),
    }
}

#[cfg(test)]
mod tests;

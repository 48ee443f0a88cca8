//! The ids of the buttons and menus of `/tertulia setup`, and what a person requests with them.
//!
//! An id has everything that a step needs, and each step shows the menu anew. So a step works after a restart, too, and nothing is stored between steps.

use std::time::Duration;

use crate::domain::moment::Moment;
use crate::snowflake::Snowflake;

/// The id of a button that shows the menu.
pub const BEGIN: &str = "setup";
/// How long a menu can be used after it was shown.
const USABLE: Duration = Duration::from_secs(15 * 60);
/// The limit of channels that are set up together. Discord's limit of characters in an id (100) allows no more.
pub(super) const MOST_CHANNELS: usize = 4;
/// The limit of choices in a menu (Discord's documentation, "Component Reference", "String Select").
const MOST_CHOICES: usize = 25;

/// What a person wants of the menu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SetupRequest {
    Begin,
    /// The menu is too old to be used.
    Outdated,
    /// The person used the menu while it showed these channels.
    Step {
        step: Step,
        channels: Vec<Snowflake>,
        chosen: Vec<String>,
    },
}

/// A button or a menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Chooses the channels.
    Channels,
    /// Chooses who is in them.
    Companions,
    Level,
    QuietHours,
    /// Shows the choices for the whole server.
    Server,
    NotesOn,
    NotesOff,
    /// Chooses the roles that may address companions.
    MayAddress,
    /// Chooses the roles that are never answered.
    NeverAnswered,
    Finish,
}

const NAMES: [(Step, &str); 10] = [
    (Step::Channels, "at"),
    (Step::Companions, "who"),
    (Step::Level, "level"),
    (Step::QuietHours, "hours"),
    (Step::Server, "server"),
    (Step::NotesOn, "on"),
    (Step::NotesOff, "off"),
    (Step::MayAddress, "may"),
    (Step::NeverAnswered, "never"),
    (Step::Finish, "done"),
];

/// The id of a button or menu that is shown now, with the chosen channels.
pub(super) fn id(step: Step, now: Moment, channels: &[Snowflake]) -> String {
    let name = NAMES.iter().find(|(other, _)| *other == step).map_or("", |(_, name)| name);
    let channels: Vec<_> = channels.iter().map(|channel| format!("{:x}", channel.get())).collect();
    format!("{BEGIN}:{name}:{:x}:{}", seconds(now), channels.join("."))
}

/// What a person requests with the button or menu of this id. `None`: the id is not one of the menu's.
pub(super) fn read(id: &str, chosen: &[String], now: Moment) -> Option<SetupRequest> {
    if id == BEGIN {
        return Some(SetupRequest::Begin);
    }
    let mut parts = id.strip_prefix(BEGIN)?.strip_prefix(':')?.split(':');
    // A menu of another version has other ids.
    let step = (|| {
        let name = parts.next()?;
        let (step, _) = NAMES.iter().find(|(_, other)| *other == name)?;
        let shown = u64::from_str_radix(parts.next()?, 16).ok()?;
        let channels = parts.next()?.split('.').filter(|channel| !channel.is_empty());
        let channel = |channel: &str| Snowflake::new(u64::from_str_radix(channel, 16).ok()?);
        let channels: Vec<_> = channels.take(MOST_CHANNELS).map(channel).collect::<Option<_>>()?;
        let is_usable = seconds(now).saturating_sub(shown) < USABLE.as_secs();
        let chosen = chosen.iter().take(MOST_CHOICES).cloned().collect();
        is_usable.then_some(SetupRequest::Step { step: *step, channels, chosen })
    })();
    Some(step.unwrap_or(SetupRequest::Outdated))
}

const fn seconds(moment: Moment) -> u64 {
    moment.as_micros() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_within_its_time_and_fits() {
        let channels: Vec<_> = (0..MOST_CHANNELS as u64).map(|number| Snowflake::new(u64::MAX - number).unwrap()).collect();
        let at = |secs: u64| Moment::from_micros(secs * 1_000_000);
        let chosen = vec!["aria".to_owned()];

        for (step, _) in NAMES {
            let id = id(step, at(4_000_000_000), &channels);
            let expected = SetupRequest::Step { step, channels: channels.clone(), chosen: chosen.clone() };
            assert!(id.len() <= 100, "{id}");
            assert_eq!(read(&id, &chosen, at(4_000_000_899)), Some(expected));
            assert_eq!(read(&id, &chosen, at(4_000_000_900)), Some(SetupRequest::Outdated));
        }
        assert_eq!(read(BEGIN, &[], at(0)), Some(SetupRequest::Begin));
        for other in ["setup:", "setup:who", "setup:who:zz:1", "setup:dance:1:1", "setup:who:1:x", "setup:who:1:0"] {
            assert_eq!(read(other, &[], at(1)), Some(SetupRequest::Outdated), "{other}");
        }
        assert_eq!([read("ask:1", &[], at(1)), read("setups", &[], at(1))], [None, None]);
    }
}

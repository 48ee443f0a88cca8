//! The ids of the buttons and menus of `/tertulia setup`, and of the forms of `/tertulia own`, and what a person requests with them and with
//! `/tertulia roles`.
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
    let rest = id.strip_prefix(BEGIN)?.strip_prefix(':')?;
    // A menu of another version has other ids.
    Some(read_step(rest, chosen, now).unwrap_or(SetupRequest::Outdated))
}

fn read_step(rest: &str, chosen: &[String], now: Moment) -> Option<SetupRequest> {
    let mut parts = rest.split(':');
    let name = parts.next()?;
    let (step, _) = NAMES.iter().find(|(_, other)| *other == name)?;
    let shown = u64::from_str_radix(parts.next()?, 16).ok()?;
    let channels = parts.next()?.split('.').filter(|channel| !channel.is_empty());
    let channel = |channel: &str| Snowflake::new(u64::from_str_radix(channel, 16).ok()?);
    let channels: Vec<_> = channels.take(MOST_CHANNELS).map(channel).collect::<Option<_>>()?;
    let is_usable = seconds(now).saturating_sub(shown) < USABLE.as_secs();
    let chosen = chosen.iter().take(MOST_CHOICES).cloned().collect();
    is_usable.then_some(SetupRequest::Step { step: *step, channels, chosen })
}

/// One of the two lists of roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoleList {
    MayAddress,
    NeverAnswered,
}

/// A change of the rules. Without a list and a role, they are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RoleOptions {
    pub list: Option<RoleList>,
    pub role: Option<Snowflake>,
    /// Whether the role is added to the list, or removed from it.
    pub on: bool,
}

/// The names of a form's texts.
pub(super) const NAME: &str = "name";
pub(super) const PERSONA: &str = "persona";
pub(super) const PICTURE: &str = "picture";
/// The beginnings of the ids of a form, and of a button that confirms a removal.
const FORM: &str = "own:";
const REMOVAL: &str = "own-remove:";
/// How much of a revision is in the id of a form.
const REVISION_CHARS: usize = 16;

/// What a person wants of a server's own companions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OwnRequest {
    Make,
    Change {
        companion: String,
    },
    Remove {
        companion: String,
        sure: bool,
    },
    /// A form was filled in: for a new companion, or to change one, which had a revision with this beginning.
    Written {
        of: Option<(String, String)>,
        form: Form,
    },
}

/// The texts of a form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Form {
    pub name: String,
    pub persona: String,
    pub picture: String,
}

/// The id of a form: for a new companion, or to change one with this id and revision.
pub(super) fn form_id(of: Option<(&str, &str)>) -> String {
    let (id, revision) = of.unwrap_or_default();
    format!("{FORM}{id}:{}", revision.get(..REVISION_CHARS).unwrap_or(revision))
}

/// The id of a button that confirms the removal of a companion.
pub(super) fn removal_id(companion: &str, now: Moment) -> String {
    format!("{REMOVAL}{companion}:{:x}", seconds(now))
}

/// What a person requests with the button of this id. `None`: the button confirms no removal. One that is too old asks again.
pub(super) fn read_removal(id: &str, now: Moment) -> Option<OwnRequest> {
    let (companion, shown) = id.strip_prefix(REMOVAL)?.rsplit_once(':')?;
    let shown = u64::from_str_radix(shown, 16).ok()?;
    let sure = seconds(now).saturating_sub(shown) < USABLE.as_secs();
    Some(OwnRequest::Remove { companion: companion.to_owned(), sure })
}

/// What a person requests with the form of this id. `None`: it is another form.
pub(super) fn read_form(id: &str, text: impl Fn(&str) -> String) -> Option<OwnRequest> {
    let (id, revision) = id.strip_prefix(FORM)?.split_once(':')?;
    let of = (!id.is_empty()).then(|| (id.to_owned(), revision.to_owned()));
    Some(OwnRequest::Written { of, form: Form { name: text(NAME), persona: text(PERSONA), picture: text(PICTURE) } })
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

    #[test]
    fn a_form_and_a_removal_name_their_companion() {
        let revision = "0123456789abcdef".repeat(4);
        let text = |name: &str| name.to_uppercase();
        let form = Form { name: "NAME".to_owned(), persona: "PERSONA".to_owned(), picture: "PICTURE".to_owned() };
        let at = |secs: u64| Moment::from_micros(secs * 1_000_000);
        let removal = |sure| Some(OwnRequest::Remove { companion: "luna-1".to_owned(), sure });

        let changed = form_id(Some(("luna-1", &revision)));
        assert!(changed.len() <= 100, "{changed}");
        let of = Some(("luna-1".to_owned(), "0123456789abcdef".to_owned()));
        assert_eq!(read_form(&changed, text), Some(OwnRequest::Written { of, form: form.clone() }));
        assert_eq!(read_form(&form_id(None), text), Some(OwnRequest::Written { of: None, form }));
        let id = removal_id("luna-1", at(1_000));
        assert_eq!([read_removal(&id, at(1_899)), read_removal(&id, at(1_900))], [removal(true), removal(false)]);
        assert_eq!((read_form("setup:who", text), read_removal("own:", at(1))), (None, None));
    }
}

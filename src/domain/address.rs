//! Determines the addressees of a message.

use super::id::CompanionId;
use super::message::{Address, Author, Role};
use super::names::{Names, Zones, is_word};
use crate::policy::gate::ForeignBots;

/// A message from a platform before it is accepted, with the data that determines its addressees.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    pub speaker: &'a Author,
    /// The text, which is searched for names.
    pub text: &'a str,
    /// The ids of the companions, people and bots that it mentions, with or without a leading `@`; see [`resolve_mention`].
    pub mentions: &'a [&'a str],
    /// The id and role of the author whose message it answers.
    pub reply_to: Option<(&'a str, Role)>,
    /// The companions of the channel, if it addresses all of them: in a direct message, or in a message to their shared account.
    pub to_all_of: &'a [CompanionId],
    /// For speech, the names as speech recognition may spell them ([`Names::of_sounds`]). `None` for typed messages.
    pub sounds: Option<&'a Names>,
    /// Whether it was spoken. Everyday words then also count as names at its start and end.
    pub is_spoken: bool,
    /// Whether it goes to the companions' shared account in a guild. Names in it then narrow `to_all_of`.
    pub names_narrow: bool,
}

impl<'a> Incoming<'a> {
    /// A typed message without mentions that answers no message.
    pub const fn new(speaker: &'a Author, text: &'a str) -> Self {
        Self { speaker, text, mentions: &[], reply_to: None, to_all_of: &[], sounds: None, is_spoken: false, names_narrow: false }
    }
}

/// Finds the companions that a message mentions, answers or names, and whether it also addresses others.
///
/// `is_companion` returns whether an id belongs to a companion. An author never addresses itself. People count if they are mentioned or answered,
/// never by display name. Roles, `everyone` and `here` never count (docs/design/gate.md G-5).
pub fn resolve(names: &Names, is_companion: impl Fn(&str) -> bool, incoming: &Incoming<'_>) -> Address {
    let speaker = incoming.speaker;
    let find = |names: &Names| if incoming.is_spoken { names.find_spoken(incoming.text) } else { names.find(incoming.text) };
    let mut companions: Vec<CompanionId> = find(names);
    companions.extend(incoming.sounds.into_iter().flat_map(find));
    let mut others = false;

    for mention in incoming.mentions.iter().filter_map(|mention| mentioned(mention)) {
        if is_companion(mention) {
            companions.push(mention.into());
        } else {
            others |= mention != &*speaker.id && mention != &*speaker.name;
        }
    }
    match incoming.reply_to {
        Some((id, Role::Companion)) if is_companion(id) => companions.push(id.into()),
        Some((id, role)) => others |= id != &*speaker.id || role != speaker.role,
        None => {}
    }

    let names_some = incoming.to_all_of.iter().any(|companion| companions.contains(companion));
    if !(incoming.names_narrow && names_some) {
        companions.extend_from_slice(incoming.to_all_of);
    }
    companions.retain(|companion| speaker.role != Role::Companion || companion.as_str() != &*speaker.id);
    companions.sort();
    companions.dedup();
    Address { companions, others, ..Address::default() }
}

/// Resolves a mention on a platform where companions are mentioned by name. Returns the id of the companion with that name, or
/// the mention unchanged.
pub fn resolve_mention<'a>(names: &'a Names, mention: &'a str) -> &'a str {
    mentioned(mention).and_then(|name| names.owner(name)).map_or(mention, CompanionId::as_str)
}

/// Whether a message is admitted. Messages of people and companions always are. The policy decides about foreign bots: with `mentions`, their message
/// must mention or answer a companion, or address all of them (docs/design/gate.md G-3).
pub fn admits(policy: ForeignBots, is_companion: impl Fn(&str) -> bool, incoming: &Incoming<'_>) -> bool {
    if incoming.speaker.role != Role::Bot {
        return true;
    }
    match policy {
        ForeignBots::Ignore => false,
        ForeignBots::All => true,
        ForeignBots::Mentions => {
            let mentions_one = incoming.mentions.iter().filter_map(|mention| mentioned(mention)).any(&is_companion);
            mentions_one
                || !incoming.to_all_of.is_empty()
                || incoming.reply_to.is_some_and(|(id, role)| role == Role::Companion && is_companion(id))
        }
    }
}

/// The names that a text mentions as `@name`, outside code, links and quoted lines. For platforms without native mentions.
///
/// A name consists of word characters and the `-` and `.` between them. `bob@example.org` contains no mention.
pub fn at_names(text: &str) -> Vec<&str> {
    if !text.contains('@') {
        return Vec::new();
    }
    let zones = Zones::of(text);
    let mut found = Vec::new();
    for (at, _) in text.match_indices('@') {
        let rest = &text[at + 1..];
        let length = rest.find(|c| !is_word(c) && c != '-' && c != '.').unwrap_or(rest.len());
        let name = rest[..length].trim_end_matches(['-', '.']);
        let follows_word = text[..at].chars().next_back().is_some_and(is_word);
        if !follows_word && name.starts_with(is_word) && !zones.touch(at..at + 1 + name.len()) {
            found.push(name);
        }
    }
    found
}

/// The id or name in a mention, unless it mentions a group.
fn mentioned(mention: &str) -> Option<&str> {
    let mention = mention.trim();
    let mention = mention.strip_prefix('@').unwrap_or(mention);
    let is_group = mention.is_empty()
        || mention.starts_with('&')
        || mention.eq_ignore_ascii_case("everyone")
        || mention.eq_ignore_ascii_case("here");
    (!is_group).then_some(mention)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::person;

    #[test]
    fn a_companion_is_addressed_by_mention_reply_and_name() {
        let speaker = person("Ana");

        let by_id = read(&speaker, "hi", &["aria"], None);
        let by_name = read(&speaker, "hi", &[resolve_mention(&names(), "@Mira Vale")], None);
        let by_reply = read(&speaker, "hi", &[], Some(("aria", Role::Companion)));
        let by_text = read(&speaker, "Mira and Aria!", &["aria"], None);

        assert_eq!(by_id, to(&["aria"], false));
        assert_eq!(by_name, to(&["mira"], false));
        assert_eq!(by_reply, to(&["aria"], false));
        assert_eq!(by_text, to(&["aria", "mira"], false));
    }

    #[test]
    fn people_and_bots_are_addressed_by_mention_or_reply() {
        let speaker = person("Ana");

        for (text, mentions, reply_to, expected) in [
            ("hi", &["Bob"][..], None, true),
            ("hi", &["@Bob"], None, true),
            ("hi", &[], Some(("Bob", Role::Person)), true),
            ("hi", &[], Some(("beep", Role::Bot)), true),
            ("hi", &[], Some(("gone", Role::Companion)), true),
            ("hi", &[], Some(("aria", Role::Person)), true),
            ("Bob, look", &[], None, false),
            ("hi", &["Ana"], None, false),
            ("hi", &[], Some(("Ana", Role::Person)), false),
            ("hi", &["everyone", "@everyone", "here", "@HERE", "@&123", "&123", "", "@"], None, false),
        ] {
            assert_eq!(read(&speaker, text, mentions, reply_to), to(&[], expected), "{text} {mentions:?} {reply_to:?}");
        }
    }

    #[test]
    fn a_companion_never_addresses_itself() {
        let aria = Author { id: "aria".into(), name: "Aria".into(), role: Role::Companion };

        let address = read(&aria, "Aria says: ask Mira", &["aria"], Some(("aria", Role::Companion)));

        assert_eq!(address, to(&["mira"], false));
    }

    #[test]
    fn a_person_with_a_companions_name_stays_a_person() {
        let impostor = person("aria");

        assert_eq!(read(&impostor, "Aria?", &[], None), to(&["aria"], false));
        assert_eq!(read(&person("Ana"), "hi", &[], Some(("aria", Role::Person))), to(&[], true));
    }

    #[test]
    fn a_direct_message_addresses_everybody_in_it() {
        let ana = person("Ana");
        let incoming = Incoming { to_all_of: &["mira".into(), "aria".into()], ..Incoming::new(&ana, "hi") };

        assert_eq!(resolve(&names(), is_companion, &incoming), to(&["aria", "mira"], false));
    }

    #[test]
    fn a_message_to_the_shared_account_addresses_those_that_it_names_or_everybody() {
        let present = ["mira".into(), "aria".into()];
        let read = |text: &str| {
            let ana = person("Ana");
            let incoming = Incoming { to_all_of: &present, names_narrow: true, ..Incoming::new(&ana, text) };
            resolve(&names(), is_companion, &incoming)
        };

        assert_eq!(read("hi"), to(&["aria", "mira"], false));
        assert_eq!(read("hi Aria"), to(&["aria"], false));
    }

    #[test]
    fn what_a_name_sounds_like_addresses_in_speech_only() {
        let sounds =
            Names::of_sounds(&names(), [("aria".into(), vec!["Arya", "Mira", "aria"]), ("mira".into(), vec!["Arya", "Meera"])]);
        let (ana, aria) = (person("Ana"), Author { id: "aria".into(), name: "Aria".into(), role: Role::Companion });
        let heard = |speaker, text| {
            let incoming = Incoming { sounds: Some(&sounds), ..Incoming::new(speaker, text) };
            resolve(&names(), is_companion, &incoming)
        };

        assert_eq!(heard(&ana, "arya, and Mira"), to(&["aria", "mira"], false));
        assert_eq!(heard(&ana, "Mira"), to(&["mira"], false), "it is the other one's name");
        assert_eq!(heard(&ana, "meera?"), to(&["mira"], false));
        assert_eq!(heard(&ana, "aryan"), to(&[], false));
        assert_eq!(heard(&aria, "Arya and Meera"), to(&["mira"], false));
        assert_eq!(read(&ana, "arya", &[], None), to(&[], false));
    }

    #[test]
    fn names_after_an_at_sign_are_mentions_outside_code_and_mail_addresses() {
        for (text, expected) in [
            ("@Bob and @zoë.b, hi", &["Bob", "zoë.b"][..]),
            ("(@ann-lee). @x...", &["ann-lee", "x"]),
            ("bob@example.org `@bob` @ @- @", &[]),
            ("> @bob\n@ann", &["ann"]),
            ("nothing", &[]),
        ] {
            assert_eq!(at_names(text), expected, "{text:?}");
        }
    }

    fn read(speaker: &Author, text: &str, mentions: &[&str], reply_to: Option<(&str, Role)>) -> Address {
        resolve(&names(), is_companion, &Incoming { mentions, reply_to, ..Incoming::new(speaker, text) })
    }

    fn names() -> Names {
        Names::new([("aria".into(), vec!["Aria"]), ("mira".into(), vec!["Mira", "Mira Vale"])]).unwrap()
    }

    fn is_companion(id: &str) -> bool {
        ["aria", "mira"].contains(&id)
    }

    fn to(companions: &[&str], others: bool) -> Address {
        Address { companions: companions.iter().map(|id| CompanionId::from(*id)).collect(), others, ..Address::default() }
    }
}

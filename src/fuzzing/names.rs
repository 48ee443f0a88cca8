//! Targets for names and addresses in texts.

use super::rules::{is_bounded, parts, text, texts};
use crate::domain::address::{Incoming, admits, at_names, resolve, resolve_mention};
use crate::domain::id::CompanionId;
use crate::domain::message::{Author, Role};
use crate::domain::names::Names;
use crate::settings::companion::{MAX_ALIASES, MAX_NAME_CHARS};
use crate::settings::gate::ForeignBots;

pub(super) fn talk() -> Vec<Vec<u8>> {
    texts(&[
        "Hey Aria, what would Mira Vale say?",
        "アリアさん、`aria` と https://a.b/aria",
        "> aria said so\n```\nmira\n```\n[Aria](https://aria.example) ari's @mira",
        "@Aria\u{1f}aria\u{1f}@everyone\u{1f}@Bob\u{1f}Mira  Vale",
        "~~~\nARIA\n~~~\nÅria, ari\u{301}a malaria",
    ])
}

pub(super) fn lists_of_names() -> Vec<Vec<u8>> {
    texts(&["Aria\u{1f}ari\u{1f}アリア\u{1f}a b", "C++\u{1f}@x\u{1f}é", "Straße\u{1f}STRASSE", "İstanbul\u{1f}ﬁ\u{1f}K"])
}

pub(super) fn find(bytes: &[u8]) {
    let text = text(bytes);
    let names = sample_names();

    let found = names.find(&text);

    assert!(found.windows(2).all(|two| two[0] < two[1]), "not sorted, or with duplicates: {found:?}");
    assert!(found.iter().all(is_sample_id), "{found:?}");
    // Names in code or in a quoted line do not count.
    let within = text.replace(['`', '\n', '\r'], " ");
    assert_eq!(names.find(&format!("```\n{within}\n```")), [], "a name in code counts");
    assert_eq!(names.find(&format!(">>> {within}")), [], "a name in a quotation counts");
    // Text in an earlier line does not hide a name.
    if !text.contains(['`', '~', '>']) {
        assert!(names.find(&format!("{text}\nAria?")).contains(&"aria".into()), "earlier text hides a name");
    }
}

pub(super) fn lists(bytes: &[u8]) {
    let all = text(bytes);
    // Within the limits that settings and rooms set for the length and number of names: longer ones take much longer to search.
    let given = parts(&all).into_iter().filter(|name| is_bounded(name, MAX_NAME_CHARS)).take(2 * (1 + MAX_ALIASES));
    let given: Vec<&str> = given.collect();
    let (one, other) = given.split_at(given.len().div_ceil(2));

    let result = Names::new([("one".into(), one.to_vec()), ("other".into(), other.to_vec())]);

    let Ok(names) = result else { return };
    for (id, own_names) in [("one", one), ("other", other)] {
        for name in own_names {
            if let Some(owner) = names.owner(name) {
                assert_eq!(owner.as_str(), id, "{name:?} belongs to another companion");
            }
            let found = names.find(name);
            assert!(found.iter().all(|id| ["one", "other"].contains(&id.as_str())));
        }
    }
    assert_eq!(names.find("nobody-of-these").len(), names.find("nobody-of-these ").len());
}

pub(super) fn address(bytes: &[u8]) {
    let all = text(bytes);
    let given = parts(&all);
    let (message_text, mentions) = (given[0], &given[1..]);
    let names = sample_names();
    let at: Vec<&str> = at_names(message_text);
    assert!(at.iter().all(|name| !name.is_empty() && !name.contains(char::is_whitespace)), "{at:?}");
    let mentions: Vec<&str> = mentions.iter().copied().chain(at).map(|mention| resolve_mention(&names, mention)).collect();
    let is_companion = |id: &str| is_sample_id(&id.into());

    for (id, role) in [("aria", Role::Companion), ("aria", Role::Person), (message_text, Role::Person), ("beep", Role::Bot)] {
        let speaker = Author { id: id.into(), name: given[given.len() - 1].into(), role };
        let incoming = Incoming { mentions: &mentions, ..Incoming::new(&speaker, message_text) };

        let address = resolve(&names, is_companion, &incoming);

        assert!(address.companions.iter().all(is_sample_id), "{address:?}");
        assert!(address.companions.windows(2).all(|two| two[0] < two[1]), "{address:?}");
        assert!(role != Role::Companion || !address.companions.contains(&id.into()), "a companion addresses itself");
        let is_mentioned = mentions.iter().any(|mention| is_companion(mention.trim().trim_start_matches('@')));
        assert!(
            role != Role::Bot || is_mentioned || !admits(ForeignBots::Mentions, is_companion, &incoming),
            "a bot's message is admitted"
        );
    }
}

fn sample_names() -> Names {
    let companions = [("aria", vec!["Aria", "ari", "アリア"]), ("mira", vec!["Mira", "Mira Vale", "C++", "é"])];
    Names::new(companions.map(|(id, names)| (id.into(), names))).expect("no name is shared")
}

fn is_sample_id(id: &CompanionId) -> bool {
    ["aria", "mira"].contains(&id.as_str())
}

//! Whom talk names and addresses.

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
    let names = ours();

    let found = names.find(&text);

    assert!(found.windows(2).all(|two| two[0] < two[1]), "not each once: {found:?}");
    assert!(found.iter().all(is_ours), "{found:?}");
    // What stands in code or in a quoted line names nobody.
    let within = text.replace(['`', '\n', '\r'], " ");
    assert_eq!(names.find(&format!("```\n{within}\n```")), [], "code names somebody");
    assert_eq!(names.find(&format!(">>> {within}")), [], "a quotation names somebody");
    // Words of others that were said before in a line of their own take no name away.
    if !text.contains(['`', '~', '>']) {
        assert!(names.find(&format!("{text}\nAria?")).contains(&"aria".into()), "what stands before takes a name away");
    }
}

pub(super) fn lists(bytes: &[u8]) {
    let all = text(bytes);
    // So long, and so many for each of two, as settings and rooms take them: longer ones are searched for much longer.
    let given = parts(&all).into_iter().filter(|name| is_bounded(name, MAX_NAME_CHARS)).take(2 * (1 + MAX_ALIASES));
    let given: Vec<&str> = given.collect();
    let (one, other) = given.split_at(given.len().div_ceil(2));

    let made = Names::new([("one".into(), one.to_vec()), ("other".into(), other.to_vec())]);

    let Ok(names) = made else { return };
    for (id, of) in [("one", one), ("other", other)] {
        for name in of {
            if let Some(owner) = names.owner(name) {
                assert_eq!(owner.as_str(), id, "{name:?} is somebody else's");
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
    let (said, mentions) = (given[0], &given[1..]);
    let names = ours();
    let at: Vec<&str> = at_names(said);
    assert!(at.iter().all(|name| !name.is_empty() && !name.contains(char::is_whitespace)), "{at:?}");
    let mentions: Vec<&str> = mentions.iter().copied().chain(at).map(|mention| resolve_mention(&names, mention)).collect();
    let is_companion = |id: &str| is_ours(&id.into());

    for (id, role) in [("aria", Role::Companion), ("aria", Role::Person), (said, Role::Person), ("beep", Role::Bot)] {
        let speaker = Author { id: id.into(), name: given[given.len() - 1].into(), role };
        let heard = Incoming { speaker: &speaker, text: said, mentions: &mentions, reply_to: None, to_all_of: &[] };

        let address = resolve(&names, is_companion, &heard);

        assert!(address.companions.iter().all(is_ours), "{address:?}");
        assert!(address.companions.windows(2).all(|two| two[0] < two[1]), "{address:?}");
        assert!(role != Role::Companion || !address.companions.contains(&id.into()), "one addresses itself");
        let is_mentioned = mentions.iter().any(|mention| is_companion(mention.trim().trim_start_matches('@')));
        assert!(role != Role::Bot || is_mentioned || !admits(ForeignBots::Mentions, is_companion, &heard), "a bot gets in");
    }
}

fn ours() -> Names {
    let of = [("aria", vec!["Aria", "ari", "アリア"]), ("mira", vec!["Mira", "Mira Vale", "C++", "é"])];
    Names::new(of.map(|(id, names)| (id.into(), names))).expect("no name is shared")
}

fn is_ours(id: &CompanionId) -> bool {
    ["aria", "mira"].contains(&id.as_str())
}

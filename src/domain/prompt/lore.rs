//! Selects and writes the entries of lorebooks of a prompt.

use std::sync::Arc;

use super::data::{unseparated, weight};
use super::texts::LORE;
use crate::lore::matching::Fired;

/// An upper bound of the weight of the texts around the entries.
const DELIMITERS_WEIGHT: usize = 20;
/// Between two entries.
const GAP: &str = "\n\n";

/// The texts of the most important entries that fit, in their order in the prompt, and their names, the most important first. An entry that alone is too
/// long is left out.
pub(super) fn lore(fired: &[Fired], room: usize) -> (String, Vec<Arc<str>>) {
    let room = room.saturating_sub(weight(LORE) + DELIMITERS_WEIGHT);
    let (mut left, mut chosen) = (room, Vec::new());
    for entry in fired {
        // It may be written by a stranger, as a persona may.
        let text = unseparated(entry.text.trim());
        let needed = weight(&text) + GAP.len();
        if needed > room {
            continue;
        }
        let Some(rest) = left.checked_sub(needed) else { break };
        left = rest;
        chosen.push((entry, text));
    }
    let names = chosen.iter().map(|(entry, _)| entry.name.clone()).collect();
    chosen.sort_by_key(|(entry, _)| entry.place);
    let texts: Vec<_> = chosen.iter().map(|(_, text)| &**text).collect();
    (texts.join(GAP), names)
}

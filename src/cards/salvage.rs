//! Counts the repairs that a card needed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::named::named;

named! {
    /// The kinds of repairs.
    #[derive(JsonSchema)]
    pub enum SalvageKind {
        /// The JSON began with a byte order mark.
        ByteOrderMark = "byte_order_mark",
        /// Bytes that are not UTF-8 were decoded as UTF-16 or Latin-1.
        NotUtf8 = "not_utf8",
        /// The base64 had line breaks, used the URL alphabet, or lacked padding.
        LooseBase64 = "loose_base64",
        /// The JSON in the PNG was not encoded as base64.
        PlainJson = "plain_json",
        /// The JSON was invalid, for example with `NaN`, or encoded as a string.
        LooseJson = "loose_json",
        /// The checksum of a PNG chunk was wrong.
        WrongChecksum = "wrong_checksum",
        /// The PNG is truncated after the card.
        CutOff = "cut_off",
        /// A text chunk was unreadable, so another one was used.
        UnreadableChunk = "unreadable_chunk",
        /// The value was `null`.
        Null = "null",
        /// The value was a text, not a list.
        TextForList = "text_for_list",
        /// The value was a list or an object, not a text.
        ListForText = "list_for_text",
        /// The value was a number or a boolean, not a text.
        NumberForText = "number_for_text",
        /// A list entry was empty.
        EmptyEntry = "empty_entry",
        /// The card has no name.
        NoName = "no_name",
        /// The name was too long or had invisible characters.
        ChangedName = "changed_name",
        /// The field was beside `data` instead of inside.
        BesideData = "beside_data",
        /// The field had the key of another program.
        OtherKey = "other_key",
        /// Invisible characters and terminal control characters were removed.
        HiddenCharacters = "hidden_characters",
    }
}

/// A kind of repair, and how often it occurred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Salvage {
    pub kind: SalvageKind,
    /// The card's field. `None` if the repair concerns the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<&'static str>,
    pub count: usize,
}

/// Collects the counts while a card is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Salvages(BTreeMap<(SalvageKind, Option<&'static str>), usize>);

impl Salvages {
    pub(super) fn file(&mut self, kind: SalvageKind) {
        *self.0.entry((kind, None)).or_default() += 1;
    }

    pub(super) fn field(&mut self, kind: SalvageKind, field: &'static str) {
        *self.0.entry((kind, Some(field))).or_default() += 1;
    }

    pub(super) fn list(&self) -> Vec<Salvage> {
        self.0.iter().map(|(&(kind, field), &count)| Salvage { kind, field, count }).collect()
    }
}

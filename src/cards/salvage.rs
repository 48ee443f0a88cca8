//! Counts what had to be mended in a card.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::named::named;

named! {
    /// What was mended.
    #[derive(JsonSchema)]
    pub enum SalvageKind {
        /// A byte order mark before the JSON.
        ByteOrderMark = "byte_order_mark",
        /// Bytes that are not UTF-8 were read as UTF-16 or Latin-1.
        NotUtf8 = "not_utf8",
        /// base64 with line breaks, in the alphabet for URLs, or without its padding.
        LooseBase64 = "loose_base64",
        /// JSON in a PNG without base64 around it.
        PlainJson = "plain_json",
        /// JSON with what it does not allow, such as `NaN`, or in a text.
        LooseJson = "loose_json",
        /// A chunk of the PNG whose checksum is wrong.
        WrongChecksum = "wrong_checksum",
        /// The PNG is cut off after its character.
        CutOff = "cut_off",
        /// A text chunk that could not be read. Another was taken.
        UnreadableChunk = "unreadable_chunk",
        /// `null` instead of a value.
        Null = "null",
        /// A text instead of a list.
        TextForList = "text_for_list",
        /// A list or an object instead of a text.
        ListForText = "list_for_text",
        /// A number or `true` instead of a text.
        NumberForText = "number_for_text",
        /// An entry of a list that says nothing.
        EmptyEntry = "empty_entry",
        /// No name.
        NoName = "no_name",
        /// A name that was too long, or had characters that nobody sees.
        ChangedName = "changed_name",
        /// A field beside `data` instead of in it.
        BesideData = "beside_data",
        /// A field under the name that another program gave it.
        OtherKey = "other_key",
        /// Characters that nobody sees, or that control a terminal, were left out.
        HiddenCharacters = "hidden_characters",
    }
}

/// Something that was mended, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Salvage {
    pub kind: SalvageKind,
    /// The field of the card, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<&'static str>,
    pub count: usize,
}

/// The counts while a card is read.
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

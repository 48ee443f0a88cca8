//! Lorebooks (docs/design/memory.md K-20).

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::refused::Refused;
use crate::companion_setup::Revision;
use crate::domain::lore::{Shelved, Unusable};

/// Lists, changes and deletes lorebooks.
#[async_trait]
pub trait LoreService: Send + Sync + 'static {
    /// All lorebooks, ordered by id.
    async fn books(&self) -> Result<Books, Refused>;

    async fn book(&self, id: &str) -> Result<BookView, Refused>;

    /// Creates a lorebook with an id that is made from its name.
    async fn create_book(&self, new: Shelved) -> Result<BookView, Refused>;

    /// Replaces a lorebook. Returns [`Refused::Conflict`] if its revision has changed.
    async fn change_book(&self, id: &str, change: BookChange) -> Result<BookView, Refused>;

    /// Deletes a lorebook from the store. The book of a card, if it was changed, is again as in the card.
    async fn delete_book(&self, id: &str, revision: Revision) -> Result<(), Refused>;
}

/// Where a lorebook is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "in", rename_all = "snake_case")]
pub enum KeptBook {
    Store,
    /// The character card of a companion. A change is kept in the store.
    Card,
    /// A file, which is changed by hand.
    File {
        path: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Books {
    pub books: Vec<BookSummary>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BookSummary {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub kept: KeptBook,
    /// The number of entries.
    pub entries: usize,
    /// The companions that know it, in every room.
    pub companions: BTreeSet<Arc<str>>,
    /// The rooms in which all companions know it.
    pub rooms: BTreeSet<Arc<str>>,
}

/// A lorebook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BookView {
    pub id: Arc<str>,
    pub revision: Revision,
    pub kept: KeptBook,
    pub book: Shelved,
    /// Entries and keys that are not used.
    pub unusable: Vec<Unusable>,
}

/// A lorebook to replace another one.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BookChange {
    /// The revision that the change is based on, as the server returned it.
    pub revision: Revision,
    pub book: Shelved,
}

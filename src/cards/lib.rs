//! Reads and writes character cards, the files in which other programs keep characters, and checks pictures. Input and
//! output are bytes in memory.
//!
//! A card is JSON (versions 1, 2 and 3), alone or in a text chunk of a PNG. [`read`] accepts nearly everything that programs
//! write, and counts its repairs. [`preview()`] shows what a companion gets from a card, and [`draft`] creates that companion.
//! [`write_json`] and [`write_png`] write a companion as a card and keep the card's other fields. No address in a card is ever
//! fetched.
//!
//! [`read_chat`] reads a chat of SillyTavern.
//!
//! The versions are described by <https://github.com/malfoyslastname/character-card-spec-v2> and
//! <https://github.com/kwaroran/character-card-spec-v3>.

mod card;
mod chat;
mod export;
mod file;
#[cfg(any(test, feature = "samples"))]
pub mod fuzz;
pub mod lorebook;
mod not_a_card;
mod persona;
pub mod picture;
mod png;
pub mod posted;
mod preview;
mod salvage;
pub mod small;
#[cfg(any(test, feature = "samples"))]
#[cfg_attr(not(test), allow(dead_code, unused_imports, reason = "the tests use more of it"))]
pub mod tests;

use tertulia_domain as domain;
#[cfg(any(test, feature = "samples"))]
use tertulia_inputs as fuzzing;
use tertulia_settings as settings;

pub use card::{Card, Form, Traits};
pub use chat::{Chat, MOST_MESSAGES, NotAChat, read_chat};
pub use export::{write_json, write_png};
pub use file::{MAX_CARD_BYTES, MAX_JSON_BYTES, read};
pub use not_a_card::{NotACard, NotRead};
pub use persona::{Choices, Part, PartUse};
pub use preview::{Greeting, GreetingKind, LoreUse, PictureUse, Preview, Reason, Unused, UnusedKind, draft, preview};
pub use salvage::{Salvage, SalvageKind};

//! Errors for files that are not cards, with advice.

use serde::Serialize;
use thiserror::Error;

use crate::domain::named::named;

named! {
    /// The kind of a file that is not a card.
    pub enum NotRead {
        Jpeg = "jpeg",
        WebP = "webp",
        Gif = "gif",
        /// A zip, such as a CHARX file.
        Archive = "archive",
        /// A lorebook without a character.
        Lorebook = "lorebook",
        OtherJson = "other_json",
        Other = "other",
    }
}

/// The reason why a file cannot be read as a card. The page has its own texts for `code` and the values.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum NotACard {
    #[error("this file is empty: export the character again")]
    Empty,
    #[error(
        "this file has {bytes} bytes, a card has {most} at most: export the character without its assets, or with a smaller picture"
    )]
    TooLarge { bytes: usize, most: usize },
    #[error("the text of this card has more than {most} bytes: export the character without its assets")]
    TextTooLong { most: usize },
    #[error("this PNG has no character in it: export it as a character card (PNG or JSON) in the program that it comes from")]
    NoCharacter,
    #[error("this PNG is cut off before its character: download it again")]
    CutOff,
    #[error("the character in this PNG cannot be read ({what}): export it again")]
    Unreadable { what: String },
    #[error("{}", other(*.what))]
    Other { what: NotRead },
    #[error("this file is not JSON ({what}): export the character again as PNG or JSON")]
    NotJson { what: String },
}

fn other(what: NotRead) -> &'static str {
    match what {
        NotRead::Jpeg | NotRead::WebP | NotRead::Gif => {
            "this picture is no PNG, and only a PNG can be a card: export the character as PNG or JSON; \
             a picture that was converted or copied has lost its character"
        }
        NotRead::Archive => "this file is an archive (CHARX or zip): export the character as PNG or JSON",
        NotRead::Lorebook => "this file is a lorebook, and has no character: export the character itself as PNG or JSON",
        NotRead::OtherJson => "this JSON has no character in it, neither a name nor a description: export it as a character card",
        NotRead::Other => "this file is neither a PNG nor JSON: export the character as a character card (PNG or JSON)",
    }
}

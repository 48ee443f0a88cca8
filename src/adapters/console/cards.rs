//! Handlers for character cards: previews of imports, and exports of companions.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Shared;
use super::body::{CompanionPath, FileBody, QueryParams};
use super::problem::{Problem, off_thread};
use crate::domain::lore::Book;
use crate::domain::text::first_bytes;
use crate::ports::backend::Refused;
use crate::ports::backend::lore_service::KeptBook;
use crate::ports::companion_setup::{CompanionFields, Exported};
use tertulia_cards::{self as cards, Choices, PictureUse, Preview};

/// The longest name in a file name, in bytes. File systems allow 255, including the extension.
const MAX_FILE_NAME_BYTES: usize = 200;

/// The result that importing a card would have.
#[derive(Serialize, JsonSchema)]
pub(super) struct CardPreview {
    preview: Preview,
    /// The companion that the import would make. If its name is empty, the person must choose one.
    companion: CompanionFields,
    /// Whether the companion would get the card's picture.
    has_picture: bool,
}

/// `POST /api/cards`: stores nothing.
pub(super) async fn preview(
    QueryParams(choices): QueryParams<Choices>,
    FileBody(file, _place): FileBody,
) -> Result<Answer<CardPreview>, Problem> {
    let previewed = off_thread(move || {
        let card = cards::read(&file)?;
        let preview = cards::preview(&card, &choices);
        let has_picture = matches!(preview.picture, PictureUse::Used { .. });
        Ok(CardPreview { companion: cards::draft(&card, &choices).into(), preview, has_picture })
    });
    Ok(Answer(previewed.await?))
}

/// The file formats of a card.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum CardForm {
    Json,
    /// The companion's picture with the card in it.
    Png,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CardParams {
    /// `json` if it is absent.
    #[serde(rename = "as")]
    form: Option<CardForm>,
}

/// `GET /api/companions/{companion}/card?as=`
pub(super) async fn export(
    State(console): State<Shared>,
    CompanionPath(id): CompanionPath,
    QueryParams(params): QueryParams<CardParams>,
) -> Result<Response, Problem> {
    let exported = console.companions()?.exported(id.clone()).await?;
    // A lorebook that was changed here takes the place of the card's.
    let book = console.backend()?.lore.book(&format!("card.{id}")).await.ok();
    let book = book.filter(|book| book.kept == KeptBook::Store).map(|view| view.book.book);
    let form = params.form.unwrap_or(CardForm::Json);
    let (media_type, extension) = match form {
        CardForm::Json => ("application/json", "json"),
        CardForm::Png => ("image/png", "png"),
    };
    let headers = [
        (CONTENT_TYPE, media_type.to_owned()),
        (CONTENT_DISPOSITION, disposition(id.as_str(), &exported.companion.name, extension)),
    ];
    Ok((headers, off_thread(move || written(form, &exported, book.as_ref())).await?).into_response())
}

fn written(form: CardForm, Exported { companion, picture, card }: &Exported, book: Option<&Book>) -> Result<Vec<u8>, Problem> {
    let card = card.as_deref().map(cards::read).transpose();
    let card =
        card.map_err(|why| Refused::Damaged(format!("the card that {} was made of cannot be read: {why}", companion.id).into()))?;
    let original =
        card.map(|card| book.map_or_else(|| card.original.clone(), |book| cards::lorebook::in_card(&card.original, book)));
    let original = original.as_ref();
    match (form, picture) {
        // Serializing to memory does not fail.
        (CardForm::Json, _) => Ok(serde_json::to_vec_pretty(&cards::write_json(original, companion)).unwrap_or_default()),
        (CardForm::Png, None) => Err(no_png(&companion.name, "has no picture")),
        (CardForm::Png, Some(picture)) => {
            cards::write_png(picture, original, companion).map_err(|_| no_png(&companion.name, "has a picture that is no PNG"))
        }
    }
}

fn no_png(name: &str, why: &str) -> Problem {
    Refused::conflict(format!("{name} {why}, and a PNG of the card needs one: give {name} a PNG as picture, or export as json"))
        .into()
}

/// The header with which a browser saves a file. Programs that do not know `filename*` use the companion's id.
pub(super) fn disposition(id: &str, name: &str, extension: &str) -> String {
    let is_plain = |c: char| !c.is_control() && !"/\\:*?\"<>|".contains(c);
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    // A file whose name begins with a dot is hidden, and Windows allows no dot or space before the extension.
    let name = first_bytes(&name, MAX_FILE_NAME_BYTES).trim_matches(['.', ' ']);
    let name = if name.is_empty() { id } else { name };
    let escaped: String = format!("{name}.{extension}")
        .bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect();
    format!("attachment; filename=\"{id}.{extension}\"; filename*=UTF-8''{escaped}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_for_its_companion_in_any_script_and_as_every_file_system_takes_it() {
        let named = |name: &str| {
            let all = disposition("hilde", name, "png");
            let (plain, escaped) = all.split_once("; filename*=UTF-8''").unwrap();
            assert_eq!(plain, "attachment; filename=\"hilde.png\"");
            escaped.to_owned()
        };

        assert_eq!(named("Großmutter Hilde"), "Gro%C3%9Fmutter%20Hilde.png");
        assert_eq!(named("夜"), "%E5%A4%9C.png");
        assert_eq!(named("../..\\\"x\";\r\nSet-Cookie: a"), "-..--x-%3B--Set-Cookie-%20a.png");
        assert_eq!(named(".."), "hilde.png");
        assert_eq!(named(&"🦀".repeat(64)).len(), 50 * 12 + 4);
    }
}

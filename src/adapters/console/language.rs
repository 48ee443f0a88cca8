//! The language of a request.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT_LANGUAGE, COOKIE};
use axum::http::request::Parts;

use crate::texts::Language;

/// The cookie in which a browser stores a language that a person chose.
const LANGUAGE_COOKIE: &str = "language=";

/// The language of a request, as an argument of a handler.
pub(super) struct Preferred(pub(super) Language);

impl<S: Sync> FromRequestParts<S> for Preferred {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(language(&parts.headers)))
    }
}

/// The language of a request: the person's choice, otherwise the browser's preference.
pub(super) fn language(headers: &HeaderMap) -> Language {
    let cookies =
        headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok()).flat_map(|cookies| cookies.split(';'));
    let chosen = cookies.filter_map(|cookie| Language::of_code(cookie.trim().strip_prefix(LANGUAGE_COOKIE)?)).next();
    let accepted = || headers.get(ACCEPT_LANGUAGE).and_then(|accepted| accepted.to_str().ok()).map(Language::accepted);
    chosen.or_else(accepted).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_request_is_in_the_language_that_was_chosen_or_that_the_browser_asks_for() {
        let accepting = (ACCEPT_LANGUAGE, HeaderValue::from_static("de-AT,de;q=0.9"));
        let chosen = (COOKIE, HeaderValue::from_static("session=1; language=en"));

        assert_eq!(language(&HeaderMap::from_iter([accepting.clone()])), Language::German);
        assert_eq!(language(&HeaderMap::from_iter([accepting, chosen])), Language::English);
        assert_eq!(language(&HeaderMap::new()), Language::English);
    }
}

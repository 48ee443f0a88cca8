//! Speech recognition by Deepgram by turns, version 2 (the models Flux).

#[cfg(test)]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;
mod turns;

pub(super) use self::turns::Listening;
use super::deepgram::query;
use crate::ports::speech_recognition::Expectation;

/// The model that accepts a language. All others are for one language.
const MULTI: &str = "flux-general-multi";

/// Adds the query parameters of Flux.
pub(super) fn add_query(to: &mut Vec<(&'static str, String)>, model: &str, expectation: &Expectation) {
    let language = query::language(expectation).filter(|language| *language != "multi" && model == MULTI);
    to.extend(language.map(|language| ("language_hint", language.to_owned())));
    to.extend(query::names(expectation));
}

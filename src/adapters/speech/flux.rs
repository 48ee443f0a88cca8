//! Ears at Deepgram: recognition by turns, version 2 (the models Flux).

#[cfg(test)]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;
mod turns;

pub(super) use self::turns::Listening;
use super::deepgram::query;
use crate::ports::speech_recognition::Expectation;

/// The model that takes a language. The others are for one.
const MULTI: &str = "flux-general-multi";

/// What a connection is asked for, besides what all are.
pub(super) fn add_query(to: &mut Vec<(&'static str, String)>, model: &str, expectation: &Expectation) {
    let language = query::language(expectation).filter(|language| *language != "multi" && model == MULTI);
    to.extend(language.map(|language| ("language_hint", language.to_owned())));
    to.extend(query::names(expectation));
}

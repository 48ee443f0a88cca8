//! Texts of answers, in the language of whoever reads them.
//!
//! `languages.json` has the translations of commands, `answers.json` those of answers. In both, the key is the English text, and Discord's codes name the
//! languages.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::quoting::{verbatim, without_settings};
use crate::ports::backend::Detail;
use crate::texts::{Language, filled};

/// The translations of one text, by language.
pub(super) type Translations = BTreeMap<String, String>;

/// The translations of each text.
static TRANSLATIONS: LazyLock<BTreeMap<String, Translations>> = LazyLock::new(|| {
    let files = [include_str!("languages.json"), include_str!("answers.json")];
    let mut all: BTreeMap<String, Translations> = BTreeMap::new();
    for file in files {
        all.extend(serde_json::from_str::<BTreeMap<_, _>>(file).expect("a test reads the files"));
    }
    // Discord has two kinds of Spanish.
    for translations in all.values_mut() {
        let spanish = translations.get("es-ES").cloned();
        translations.extend(spanish.map(|spanish| ("es-419".to_owned(), spanish)));
    }
    all
});

/// The translations of an English text. `None` if it has none.
pub(super) fn translations(english: &str) -> Option<&'static Translations> {
    TRANSLATIONS.get(english)
}

/// A text of an answer. The answer is translated when it is sent, because only then the language of its reader is known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Text {
    /// The same in every language: names, times, quotations. Words of other people are escaped.
    Plain(String),
    /// An English text with placeholders in braces, and their values. [`say`] makes it.
    Said(Cow<'static, str>, Vec<(&'static str, Self)>),
    /// Texts with a separator between them. [`Text::SPACE`] separates sentences.
    Joined(Vec<Self>, &'static str),
    /// The reason why the backend refused something, which exists in the languages of the page.
    Detail(Detail),
}

/// A text with placeholders in braces, and the value of each: `say!("{name} is here now.", name = name(&companion.name))`. The compiler checks that each
/// placeholder has a value, and a test that the text is translated.
macro_rules! say {
    ($english:literal $(, $name:ident = $value:expr)* $(,)?) => {{
        let _ = format_args!(concat!($english) $(, $name = "")*);
        $crate::commands::text::Text::Said($english.into(), vec![$((stringify!($name), $crate::commands::text::Text::from($value))),*])
    }};
}
pub(crate) use say;

impl Text {
    const SPACE: &str = " ";

    /// An English text that may be translated.
    pub fn known(english: impl Into<Cow<'static, str>>) -> Self {
        Self::Said(english.into(), Vec::new())
    }

    pub fn lines(texts: impl IntoIterator<Item = Self>) -> Self {
        Self::Joined(texts.into_iter().collect(), "\n")
    }

    pub fn sentences(texts: impl IntoIterator<Item = Self>) -> Self {
        Self::Joined(texts.into_iter().collect(), Self::SPACE)
    }

    /// An entry of a list.
    pub fn bullet(self) -> Self {
        Self::Joined(vec![Self::Plain("• ".to_owned()), self], "")
    }

    /// The text in this language, a code of Discord's. English if there is no translation.
    pub fn in_language(&self, language: &str) -> String {
        match self {
            Self::Plain(text) => text.clone(),
            Self::Said(english, values) => {
                let translated = translations(english).and_then(|translations| translations.get(language));
                let value =
                    |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.in_language(language));
                filled(translated.map_or(english, |text| text), value)
            }
            Self::Joined(texts, separator) => {
                let texts: Vec<_> = texts.iter().map(|text| text.in_language(language)).collect();
                // Japanese has no spaces between sentences.
                texts.join(if *separator == Self::SPACE && language == "ja" { "" } else { separator })
            }
            Self::Detail(detail) => {
                let detail = detail.said_in(Language::of_code(language).unwrap_or_default());
                verbatim(&without_settings(&detail)).trim_end_matches('.').to_owned()
            }
        }
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::Plain(text)
    }
}

impl From<u64> for Text {
    fn from(number: u64) -> Self {
        Self::Plain(number.to_string())
    }
}

impl From<usize> for Text {
    fn from(number: usize) -> Self {
        Self::Plain(number.to_string())
    }
}

#[cfg(test)]
mod tests;

//! The texts for people, in each language: one file per language has every text of the page and every sentence of *Why?*.
//!
//! A text contains placeholders in braces (`{who} speaks next`). A text with a number has two forms, `one` and `other`, selected
//! by `count`.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Display;
use std::sync::LazyLock;

use serde_json::Value;

/// The part of a language's file that only the server needs: the sentences of *Why?*.
const SERVERS_PART: &str = "why";
/// The part that modules of a page use which are loaded at once, and that few visits need: the texts of refusals.
const LATER_PART: &str = "refusals";

/// A language that people can choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Language {
    /// The default.
    #[default]
    English,
    German,
    Spanish,
}

impl Language {
    pub const ALL: [Self; 3] = [Self::English, Self::German, Self::Spanish];

    /// The language's code in browsers.
    pub const fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
            Self::Spanish => "es",
        }
    }

    const fn file(self) -> &'static str {
        match self {
            Self::English => include_str!("en.json"),
            Self::German => include_str!("de.json"),
            Self::Spanish => include_str!("es.json"),
        }
    }

    /// The language with this code. A region (`de-AT`) is ignored.
    pub fn of_code(code: &str) -> Option<Self> {
        let code = code.trim().split(['-', '_']).next().unwrap_or_default();
        Self::ALL.into_iter().find(|language| language.code().eq_ignore_ascii_case(code))
    }

    /// The known language with the greatest weight in the header `Accept-Language` (RFC 9110, 12.5.4); of equals, the first. English if there is none.
    pub fn accepted(header: &str) -> Self {
        let weighted = header.split(',').filter_map(|part| {
            let (code, parameters) = part.split_once(';').unwrap_or((part, ""));
            let weight = parameters.trim().strip_prefix("q=").map_or(Some(1.0), |weight| weight.trim().parse::<f32>().ok())?;
            Self::of_code(code).filter(|_| weight > 0.0).map(|language| (weight, language))
        });
        weighted
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map_or_else(Self::default, |(_, language)| language)
    }

    /// The sections with a key that is quoted in `modules`, the source code of a page's modules, as JSON. Leaves out the sections that only the server
    /// needs, and that of refusals.
    pub fn of_page(self, modules: &str) -> String {
        let mut texts: Value = serde_json::from_str(self.file()).unwrap_or_default();
        let pieces = modules.split(['\'', '`']);
        let named: BTreeSet<&str> = pieces.filter_map(|piece| piece.split_once('.')).map(|(section, _)| section).collect();
        if let Some(sections) = texts.as_object_mut() {
            sections.retain(|section, _| section != SERVERS_PART && section != LATER_PART && named.contains(&**section));
        }
        texts.to_string()
    }

    /// All texts of pages, as JSON. A page loads them with its first module or refusal that needs more than [`of_page`](Self::of_page) has.
    pub fn of_page_later(self) -> String {
        let mut texts: Value = serde_json::from_str(self.file()).unwrap_or_default();
        if let Some(sections) = texts.as_object_mut() {
            sections.remove(SERVERS_PART);
        }
        texts.to_string()
    }

    /// The text with this key (`why.asked.named`), with the values in place of its placeholders. Returns the key itself if it has
    /// no text.
    pub fn say(self, key: &str, values: &[(&str, &dyn Display)]) -> String {
        let values: Vec<_> = values.iter().map(|(name, value)| (*name, value.to_string())).collect();
        let is_one = values.iter().any(|(name, value)| *name == "count" && value == "1");
        let form = |form: &str| TEXTS[&self].get(&format!("{key}.{form}"));
        let text = TEXTS[&self].get(key).or_else(|| form(if is_one { "one" } else { "other" }));
        let Some(text) = text else { return key.to_owned() };
        filled(text, |name| values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone()))
    }

    /// The keys that begin with `section`, which ends in a dot (`refusals.`), without it.
    pub fn keys(section: &str) -> BTreeSet<&'static str> {
        TEXTS[&Self::English].keys().filter_map(|key| key.strip_prefix(section)).collect()
    }

    /// A page of HTML with its placeholders, which are keys, replaced by texts.
    pub fn fill(self, html: &str) -> String {
        let escaped = |text: &String| text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
        filled(html, |key| TEXTS[&self].get(key).map(escaped))
    }
}

/// Where a person at risk finds help, in the language with this code, or in English.
pub fn help(code: &str) -> String {
    static OTHERS: LazyLock<HashMap<String, String>> =
        LazyLock::new(|| serde_json::from_str(include_str!("help.json")).unwrap_or_default());
    let other = code.get(..2).and_then(|code| OTHERS.get(&code.to_ascii_lowercase()));
    other.cloned().unwrap_or_else(|| Language::of_code(code).unwrap_or_default().say("risk.help", &[]))
}

/// Replaces the placeholders in braces. It works in one pass, so braces in the inserted values have no effect.
pub fn filled(mut rest: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(rest.len());
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, behind)) = after.split_once('}') else { break };
        filled += before;
        filled += &value(name).unwrap_or_default();
        rest = behind;
    }
    filled + rest
}

/// The texts of each language by their keys.
static TEXTS: LazyLock<HashMap<Language, HashMap<String, String>>> = LazyLock::new(|| {
    Language::ALL
        .into_iter()
        .map(|language| (language, flat(&serde_json::from_str(language.file()).unwrap_or_default())))
        .collect()
});

fn flat(texts: &Value) -> HashMap<String, String> {
    let mut found = HashMap::new();
    let mut open = vec![(String::new(), texts)];
    while let Some((key, value)) = open.pop() {
        match value {
            Value::Object(inner) => {
                let below = |name: &String| if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                open.extend(inner.iter().map(|(name, value)| (below(name), value)));
            }
            Value::String(text) => {
                found.insert(key, text.clone());
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests;

//! The speakers of a room, and lines that begin with a name: `Ana:`, `**Ana:**`, `[Ana]:`, `<Ana>`, `[22:10] Ana (she/her):`.

use std::sync::Arc;

use super::Known;
use super::cursor::{Cursor, Found, More, first};

/// The maximum length of a note beside a name (a time, pronouns, a score), in bytes, and the maximum number of signs around the
/// name.
const MAX_BESIDE: usize = 40;
const MAX_SIGNS: usize = 4;
/// Roles whose turns a model may write besides those of the people and companions of the room.
const ROLES: [&str; 3] = ["User", "Human", "Assistant"];
/// The roles that remain as a line of their own if a server removes the markers around them.
const BARE_ROLES: [&str; 4] = ["assistant", "model", "user", "human"];
/// Labels that, like a role, may precede the words of an answer.
const LABELS: [&str; 3] = ["Assistant", "Response", "Reply"];

/// The names that an answer may use for the speakers of a room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Speakers {
    /// The companion's own name in its forms: as configured, without decoration, its first word, its aliases.
    own: Vec<Arc<str>>,
    others: Vec<Arc<str>>,
    /// The texts of the prompt that an answer must not copy.
    pub(super) known: Arc<Known>,
}

impl Speakers {
    /// Collects the names of the answering companion and of all others known in the room.
    pub fn new(own: &str, others: impl IntoIterator<Item = Arc<str>>) -> Self {
        let own = own.trim();
        let first = plain(own).split_whitespace().next().filter(|first| first.chars().count() > 2);
        let mut own: Vec<Arc<str>> =
            [own, plain(own)].into_iter().chain(first).filter(|own| !own.is_empty()).map(Arc::from).collect();
        own.dedup();
        // A single letter also begins questions and lists.
        let is_other = |name: &Arc<str>| name.len() > 1 && own.first().is_none_or(|own| !is_same(name, own));
        let forms = |name: Arc<str>| [Arc::from(name.trim()), Arc::from(plain(&name))];
        let mut others: Vec<Arc<str>> = others.into_iter().flat_map(forms).filter(is_other).collect();
        others.sort_unstable();
        others.dedup();
        Self { own, others, known: Arc::default() }
    }

    /// Adds further names of the companion.
    #[must_use]
    pub fn also_called(mut self, names: impl IntoIterator<Item = Arc<str>>) -> Self {
        self.own.extend(names);
        self
    }

    /// Adds the texts of the prompt that an answer must not copy.
    #[must_use]
    pub fn knowing(self, known: Known) -> Self {
        Self { known: known.into(), ..self }
    }

    /// The position after another speaker's name at the beginning of the line.
    pub(super) fn other<'a>(&self, line: Cursor<'a>) -> Found<'a> {
        let found = first(&self.others, |name| speaker(line, name))?;
        let roles = ROLES.iter().filter(|role| !is_same(role, self.name()));
        if found.is_some() { Ok(found) } else { first(roles, |name| role(line, name)) }
    }

    /// The position after the companion's own name.
    pub(super) fn own<'a>(&self, line: Cursor<'a>) -> Found<'a> {
        first(&self.own, |name| speaker(line, name))
    }

    /// The position after the companion's own name, its role or a label, at the beginning of an answer. The name may be alone in
    /// its line.
    pub(super) fn own_at_begin<'a>(&self, text: Cursor<'a>) -> Found<'a> {
        if let Some(end) = self.own(text)? {
            return Ok(Some(end));
        }
        let has_assistant = self.others.iter().any(|name| is_same(name, "assistant"));
        if let Some(end) = first(LABELS.iter().skip(has_assistant.into()), |label| role(text, label))? {
            return Ok(Some(end));
        }
        let headings = self.own.iter().map(|name| &**name).chain(["assistant", "model"]);
        first(headings, |name| heading(text, name))
    }

    /// Whether `name` is the companion's name or a word that stands for it.
    pub(super) fn is_own(&self, name: &str) -> bool {
        [self.name(), "assistant", "you"].iter().any(|own| is_same(name.trim(), own))
    }

    /// The companion's name.
    pub(super) fn name(&self) -> &str {
        self.own.first().map_or("", |own| own)
    }
}

/// Whether a line is only the role of a turn's author, left by a server that removes the markers around it.
pub(super) fn is_bare_role(line: Cursor<'_>) -> Result<bool, More> {
    let end = first(BARE_ROLES, |role| line.after(role))?;
    end.map_or(Ok(false), |end| Ok(end.past(|c| c == ' ', MAX_SIGNS)?.next()?.is_none_or(|c| c == '\n')))
}

/// Whether the text between a name and the end of the line is a score such as `5` or `3/10 points`.
pub(super) fn is_score(after: Cursor<'_>) -> Result<bool, More> {
    let number = after.past(|c| !c.is_alphanumeric() && c != '\n', MAX_BESIDE)?;
    let is_number = number.next()?.is_some_and(|c| c.is_ascii_digit());
    Ok(is_number && number.line(MAX_BESIDE)?.is_some_and(|line| !line.trim().ends_with(['.', '!', '?'])))
}

/// The position after a name and its separator, such as a colon, if the line begins with them.
fn speaker<'a>(line: Cursor<'a>, name: &str) -> Found<'a> {
    let may_be_before = |c: char| c.is_ascii_digit() || matches!(c, '#' | '*' | '_' | '[' | ']' | '(' | ')' | '<' | ':' | ' ');
    let is_sign = |c| matches!(c, '*' | '_' | ']' | '>' | ')');
    let is_space = |c| c == ' ';
    let begin = if name.starts_with(may_be_before) { line } else { line.past(may_be_before, MAX_BESIDE)? };
    let Some(after_name) = begin.after_any_case(name)? else { return Ok(None) };
    let before = line.until(begin);
    // A list item.
    if before.contains("* ") {
        return Ok(None);
    }
    let after_signs = after_name.past(is_sign, MAX_SIGNS)?;
    let mut end = after_signs.past(is_space, MAX_SIGNS)?;
    let signs = after_name.until(after_signs);
    if before.ends_with('<') && signs.starts_with('>') && end.rest().starts_with(|c| c != ':') {
        return Ok(Some(end));
    }
    if matches!(end.next()?, Some('(' | '[')) {
        let aside = end.past(|c| !matches!(c, ')' | ']' | '\n'), MAX_BESIDE)?;
        end = aside.past(|c| is_sign(c) || c == ' ', MAX_SIGNS)?;
    }
    let Some(end) = first([":", "："], |colon| end.after(colon))? else { return Ok(None) };
    // Emphasis that opens before the name and is not closed after it closes after the colon.
    let end = if signs.is_empty() && before.contains(['*', '_']) { end.past(is_sign, MAX_SIGNS)? } else { end };
    end.past(is_space, MAX_SIGNS).map(Some)
}

/// Like `speaker`, for a role as in `User:`. Only the capitalised form counts, because lists use the same words in small letters.
fn role<'a>(line: Cursor<'a>, role: &str) -> Found<'a> {
    let is_capital = |end: &Cursor<'_>| line.until(*end).contains(role);
    Ok(speaker(line, role)?.filter(is_capital))
}

/// The position after a line that consists of a name alone.
fn heading<'a>(line: Cursor<'a>, name: &str) -> Found<'a> {
    let is_sign = |c| matches!(c, '*' | '_' | '#' | '[' | ']' | '<' | '>' | ' ');
    let Some(end) = line.past(is_sign, MAX_SIGNS)?.after_any_case(name)? else { return Ok(None) };
    end.past(is_sign, MAX_SIGNS)?.after("\n")
}

/// A name without decoration around it.
fn plain(name: &str) -> &str {
    name.trim_matches(|c: char| !c.is_alphanumeric())
}

fn is_same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

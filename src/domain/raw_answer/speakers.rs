//! Who speaks in a room, and the lines that begin with a name: `Ana:`, `**Ana:**`, `[Ana]:`, `<Ana>`, `[22:10] Ana (she/her):`.

use std::sync::Arc;

use super::Known;
use super::cursor::{Cursor, Found, More, first};

/// What stands beside a name, such as a time, pronouns or a score, is at most this long, in bytes, and so many signs are around it.
const MAX_BESIDE: usize = 40;
const MAX_SIGNS: usize = 4;
/// Others than the people and companions of the room whose turns a model may write.
const ROLES: [&str; 3] = ["User", "Human", "Assistant"];
/// How servers leave the author of a turn in a line alone when they remove the marks around it.
const BARE_ROLES: [&str; 4] = ["assistant", "model", "user", "human"];
/// What may stand before an answer's words, as a role does.
const LABELS: [&str; 3] = ["Assistant", "Response", "Reply"];

/// Who speaks in a room, as far as an answer may name them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Speakers {
    /// The companion's own name, and other ways to write it: without decoration, its first word, its aliases.
    own: Vec<Arc<str>>,
    others: Vec<Arc<str>>,
    /// What of the prompt is never said.
    pub(super) known: Arc<Known>,
}

impl Speakers {
    /// The companion that answers, and everybody else who is known in the room.
    pub fn new(own: &str, others: impl IntoIterator<Item = Arc<str>>) -> Self {
        let own = own.trim();
        let first = plain(own).split_whitespace().next().filter(|first| first.chars().count() > 2);
        let mut own: Vec<Arc<str>> =
            [own, plain(own)].into_iter().chain(first).filter(|own| !own.is_empty()).map(Arc::from).collect();
        own.dedup();
        // A letter alone also begins questions and lists.
        let is_other = |name: &Arc<str>| name.len() > 1 && own.first().is_none_or(|own| !is_same(name, own));
        let forms = |name: Arc<str>| [Arc::from(name.trim()), Arc::from(plain(&name))];
        let mut others: Vec<Arc<str>> = others.into_iter().flat_map(forms).filter(is_other).collect();
        others.sort_unstable();
        others.dedup();
        Self { own, others, known: Arc::default() }
    }

    /// Adds the other names that the companion answers to.
    #[must_use]
    pub fn also_called(mut self, names: impl IntoIterator<Item = Arc<str>>) -> Self {
        self.own.extend(names);
        self
    }

    /// Adds what of the prompt is never said.
    #[must_use]
    pub fn knowing(self, known: Known) -> Self {
        Self { known: known.into(), ..self }
    }

    /// The place after somebody else's name, if a line begins with it.
    pub(super) fn other<'a>(&self, line: Cursor<'a>) -> Found<'a> {
        let found = first(&self.others, |name| speaker(line, name))?;
        let roles = ROLES.iter().filter(|role| !is_same(role, self.name()));
        if found.is_some() { Ok(found) } else { first(roles, |name| role(line, name)) }
    }

    /// The place after the companion's own name.
    pub(super) fn own<'a>(&self, line: Cursor<'a>) -> Found<'a> {
        first(&self.own, |name| speaker(line, name))
    }

    /// The place after the companion's own name, its role or a label, at the beginning of an answer. A name may be a line of its own.
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

    /// Whether this is the companion's name, or stands for it.
    pub(super) fn is_own(&self, name: &str) -> bool {
        [self.name(), "assistant", "you"].iter().any(|own| is_same(name.trim(), own))
    }

    /// The companion's name.
    pub(super) fn name(&self) -> &str {
        self.own.first().map_or("", |own| own)
    }
}

/// Whether a line is the role of a turn's author alone, as a server leaves it that removes the marks around it.
pub(super) fn is_bare_role(line: Cursor<'_>) -> Result<bool, More> {
    let end = first(BARE_ROLES, |role| line.after(role))?;
    end.map_or(Ok(false), |end| Ok(end.past(|c| c == ' ', MAX_SIGNS)?.next()?.is_none_or(|c| c == '\n')))
}

/// Whether what follows a name in its line is a score, such as `5` or `3/10 points`, and no words.
pub(super) fn is_score(after: Cursor<'_>) -> Result<bool, More> {
    let number = after.past(|c| !c.is_alphanumeric() && c != '\n', MAX_BESIDE)?;
    if !number.next()?.is_some_and(|c| c.is_ascii_digit()) {
        return Ok(false);
    }
    Ok(number.line(MAX_BESIDE)?.is_some_and(|line| !line.trim().ends_with(['.', '!', '?'])))
}

/// The place after a name and what separates it from words, if a line begins with them.
fn speaker<'a>(line: Cursor<'a>, name: &str) -> Found<'a> {
    let may_be_before = |c: char| c.is_ascii_digit() || matches!(c, '#' | '*' | '_' | '[' | ']' | '(' | ')' | '<' | ':' | ' ');
    let is_sign = |c| matches!(c, '*' | '_' | ']' | '>' | ')');
    let is_space = |c| c == ' ';
    let begin = if name.starts_with(may_be_before) { line } else { line.past(may_be_before, MAX_BESIDE)? };
    let Some(after_name) = begin.after_any_case(name)? else { return Ok(None) };
    let before = line.until(begin);
    // An item of a list.
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
    // Signs that are open before the name and not closed after it close after the colon.
    let end = if signs.is_empty() && before.contains(['*', '_']) { end.past(is_sign, MAX_SIGNS)? } else { end };
    end.past(is_space, MAX_SIGNS).map(Some)
}

/// The same of the name of a role in a chat, as in `User:`. Roles are capitalised, because other lists use the same words.
fn role<'a>(line: Cursor<'a>, role: &str) -> Found<'a> {
    let is_capital = |end: &Cursor<'_>| line.until(*end).contains(role);
    Ok(speaker(line, role)?.filter(is_capital))
}

/// The place after a line that is a name alone.
fn heading<'a>(line: Cursor<'a>, name: &str) -> Found<'a> {
    let is_sign = |c| matches!(c, '*' | '_' | '#' | '[' | ']' | '<' | '>' | ' ');
    match line.past(is_sign, MAX_SIGNS)?.after_any_case(name)? {
        Some(end) => end.past(is_sign, MAX_SIGNS)?.after("\n"),
        None => Ok(None),
    }
}

/// A name without the signs around it.
fn plain(name: &str) -> &str {
    name.trim_matches(|c: char| !c.is_alphanumeric())
}

fn is_same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

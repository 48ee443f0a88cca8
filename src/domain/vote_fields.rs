//! The fields of a vote, by which a vote is recognised in an answer.

/// The fields of a vote that are compared for contradictions.
pub(crate) const DECIDING: [&str; 4] = ["decision", "importance", "selected", "closing"];
/// The other fields of a vote.
const OTHERS: [&str; 3] = ["reason", "mood", "risk"];

/// Whether a vote has a field of this name, in lower case.
pub(crate) fn is_field(name: &str) -> bool {
    DECIDING.contains(&name) || OTHERS.contains(&name)
}

/// Whether the text after a brace begins with a field of a vote, in any or no quotation marks.
pub(crate) fn begins_with_field(rest: &str) -> bool {
    let is_quote = |c: char| matches!(c, '"' | '\'' | '“' | '”' | '‘' | '’');
    let rest = rest.trim_start().trim_start_matches(is_quote);
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    is_field(&name.to_ascii_lowercase()) && rest.trim_start_matches(is_quote).trim_start().starts_with(':')
}

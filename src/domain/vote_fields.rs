//! The fields of a vote, by which one is found in an answer.

/// The fields of a vote that matter for a contradiction.
pub(in crate::domain) const DECIDING: [&str; 4] = ["decision", "importance", "selected", "closing"];

/// Whether a field of a vote follows a brace, in single quotation marks or in none.
pub(in crate::domain) fn begins_without_quotes(rest: &str) -> bool {
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('\'').unwrap_or(rest);
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let is_field = name.eq_ignore_ascii_case("reason") || DECIDING.iter().any(|field| name.eq_ignore_ascii_case(field));
    is_field && rest.strip_prefix('\'').unwrap_or(rest).trim_start().starts_with(':')
}

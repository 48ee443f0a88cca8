//! Extracts the brief of a persona from the answer of a model.

use super::raw_answer;
use super::text::is_blank;

/// The brief of a persona, without the model's thoughts, with at most this number of bytes. `None` if no visible text is left.
pub fn clean_brief(text: &str, max_bytes: usize) -> Option<String> {
    let visible = raw_answer::prose(text)?;
    let visible = visible.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t'));
    let mut bytes = 0;
    let kept: String = visible
        .skip_while(|c| c.is_whitespace())
        .take_while(|c| {
            bytes += c.len_utf8();
            bytes <= max_bytes
        })
        .collect();
    let kept = kept.trim_end();
    (!is_blank(kept)).then(|| kept.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brief_has_no_thoughts_and_is_bounded() {
        assert_eq!(clean_brief("<think>Short.</think>\nYou are Aria.", 100).as_deref(), Some("You are Aria."));
        assert_eq!(
            clean_brief("Here is the description:\n{\"description\": \"You are Aria.\"}", 100).as_deref(),
            Some("You are Aria.")
        );
        assert_eq!(clean_brief("éé and more", 3).as_deref(), Some("é"));
        assert_eq!(clean_brief("<think>Short.</think>\n", 100), None);
    }
}

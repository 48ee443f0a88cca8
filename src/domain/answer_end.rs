//! How an answer of a model ended, and how to cut a statement whose end is missing (docs/design/models.md M-21).

pub mod endless;

use super::split::is_end_of_sentence;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerEnd {
    /// The model finished its answer, or calls a tool.
    Done,
    /// The model reached its limit of tokens, or of its context.
    Limit,
    /// The endpoint withheld the answer or its rest.
    Withheld,
    /// The endpoint failed midway.
    Failed,
    /// The model repeats itself endlessly ([`endless`]).
    Endless,
    /// An unknown reason.
    Other,
}

impl AnswerEnd {
    /// The meaning of a `finish_reason`, in any case. Servers use different words for the same reason.
    pub fn of(reason: &str) -> Self {
        match reason.to_ascii_lowercase().as_str() {
            "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" | "complete" | "completed" | "end" | "tool_calls"
            | "tool_call" | "tool_use" | "function_call" => Self::Done,
            "length"
            | "max_tokens"
            | "max_output_tokens"
            | "max_completion_tokens"
            | "model_length"
            | "token_limit"
            | "context_length"
            | "model_context_window_exceeded" => Self::Limit,
            "content_filter" | "safety" | "recitation" | "prohibited_content" | "blocklist" | "spii" | "sensitive"
            | "refusal" => Self::Withheld,
            "error"
            | "network_error"
            | "insufficient_system_resource"
            | "abort"
            | "aborted"
            | "cancelled"
            | "malformed_function_call" => Self::Failed,
            ENDLESS => Self::Endless,
            _ => Self::Other,
        }
    }

    /// Whether the end of this answer is missing. For an unknown reason, and for a filter's, the end is present if the answer ends with a whole
    /// sentence or is JSON.
    pub fn is_missing(self, answer: &str) -> bool {
        match self {
            Self::Limit | Self::Endless => true,
            Self::Other | Self::Withheld => !is_whole(answer) && !answer.trim_end().ends_with(['}', ']']),
            Self::Done | Self::Failed => false,
        }
    }
}

/// The reason of an answer that was stopped because it repeats itself endlessly.
pub const ENDLESS: &str = "endless_repetition";

/// Cuts a statement whose end is missing back to its last whole sentence or line. A text without either is unchanged. If it ends inside a code block,
/// the block keeps its whole lines and is closed, or is cut off if it has none.
pub fn whole_sentences(text: &str) -> String {
    let text = text.trim_end();
    if is_whole(text) {
        return text.to_owned();
    }
    if let Some(fence) = open_fence(text) {
        let (before, code) = text.split_at(fence);
        return match code.rfind('\n').filter(|end| code[..*end].contains('\n')) {
            Some(end) => {
                let mark = code.chars().next().unwrap_or('`');
                let marks = code.len() - code.trim_start_matches(mark).len();
                format!("{before}{}\n{}", &code[..end], &code[..marks])
            }
            None => whole_sentences_before(before, text),
        };
    }
    whole_sentences_before(text, text)
}

/// Whether a text ends with a whole sentence.
pub fn is_whole(text: &str) -> bool {
    let text = text.trim_end();
    open_fence(text).is_none() && is_end_of_sentence(text, " ") && !ends_with_number(text)
}

fn whole_sentences_before(text: &str, otherwise: &str) -> String {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let is_end = |end: &usize| {
        let (before, after) = text.split_at(*end);
        after.starts_with('\n') && !before.trim().is_empty() || is_end_of_sentence(before, after) && !ends_with_number(before)
    };
    match ends.rev().find(is_end).filter(|end| *end < text.len() || text.len() < otherwise.len()) {
        Some(end) => text[..end].trim_end().to_owned(),
        None => otherwise.to_owned(),
    }
}

/// Whether a text ends with the number of a list item, whose full stop does not end a sentence.
fn ends_with_number(text: &str) -> bool {
    let line = text.rsplit('\n').next().unwrap_or_default().trim();
    line.strip_suffix('.').is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The position of the code block that a text ends in. None if it ends in none.
fn open_fence(text: &str) -> Option<usize> {
    let mut open: Option<(usize, &str)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let words = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|mark| words.starts_with(mark));
        open = match (open, mark) {
            (None, Some(mark)) => Some((at + line.len() - line.trim_start().len(), mark)),
            (Some((_, begun)), Some(mark)) if begun == mark && words.trim_matches(['`', '~']).is_empty() => None,
            (open, _) => open,
        };
        at += line.len();
    }
    open.map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_statement_is_cut_back_to_its_last_whole_sentence() {
        for (text, expected) in [
            ("There are three ways. First you take the ferry, second you wal", "There are three ways."),
            ("One. Two! Three? Four", "One. Two! Three?"),
            ("She said “go.” Then she", "She said “go.”"),
            ("It costs 3.50 in the", "It costs 3.50 in the"),
            ("All of it is here.", "All of it is here."),
            ("All of it is here. ", "All of it is here."),
            ("no sentence ends her", "no sentence ends her"),
            ("港は六時に開く。フェリーは", "港は六時に開く。"),
            ("Three ways:\n1. Take the ferry\n2. Wal", "Three ways:\n1. Take the ferry"),
            ("Ways:\n1. Take the ferry.\n2.", "Ways:\n1. Take the ferry."),
            ("A title\n\nand no", "A title"),
            ("Run this:\n```sh\nls\ncd /ho", "Run this:\n```sh\nls\n```"),
            ("Run this. Now:\n```sh\nls -", "Run this. Now:"),
            ("```sh\nls -", "```sh\nls -"),
            ("Run:\n```\nls\n```\nThen go. And", "Run:\n```\nls\n```\nThen go."),
            ("", ""),
        ] {
            assert_eq!(whole_sentences(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_words_of_many_servers_are_known() {
        for (reason, end) in [
            ("stop", AnswerEnd::Done),
            ("STOP", AnswerEnd::Done),
            ("eos_token", AnswerEnd::Done),
            ("length", AnswerEnd::Limit),
            ("MAX_TOKENS", AnswerEnd::Limit),
            ("model_length", AnswerEnd::Limit),
            ("content_filter", AnswerEnd::Withheld),
            ("SAFETY", AnswerEnd::Withheld),
            ("error", AnswerEnd::Failed),
            ("abort", AnswerEnd::Failed),
            ("whatever", AnswerEnd::Other),
        ] {
            assert_eq!(AnswerEnd::of(reason), end, "{reason}");
        }
    }

    #[test]
    fn the_end_of_half_a_sentence_is_missing_unless_the_model_is_done() {
        let missing = ["stop", "length", "content_filter", "whatever", "error"].map(|reason| {
            let end = AnswerEnd::of(reason);
            [end.is_missing("It opens. The ferry to"), end.is_missing("It opens."), end.is_missing("{\"decision\": \"NO\"}")]
        });

        assert_eq!(missing, [[false; 3], [true; 3], [true, false, false], [true, false, false], [false; 3]]);
    }

    proptest! {
        #[test]
        fn nothing_is_added_but_the_end_of_a_code_block(text in "([a-z.?。 \n`*\"]|```|~~~|é){0,60}") {
            let whole = whole_sentences(&text);

            prop_assert!(whole.len() <= 2 * text.trim_end().len());
            prop_assert!(text.trim_end().starts_with(whole.trim_end_matches(['`', '~', '\n'])));
            prop_assert_eq!(whole.is_empty(), text.trim_end().is_empty());
        }
    }
}

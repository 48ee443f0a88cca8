//! The marks that separate system, user and assistant in a model's input. Text by people must not contain one.
//!
//! A server that turns a chat into tokens may treat a mark inside a message as its own. So the first character of each mark is escaped (`data.rs`),
//! and no mark is left. A new family of models needs its line here.

/// The characters that follow `<` in a tag or a mark. Any letter does, too (`<think>`, `<start_of_turn>` of Gemma, `<s>` and `<<SYS>>` of Llama 2).
///
/// * `/`, `!`, `?`: tags of HTML and XML, and the ends of others (HTML Standard, 13.2.5.6, tag open state).
/// * `|`: ChatML and Qwen (`<|im_start|>`), Llama 3 (`<|start_header_id|>`), Phi, GLM, Granite, gpt-oss.
/// * U+FF5C: DeepSeek and Hunyuan (`<｜Assistant｜>`; `tokenizer_config.json` of DeepSeek-V3).
const AFTER_ANGLE: [char; 5] = ['/', '!', '?', '|', '\u{ff5c}'];

/// The names between `[` and `]`, with or without a `/` before them.
///
/// * Mistral: `SpecialTokens` in `mistral_common/tokens/tokenizers/base.py` of mistral-common, and `[INST]` of Llama 2.
/// * GLM and BERT: `gMASK` to `UNK` (`added_tokens` of their `tokenizer_config.json`).
const BRACKETED: [&str; 31] = [
    "INST",
    "SYSTEM_PROMPT",
    "AVAILABLE_TOOLS",
    "TOOL_CALLS",
    "TOOL_RESULTS",
    "TOOL_CONTENT",
    "ARGS",
    "CALL_ID",
    "THINK",
    "MODEL_SETTINGS",
    "IMG",
    "IMG_BREAK",
    "IMG_END",
    "AUDIO",
    "BEGIN_AUDIO",
    "TRANSCRIBE",
    "NEXT_AUDIO_TEXT",
    "REPEAT_AUDIO_TEXT",
    "STREAMING_PAD",
    "STREAMING_WORD",
    "PREFIX",
    "MIDDLE",
    "SUFFIX",
    "gMASK",
    "sMASK",
    "eMASK",
    "MASK",
    "CLS",
    "SEP",
    "PAD",
    "UNK",
];

/// The texts that follow `[` in a mark, whatever comes after them.
///
/// * `|`: EXAONE (`[|assistant|]`; `tokenizer_config.json` of EXAONE-3.5).
/// * `UNUSED_TOKEN_`: InternLM2 (`[UNUSED_TOKEN_146]`; `tokenizer_config.json` of InternLM2).
const AFTER_BRACKET: [&str; 2] = ["|", "UNUSED_TOKEN_"];

/// Marks of other shapes, each up to the character that identifies it.
///
/// * MiniMax M2: `]~!b[`, `]~b]` and `[e~[` (`chat_template.jinja` of MiniMax-M2), and `]<]` of MiniMax-Text-01.
const OTHERS: [&str; 4] = ["]~!b[", "]~b]", "[e~[", "]<]"];

/// Whether a mark begins with this character and continues with this text.
pub(super) fn begins_mark(first: char, rest: &str) -> bool {
    match first {
        '<' => rest.starts_with(|next: char| next.is_ascii_alphabetic() || AFTER_ANGLE.contains(&next)),
        '[' => is_bracketed(rest) || AFTER_BRACKET.iter().any(|next| rest.starts_with(next)) || is_other(first, rest),
        ']' => is_other(first, rest),
        _ => false,
    }
}

fn is_bracketed(rest: &str) -> bool {
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    BRACKETED.iter().any(|name| rest.strip_prefix(name).is_some_and(|rest| rest.starts_with(']')))
}

fn is_other(first: char, rest: &str) -> bool {
    OTHERS.iter().any(|mark| mark.strip_prefix(first).is_some_and(|mark| rest.starts_with(mark)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_all_model_families_are_found_and_other_text_is_not() {
        let marks = [
            "<|im_start|>",
            "<\u{ff5c}Assistant\u{ff5c}>",
            "<start_of_turn>",
            "</s>",
            "[INST]",
            "[/INST]",
            "[/SYSTEM_PROMPT]",
            "[gMASK]",
            "[|assistant|]",
            "[UNUSED_TOKEN_146]",
            "]~b]system",
            "[e~[",
        ];
        let talk = ["< 3", "<3", "<", "[", "[inst", "[INSTALL]", "[x]", "[link](https://example.org)", "]", "] ~", "[/"];

        let begins = |text: &str| {
            let mut rest = text.chars();
            rest.next().is_some_and(|first| begins_mark(first, rest.as_str()))
        };
        assert_eq!(marks.map(begins), [true; 12]);
        assert_eq!(talk.map(begins), [false; 11]);
    }
}

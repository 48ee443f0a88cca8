//! The markers of models: those that separate system, user and assistant in a model's input, and those that a model writes around
//! its thoughts.
//!
//! People's text must not contain a marker, because a tokenising server may treat a marker inside a message as its own. In
//! prompts, the first character of each marker is therefore escaped (`prompt/data.rs`). In descriptions of companions, it is
//! replaced. A model's answer may contain markers, because not every server removes them (`raw_answer.rs`). A new family of
//! models needs an entry here.

use std::sync::LazyLock;

use super::lookalike::shape;
use super::text::is_invisible;
use super::trimmed::Trimmed;

/// The characters after `<` in a tag or a marker. Any letter is one, too (`<think>`, `<start_of_turn>` of Gemma, `<s>` and
/// `<<SYS>>` of Llama 2).
///
/// * `/`, `!`, `?`: tags of HTML and XML, and the ends of others (HTML Standard, 13.2.5.6, tag open state).
/// * `|`: ChatML and Qwen (`<|im_start|>`), Llama 3 (`<|start_header_id|>`), Phi, GLM, Granite, gpt-oss.
/// * U+FF5C: DeepSeek and Hunyuan (`<｜Assistant｜>`; `tokenizer_config.json` of DeepSeek-V3).
const AFTER_ANGLE: [char; 5] = ['/', '!', '?', '|', '\u{ff5c}'];

/// The names between `[` and `]`, with or without a leading `/`.
///
/// * Mistral: `SpecialTokens` in `mistral_common/tokens/tokenizers/base.py` of mistral-common, and `[INST]` of Llama 2.
/// * GLM and BERT: `gMASK` to `UNK` (`added_tokens` of their `tokenizer_config.json`).
const BRACKETED: [&str; 32] = [
    "EOS",
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

/// The texts after `[` in a marker, regardless of the rest.
///
/// * `|`: EXAONE (`[|assistant|]`; `tokenizer_config.json` of EXAONE-3.5).
/// * `UNUSED_TOKEN_`: InternLM2 (`[UNUSED_TOKEN_146]`; `tokenizer_config.json` of InternLM2).
const AFTER_BRACKET: [&str; 2] = ["|", "UNUSED_TOKEN_"];

/// Markers of other shapes, each up to the character that identifies it.
///
/// * MiniMax M2: `]~!b[`, `]~b]` and `[e~[` (`chat_template.jinja` of MiniMax-M2), and `]<]` of MiniMax-Text-01.
const OTHERS: [&str; 4] = ["]~!b[", "]~b]", "[e~[", "]<]"];

/// The delimiters around the name of a marker that begins or ends a turn or a document: `<|im_end|>`. Every name counts, except
/// those in [`PAIRS`].
pub(super) const AROUND_NAMES: [(&str, &str); 3] = [("<|", "|>"), ("<\u{ff5c}", "\u{ff5c}>"), ("[|", "|]")];

/// Markers of other shapes that begin or end a turn or a document. Before the words of an answer, they belong to its header.
/// After the words, they end the answer or begin another author's turn.
pub(super) const TURNS: [&str; 21] = [
    "<s>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<|turn>",
    "<turn|>",
    "<bos>",
    "<eos>",
    "<seed:bos>",
    "<seed:eos>",
    "</s>",
    "<sop>",
    "<pad>",
    "<<SYS>>",
    "</assistant>",
    "[INST]",
    "[/INST]",
    "[EOS]",
    "[gMASK]",
    "[e~[",
    "]~!b[",
    "]~b]",
];

/// The kind of text between tags such as `<think>` and `</think>` (with spaces or attributes, in any case), by the name of the
/// tag.
pub(super) const TAGS: [(&str, Trimmed); 29] = [
    ("think", Trimmed::Thought),
    ("thinking", Trimmed::Thought),
    ("thought", Trimmed::Thought),
    ("thoughts", Trimmed::Thought),
    ("thought_process", Trimmed::Thought),
    ("reasoning", Trimmed::Thought),
    ("reasoning_scratchpad", Trimmed::Thought),
    ("reflection", Trimmed::Thought),
    ("scratchpad", Trimmed::Thought),
    ("inner_monologue", Trimmed::Thought),
    ("antthinking", Trimmed::Thought),
    ("antml:thinking", Trimmed::Thought),
    ("seed:think", Trimmed::Thought),
    ("mm:think", Trimmed::Thought),
    ("analysis", Trimmed::Thought),
    ("internal", Trimmed::Thought),
    // Parts of our own prompts.
    ("your-reason-to-speak", Trimmed::Thought),
    ("earlier-messages", Trimmed::Thought),
    ("messages", Trimmed::Thought),
    ("tool_call", Trimmed::ToolCall),
    ("tool_calls", Trimmed::ToolCall),
    ("tool_response", Trimmed::ToolCall),
    ("tool_code", Trimmed::ToolCall),
    ("function_call", Trimmed::ToolCall),
    ("function_calls", Trimmed::ToolCall),
    ("invoke", Trimmed::ToolCall),
    // The text between these tags is kept if the opening tag begins the answer.
    ("answer", Trimmed::Form),
    ("final_answer", Trimmed::Form),
    ("response", Trimmed::Form),
];

/// The beginnings of parts of our own prompts. The text after them is dropped, whether or not the part is closed.
pub(super) const PROMPT_PARTS: [&str; 3] = ["<your-reason-to-speak", "<earlier-messages", "<messages"];

/// HTML that may also close other text than thoughts.
pub(super) const END_OF_DETAILS: &str = "</details>";

/// Pairs of markers of other shapes, and the kind of text between them. Without a closing marker, that text reaches to the end of
/// the answer.
pub(super) const PAIRS: [(&str, &str, Trimmed); 19] = [
    // Mistral; Kimi; OpenThinker; Command A; Apertus; Gemma 4 (two); openPangu.
    ("[THINK]", "[/THINK]", Trimmed::Thought),
    ("\u{25c1}think\u{25b7}", "\u{25c1}/think\u{25b7}", Trimmed::Thought),
    ("<|begin_of_thought|>", "<|end_of_thought|>", Trimmed::Thought),
    ("<|START_THINKING|>", "<|END_THINKING|>", Trimmed::Thought),
    ("<|inner_prefix|>", "<|inner_suffix|>", Trimmed::Thought),
    ("<|channel>", "<channel|>", Trimmed::Thought),
    ("<|think|>", "<|/think|>", Trimmed::Thought),
    ("[unused16]", "[unused17]", Trimmed::Thought),
    // Thoughts as programs convert them for folded display; escaped tags.
    ("<details type=\"reasoning\"", END_OF_DETAILS, Trimmed::Thought),
    ("&lt;think&gt;", "&lt;/think&gt;", Trimmed::Thought),
    ("&lt;thinking&gt;", "&lt;/thinking&gt;", Trimmed::Thought),
    // Gemma 4; Kimi K2; DeepSeek; LFM2; DeepSeek again; Mistral; Llama 3 and Granite. The last three have no closing marker.
    ("<|tool_call>", "<tool_call|>", Trimmed::ToolCall),
    ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", Trimmed::ToolCall),
    ("<\u{ff5c}tool\u{2581}calls\u{2581}begin\u{ff5c}>", "<\u{ff5c}tool\u{2581}calls\u{2581}end\u{ff5c}>", Trimmed::ToolCall),
    ("<|tool_call_start|>", "<|tool_call_end|>", Trimmed::ToolCall),
    ("<\u{ff5c}DSML\u{ff5c}function_calls>", "</\u{ff5c}DSML\u{ff5c}function_calls>", Trimmed::ToolCall),
    ("[TOOL_CALLS]", "", Trimmed::ToolCall),
    ("<|python_tag|>", "", Trimmed::ToolCall),
    ("<|tool_call|>", "", Trimmed::ToolCall),
];

/// The names of the tagged parts of our own prompts.
const PARTS: [&str; 11] = [
    "about-themselves",
    "companion",
    "description",
    "earlier-messages",
    "lore",
    "messages",
    "older-messages",
    "room-instructions",
    "room-note",
    "summary",
    "your-reason-to-speak",
];

/// Characters that look like `<` (Unicode's confusables, and its compatibility forms). A model may read them as one.
const LIKE_ANGLE: [char; 13] = [
    '\u{2c2}',
    '\u{1438}',
    '\u{16b2}',
    '\u{2039}',
    '\u{2329}',
    '\u{2770}',
    '\u{276c}',
    '\u{276e}',
    '\u{27e8}',
    '\u{3008}',
    '\u{fe64}',
    '\u{ff1c}',
    '\u{1d236}',
];
/// The HTML entities of `<`, without the `&`.
const ANGLE_ENTITIES: [&str; 5] = ["lt;", "LT;", "#60;", "#x3c;", "#x3C;"];
/// The maximum number of characters in which the name of a tag is searched for.
const MAX_TAG_CHARS: usize = 80;

/// Whether a marker that separates turns, or a tag of our own prompts, begins with this character and continues with this text,
/// also with look-alike characters. Other tags are allowed, for authors of instructions.
pub(super) fn begins_separator(first: char, rest: &str) -> bool {
    match first {
        '<' => rest.starts_with(['|', '\u{ff5c}']) || is_separating_tag(rest),
        '&' => ANGLE_ENTITIES.iter().any(|entity| rest.strip_prefix(entity).is_some_and(|rest| begins_separator('<', rest))),
        '[' | ']' => begins_mark(first, rest),
        first => !first.is_ascii() && LIKE_ANGLE.contains(&first) && begins_separator('<', rest),
    }
}

/// Whether the text after `<` is the name of a tag of our prompts, or of a model's tag that separates turns.
fn is_separating_tag(rest: &str) -> bool {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let marks = TURNS.iter().filter_map(|mark| mark.strip_prefix('<')?.strip_suffix('>'));
        let marks = marks
            .map(|name| name.trim_matches(['/', '<', '>']))
            .chain(["s", "unk"])
            .filter(|name| !name.starts_with(['|', '\u{ff5c}']));
        marks.chain(PARTS).map(shape).collect()
    });
    let is_slash = |c: char| matches!(c, '/' | '\u{2044}' | '\u{2215}' | '\u{ff0f}');
    let is_before = |c: &char| is_slash(*c) || *c == '<' || LIKE_ANGLE.contains(c) || c.is_whitespace() || is_invisible(*c);
    let is_in_name = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '|') || !c.is_ascii();
    let begin: String = rest.chars().take(MAX_TAG_CHARS).skip_while(is_before).take_while(is_in_name).collect();
    if begin.is_empty() {
        return false;
    }
    let begin = shape(&begin);
    let ends = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || matches!(next, '-' | '_'));
    NAMES.iter().any(|name| begin.strip_prefix(&**name).is_some_and(ends))
}

/// Whether a marker begins with this character and continues with this text.
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
    fn what_separates_turns_is_found_also_if_it_only_looks_so() {
        let separating = [
            "<|im_end|>",
            "</s>",
            "<s>",
            "<end_of_turn>",
            "<start_of_turn>user",
            "<</SYS>>",
            "[/INST]",
            "</companion>",
            "</ Companion\n>",
            "<companion id=\"aria\">",
            "<companion\u{a0}id=\"aria\">",
            "</companion:x>",
            "\u{ff1c}/companion\u{ff1e}",
            "<\u{200b}/c\u{43e}mpanion>",
            "&#60;/companion>",
            "&lt;messages&gt;",
            "\u{3008}\u{ff0f}earlier-messages\u{3009}",
        ];
        let others = [
            "<rules>",
            "</style>",
            "< 3",
            "<3",
            "<S1>",
            "<companionable>",
            "1 < 2",
            "&amp;",
            "a & b",
            "\u{3008}book\u{3009}",
            "[x](y)",
        ];

        let begins = |text: &str| {
            let mut rest = text.chars();
            rest.next().is_some_and(|first| begins_separator(first, rest.as_str()))
        };
        assert_eq!(separating.map(begins), [true; 17]);
        assert_eq!(others.map(begins), [false; 11]);
    }

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
        // Thoughts in other brackets separate nothing in a prompt. Of `<<SYS>>`, the second bracket begins a mark.
        let others = ["\u{25c1}", "[unused", "<<", "&lt;"];
        let pairs = PAIRS.iter().flat_map(|(open, close, _)| [*open, *close]);
        let of_answers = TURNS.into_iter().chain(AROUND_NAMES.map(|(open, _)| open)).chain(pairs).filter(|mark| !mark.is_empty());
        for mark in of_answers.filter(|mark| !others.iter().any(|other| mark.starts_with(other))) {
            assert!(begins(mark), "{mark}");
        }
    }
}

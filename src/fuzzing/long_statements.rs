//! Targets for long statements: for splitting them, and for what is spoken of them.

use super::rules::{text, texts};
use crate::domain::split;
use crate::domain::voice::spoken_text::spoken_text;

pub(super) fn statements() -> Vec<Vec<u8>> {
    texts(&[
        "One sentence. And another! A third?\n\nA paragraph, then.\n```rust\nlet a = 1;\nlet b = 2;\n```\nAnd so on.",
        "@Ana, look: :wave: [a](https://b.c) <@1001> @everyone\n# A heading\n> quoted\n-# small",
        "一文目です。二文目です！三文目？👩‍🚀👍🏽 e\u{301}e\u{301}",
        "```\nnever closed\n\n\nlines\n",
    ])
}

pub(super) fn split(bytes: &[u8]) {
    let all = text(bytes);

    for limit in [0, 32, 40 + bytes.len() % 200, 2_000] {
        let parts = split::split(&all, limit);

        let units = |text: &str| text.encode_utf16().count();
        let limit = limit.max(32);
        assert!(parts.iter().all(|part| units(part) <= limit && !part.trim().is_empty()), "a part is empty or exceeds the limit");
        // Only fences and marks are added, so the number of parts is bounded.
        let most = units(&all) / (limit / 4) + all.matches(['\n', '`', '~']).count() + 2;
        assert!(parts.len() <= most, "{} parts of {} units", parts.len(), units(&all));
        if !all.contains(['`', '~', '*', '_', '|']) {
            let words = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            assert_eq!(words(&parts.concat()), words(&all), "text is lost or changed");
        }
    }
}

pub(super) fn spoken(bytes: &[u8]) {
    let all = text(bytes);
    let spoken = spoken_text(&all);

    assert_eq!(spoken_text(&spoken), spoken, "markup is left of {all:?}");
    assert!(spoken.len() <= all.len(), "{} bytes became {}", all.len(), spoken.len());
}

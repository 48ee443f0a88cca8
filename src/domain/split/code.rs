//! Finds the fenced code blocks of a text.

use super::units;

/// A fenced code block, in bytes of its text.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// The start of its opening line.
    pub(super) start: usize,
    /// The start of its code.
    pub(super) body_start: usize,
    /// The end of its code: the start of the closing line, or the end of the text.
    pub(super) body_end: usize,
    /// The end of its closing line, without the line feed.
    pub(super) end: usize,
    /// The block has no closing line.
    pub(super) is_unclosed: bool,
    fence: String,
    language: String,
}

impl Block {
    /// Whether a position is inside its code. A part that ends there must close the block, and the next part must open it again.
    pub(super) fn holds(&self, at: usize) -> bool {
        self.body_start <= at && at < self.body_end
    }

    /// The text that opens the block again.
    pub(super) fn opening(&self) -> String {
        format!("{}{}\n", self.fence, self.language)
    }

    /// The text that closes the block.
    pub(super) fn closing(&self) -> String {
        format!("\n{}", self.fence)
    }
}

/// The blocks of a text. A block whose opening line takes more than a quarter of the limit is too long to repeat, and counts as text.
pub(super) fn blocks(text: &str, limit: usize) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<Block> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let words = line.trim();
        let fence = words.find(|c| c != '`').unwrap_or(words.len());
        let next = at + line.len();
        match &mut open {
            Some(block) if fence >= block.fence.len() && words.len() == fence => {
                block.body_end = at;
                block.end = at + line.trim_end_matches('\n').len();
                block.is_unclosed = false;
                blocks.extend(open.take());
            }
            None if fence >= 3 && !words[fence..].contains('`') => {
                open = Some(Block {
                    start: at,
                    body_start: next,
                    body_end: text.len(),
                    end: text.len(),
                    is_unclosed: true,
                    fence: words[..fence].to_owned(),
                    language: words[fence..].trim().to_owned(),
                });
            }
            _ => {}
        }
        at = next;
    }
    blocks.extend(open);
    blocks.retain(|block| units(&text[block.start..block.body_start]) * 4 <= limit);
    blocks
}

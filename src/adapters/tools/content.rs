//! Makes a bounded text of the result of a tool. Its words are untrusted; pictures, sound and links in it are only named.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use crate::domain::text::seen;
use crate::domain::tools::MOST_ANSWER;
use crate::ports::tools::Answer;

/// A text that grows up to [`MOST_ANSWER`] bytes.
#[derive(Default)]
pub(crate) struct Text {
    text: String,
    /// The size of everything that was added.
    bytes: u64,
    is_full: bool,
}

impl Text {
    /// Adds a paragraph, without control characters and invisible ones.
    pub(crate) fn add(&mut self, paragraph: &str) {
        self.bytes += paragraph.len() as u64;
        let visible = seen(paragraph).map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { ' ' } else { c });
        let begin = (!self.text.is_empty()).then_some('\n');
        for c in begin.into_iter().chain(visible) {
            self.is_full |= self.text.len() + c.len_utf8() > MOST_ANSWER;
            if self.is_full {
                return;
            }
            self.text.push(c);
        }
    }

    pub(crate) fn answer(self, is_error: bool) -> Answer {
        Answer { text: self.text, bytes: self.bytes, is_error }
    }
}

/// The answer with a result.
pub(crate) fn answer(result: &CallToolResult) -> Answer {
    let mut text = Text::default();
    for block in &result.content {
        match block {
            ContentBlock::Text(block) => text.add(&block.text),
            ContentBlock::Resource(block) => match &block.resource {
                ResourceContents::TextResourceContents { text: contents, .. } => text.add(contents),
                _ => text.add("[a file]"),
            },
            ContentBlock::Image(block) => named(&mut text, "[a picture]", block.data.len()),
            ContentBlock::Audio(block) => named(&mut text, "[a sound]", block.data.len()),
            ContentBlock::ResourceLink(_) => text.add("[a link]"),
            _ => text.add("[other content]"),
        }
    }
    // Servers repeat structured results as text, but not all do.
    if let (true, Some(structured)) = (result.content.is_empty(), &result.structured_content) {
        text.add(&structured.to_string());
    }
    text.answer(result.is_error.unwrap_or_default())
}

fn named(text: &mut Text, name: &str, bytes: usize) {
    text.add(name);
    text.bytes += bytes as u64;
}

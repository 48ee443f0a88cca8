//! `/tertulia recall`: searches the messages of a channel.

use super::interaction::ChannelContext;
use super::quoting::{name, verbatim};
use super::text::{Text, say};
use super::words::when;
use super::{Answer, CommandHandler};
use crate::domain::text::first;
use crate::ports::backend::messages::{Found, HistoryMessage, SearchQuery};

/// The limit of quoted messages.
const MOST_FOUND: usize = 8;
/// The longest quotation, in characters.
const LONGEST_QUOTED: usize = 180;

impl CommandHandler {
    /// Searches only this channel, and only if the user may read its history.
    pub(super) async fn recall(&self, words: &str, here: &ChannelContext) -> Result<Text, Answer> {
        if !here.user_may_read_history() {
            return Ok(say!(
                "You cannot read this channel's earlier messages (*Read Message History*), so nothing is looked up in them."
            ));
        }
        let Some(room) = self.room(here).await? else {
            return Ok(say!("Nothing is remembered here. `/tertulia status` shows who is here."));
        };
        let query = SearchQuery { words: words.to_owned(), limit: MOST_FOUND };
        Ok(describe(words, &self.backend.records.search(&room.id, query).await?))
    }
}

fn describe(words: &str, found: &Found) -> Text {
    let words = verbatim(first(words, LONGEST_QUOTED));
    let heading = match (found.messages.len(), found.count) {
        (0, _) => return say!("Nothing that was said here has to do with “{words}”.", words = words),
        (shown, count) if shown < count => {
            say!(
                "**What was said here about “{words}”**, the best {shown} of {count}",
                words = words,
                shown = shown,
                count = count
            )
        }
        _ => say!("**What was said here about “{words}”**, the best first", words = words),
    };
    Text::lines([heading].into_iter().chain(found.messages.iter().map(line)))
}

fn line(message: &HistoryMessage) -> Text {
    let who = name(message.name.as_ref().unwrap_or(&message.from));
    Text::Plain(format!("{} {who}: {}", when(message.at.0), verbatim(first(&message.text, LONGEST_QUOTED)))).bullet()
}

//! Recognises messages of people that PluralKit or Tupperbox deletes and posts again, under the name of another person or character, by a webhook.
//!
//! The post does not name its author. Its text is that of the deleted message without the tags before and after it, in the same channel, shortly after
//! it. If messages of several authors match, the author is unknown.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;

use super::snowflake::Snowflake;
use super::wire::Message;

/// The applications PluralKit and Tupperbox, as in the links by which they are invited.
const APPLICATIONS: [u64; 2] = [466_378_653_216_014_359, 431_544_605_209_788_416];
/// The longest time between a message and its repost.
const WITHIN: Duration = Duration::from_secs(60);
/// The longest tags, in characters.
const LONGEST_TAGS: usize = 40;
/// The number of messages that are kept for comparison.
const MOST: usize = 4_096;

/// The newest messages of people.
#[derive(Default)]
pub(super) struct Proxies(Mutex<VecDeque<Original>>);

struct Original {
    id: Snowflake,
    channel: Snowflake,
    author: Snowflake,
    text: String,
}

impl Proxies {
    /// The author of a repost. `None` for all other messages, which are kept for comparison if they are by people.
    pub(super) fn author_of(&self, channel: Snowflake, message: &Message) -> Option<Snowflake> {
        let text = message.content().trim();
        let mut newest = self.0.lock();
        while newest.front().is_some_and(|oldest| message.id.time().since(oldest.id.time()) > WITHIN) {
            newest.pop_front();
        }
        let application = message.webhook_id.and(message.application_id);
        if application.is_some_and(|application| APPLICATIONS.contains(&application.get())) {
            let is_original = |original: &&Original| {
                let tags = original.text.chars().count().saturating_sub(text.chars().count());
                original.channel == channel && original.text.contains(text) && tags <= LONGEST_TAGS
            };
            let authors: BTreeSet<Snowflake> =
                newest.iter().filter(is_original).map(|original| original.author).filter(|_| !text.is_empty()).collect();
            let author = authors.first().copied().filter(|_| authors.len() == 1)?;
            let place = newest.iter().rposition(|original| original.author == author && is_original(&original))?;
            return newest.remove(place).map(|original| original.author);
        }
        if message.webhook_id.is_none() && message.author.bot != Some(true) && !text.is_empty() {
            newest.push_back(Original { id: message.id, channel, author: message.author.id, text: text.to_owned() });
            if newest.len() > MOST {
                newest.pop_front();
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(id: u64, seconds: u64, author: u64, text: &str, application: Option<u64>) -> Message {
        let id = ((seconds * 1_000) << 22) + id;
        let mut message = json!({
            "id": id.to_string(), "channel_id": "3", "type": 0, "content": text,
            "author": { "id": author.to_string(), "username": "x" },
        });
        if let Some(application) = application {
            message["webhook_id"] = json!("77");
            message["application_id"] = json!(application.to_string());
        }
        serde_json::from_str(&message.to_string()).unwrap()
    }

    #[test]
    fn a_repost_is_by_the_author_of_the_newest_message_that_contains_its_text() {
        let (proxies, here, there) = (Proxies::default(), Snowflake::new(3).unwrap(), Snowflake::new(4).unwrap());
        let [pluralkit, tupperbox] = APPLICATIONS;
        let say = |id, seconds, author, text: &str| proxies.author_of(here, &message(id, seconds, author, text, None));
        let post = |channel, seconds, text: &str, application| {
            proxies.author_of(channel, &message(99, seconds, 77, text, Some(application))).map(Snowflake::get)
        };

        assert_eq!(say(1, 10, 7, "L: hello Aria"), None);
        say(2, 11, 8, "something else");
        assert_eq!(post(there, 12, "hello Aria", pluralkit), None, "in another channel");
        assert_eq!(post(here, 12, "hello Aria", 5), None, "by another application");
        assert_eq!(post(here, 12, "", pluralkit), None, "without a text");
        assert_eq!(post(here, 12, "hello Aria", pluralkit), Some(7));
        assert_eq!(post(here, 12, "hello Aria", pluralkit), None, "each message is posted again once");
        assert_eq!(post(here, 71, "something else", tupperbox), Some(8));
        say(3, 100, 7, "L: ok");
        say(4, 101, 8, "ok, looking at that");
        assert_eq!(post(here, 102, "ok", pluralkit), None, "by either of two");
        say(5, 110, 8, &format!("this {}", "and that ".repeat(9)));
        assert_eq!(post(here, 111, "this", pluralkit), None, "there are no tags of that length");
        say(6, 120, 7, "L: late");
        assert_eq!(post(here, 181, "late", tupperbox), None, "too late");
    }
}

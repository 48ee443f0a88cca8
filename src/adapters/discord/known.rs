//! What is known of channels without asking: fed by what is heard, and by what was asked for once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::said::{Around, Emoji, Present};
use super::snowflake::Snowflake;

/// What is known of channels. Nothing in it has to be: what is missing is asked for, or done without.
#[derive(Debug, Default)]
pub struct Known(Mutex<BTreeMap<Snowflake, OfChannel>>);

/// What is known of one channel or thread.
#[derive(Clone, Debug, Default)]
struct OfChannel {
    newest: Option<Snowflake>,
    place: Option<Place>,
    company: Arc<Company>,
}

/// Where a channel's webhooks belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The channel itself, or the one that a thread is in.
    pub root: Snowflake,
    /// The thread, if it is one.
    pub thread: Option<Snowflake>,
}

/// Whom and what words in a channel may point at ([`Around`], with what it borrows).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Company {
    /// People who may be called, by id and shown name.
    pub people: Vec<(Snowflake, String)>,
    /// Emojis of the guild: id, name, whether it moves.
    pub emojis: Vec<(Snowflake, String, bool)>,
}

impl Known {
    /// A message was seen in a channel, or is told to be its last one.
    pub fn saw(&self, channel: Snowflake, message: Snowflake) {
        let mut known = self.lock();
        let of_channel = known.entry(channel).or_default();
        of_channel.newest = of_channel.newest.max(Some(message));
    }

    /// The newest message that was seen in a channel.
    pub fn newest(&self, channel: Snowflake) -> Option<Snowflake> {
        self.lock().get(&channel)?.newest
    }

    /// A channel is a thread in another, or a channel of its own (none).
    pub fn is_in(&self, channel: Snowflake, parent: Option<Snowflake>) -> Place {
        let place = Place { root: parent.unwrap_or(channel), thread: parent.map(|_| channel) };
        self.lock().entry(channel).or_default().place = Some(place);
        place
    }

    /// Where a channel's webhooks belong, if that was told.
    pub fn place(&self, channel: Snowflake) -> Option<Place> {
        self.lock().get(&channel)?.place
    }

    /// These may be called and shown in a channel from now on.
    pub fn gather(&self, channel: Snowflake, company: Company) {
        self.lock().entry(channel).or_default().company = Arc::new(company);
    }

    /// Whom and what words in a channel may point at; nothing if nothing was told.
    pub fn company(&self, channel: Snowflake) -> Arc<Company> {
        self.lock().get(&channel).map(|known| Arc::clone(&known.company)).unwrap_or_default()
    }

    /// A channel is gone.
    pub fn forget(&self, channel: Snowflake) {
        self.lock().remove(&channel);
    }

    // Nothing in here is half done when somebody panics.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Snowflake, OfChannel>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Company {
    /// Does something with it as [`super::said`] wants it. With `calls` false nobody may be called.
    pub fn with<T>(&self, calls: bool, act: impl FnOnce(&Around<'_>) -> T) -> T {
        let people: Vec<_> = self.people.iter().filter(|_| calls).map(|(id, name)| Present { id: *id, name }).collect();
        let emojis: Vec<_> =
            self.emojis.iter().map(|(id, name, animated)| Emoji { id: *id, name, animated: *animated }).collect();
        act(&Around { people: &people, emojis: &emojis })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_message_is_the_newest_whatever_comes_late() {
        let (known, channel) = (Known::default(), id(1));

        known.saw(channel, id(20));
        known.saw(channel, id(10));

        assert_eq!(known.newest(channel), Some(id(20)));
        assert_eq!(known.newest(id(2)), None);
    }

    #[test]
    fn a_thread_speaks_through_its_parents_webhook() {
        let known = Known::default();

        assert_eq!(known.place(id(1)), None);
        known.is_in(id(1), None);
        known.is_in(id(2), Some(id(1)));

        assert_eq!(known.place(id(1)), Some(Place { root: id(1), thread: None }));
        assert_eq!(known.place(id(2)), Some(Place { root: id(1), thread: Some(id(2)) }));
        known.forget(id(2));
        assert_eq!(known.place(id(2)), None);
    }

    fn id(number: u64) -> Snowflake {
        Snowflake::new(number).unwrap()
    }
}

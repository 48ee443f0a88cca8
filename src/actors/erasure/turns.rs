//! Whose turn it is to change the words of a channel: one after the other, and nobody waits for another channel's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as Waited, OwnedMutexGuard};

use crate::journal::channel_key::ChannelKey;

/// Whose turn it is to change the words of a channel. Cheap to clone; all clones are one. Keeps nothing of a channel in which nobody has the
/// turn or waits for it.
#[derive(Clone, Debug, Default)]
pub struct Turns(Arc<Mutex<Lines>>);

/// Of each channel in which somebody has the turn, or waits for it, the line.
type Lines = HashMap<ChannelKey, Arc<Waited<()>>>;

/// The turn to change the words of a channel, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    // In this order: who leaves the line has given the turn back.
    _held: OwnedMutexGuard<()>,
    _in_line: InLine,
}

/// Somebody's place in a line: whoever has the turn, or waits.
#[derive(Debug)]
struct InLine {
    turns: Turns,
    channel_key: ChannelKey,
    line: Option<Arc<Waited<()>>>,
}

impl Turns {
    /// Waits for the turn to change the words of a channel, and has it until what is returned is dropped.
    pub async fn of(&self, channel_key: &ChannelKey) -> Turn {
        let line = self.lines().entry(channel_key.clone()).or_default().clone();
        let in_line = InLine { turns: self.clone(), channel_key: channel_key.clone(), line: Some(line.clone()) };
        Turn { _held: line.lock_owned().await, _in_line: in_line }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        let mut lines = self.turns.lines();
        self.line = None;
        // That of the list: whoever else is in line has one, too, and joins or leaves it only while the list is held.
        if lines.get(&self.channel_key).is_some_and(|line| Arc::strong_count(line) == 1) {
            lines.remove(&self.channel_key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::task::unconstrained;

    use super::*;

    fn channel(number: u32) -> ChannelKey {
        ChannelKey::new(&"home".into(), &format!("console:{number}").as_str().into())
    }

    #[tokio::test]
    async fn a_change_of_words_waits_for_nobody_elses_channel() {
        let turns = Turns::default();
        let _held = turns.of(&channel(0)).await;

        let others = (1..1_000).map(channel);
        let held_up = others.filter(|other| unconstrained(turns.of(other)).now_or_never().is_none()).count();

        assert_eq!(held_up, 0);
    }

    #[tokio::test]
    async fn of_one_channel_one_after_the_other_has_the_turn_and_nothing_is_kept_afterwards() {
        let (turns, lobby) = (Turns::default(), channel(0));
        let first = turns.of(&lobby).await;
        let (mut second, mut third) = (Box::pin(turns.of(&lobby)), Box::pin(turns.of(&lobby)));
        assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none());
        assert_eq!(turns.lines().len(), 1);

        drop(first);
        let second = second.now_or_never().expect("it has the turn");
        assert!((&mut third).now_or_never().is_none());
        assert!(turns.of(&lobby).now_or_never().is_none(), "whoever comes later waits longer");
        drop(second);
        let third = third.now_or_never().expect("it has the turn");
        drop(third);

        assert_eq!(turns.lines().len(), 0);
    }

    #[tokio::test]
    async fn whoever_stops_waiting_leaves_nothing_behind() {
        let (turns, lobby) = (Turns::default(), channel(0));
        let held = turns.of(&lobby).await;
        let mut waiting = Box::pin(turns.of(&lobby));
        assert!((&mut waiting).now_or_never().is_none());

        drop(held);
        drop(waiting);

        assert_eq!(turns.lines().len(), 0);
        assert!(turns.of(&lobby).now_or_never().is_some());
    }
}

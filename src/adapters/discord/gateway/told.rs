//! How the connections stand, and what of that an operator is told.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::domain::moment::Moment;
use crate::ports::gateway::{Condition, Disconnected, Shard};
use crate::telemetry::instruments::Instruments;
use crate::telemetry::instruments::kinds::Counted;

/// So many connections are told of one by one.
const MOST_TOLD: usize = 3;

/// What a connection is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It begins, or begins anew.
    Connecting,
    /// It waits for a time: why, in plain words.
    Waiting(String),
    /// It hears.
    Connected,
    /// It ended: what a person has to do.
    Stopped(String),
}

impl Doing {
    /// A label.
    const fn as_str(&self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Waiting(_) => "waiting",
            Self::Connected => "connected",
            Self::Stopped(_) => "stopped",
        }
    }
}

/// How all connections of a process stand.
#[derive(Debug, Default)]
pub struct Standing {
    shards: Mutex<BTreeMap<u32, Stands>>,
    /// Why Discord does not say how many connections there are to be, if it does not.
    unasked: Mutex<Option<Disconnected>>,
}

#[derive(Debug)]
struct Stands {
    of: u32,
    doing: Doing,
    _counted: Counted,
}

impl Standing {
    /// A connection does something else now.
    pub fn set(&self, shard: Shard, doing: Doing, instruments: &Instruments) {
        let mut shards = self.lock();
        // With another number of connections none of the earlier ones is left.
        shards.retain(|_, stands| stands.of == shard.of.get());
        if shards.get(&shard.number).is_some_and(|stands| stands.doing == doing) {
            return;
        }
        let counted = instruments.discord_connections.one([doing.as_str()]);
        shards.insert(shard.number, Stands { of: shard.of.get(), doing, _counted: counted });
    }

    /// Discord said how many connections there are to be, or not.
    pub fn asked(&self, unasked: Option<Disconnected>) {
        *self.unasked.lock().unwrap_or_else(PoisonError::into_inner) = unasked;
    }

    /// Whether it stopped for good, as a whole or some connection, until a person does something.
    pub fn has_stopped(&self) -> bool {
        let is_refused = matches!(*self.unasked.lock().unwrap_or_else(PoisonError::into_inner), Some(Disconnected::Never(_)));
        is_refused || self.lock().values().any(|stands| matches!(stands.doing, Doing::Stopped(_)))
    }

    /// A connection is not lived any more. One that stopped for good is told on.
    pub fn leave(&self, shard: Shard) {
        let mut shards = self.lock();
        if shards.get(&shard.number).is_some_and(|stands| !matches!(stands.doing, Doing::Stopped(_))) {
            shards.remove(&shard.number);
        }
    }

    /// How they stand, with what else is to be said.
    pub fn told(&self, more: Option<&str>) -> Condition {
        let shards = self.lock();
        let of = shards.values().next().map_or(0, |stands| stands.of);
        let connected = shards.values().filter(|stands| stands.doing == Doing::Connected).count();
        let ready = of > 0 && u32::try_from(connected) == Ok(of);
        let count = match of {
            0 => "not connected yet".to_owned(),
            1 => format!("{connected} of 1 connection"),
            of => format!("{connected} of {of} connections"),
        };
        let mut said = vec![count];
        let mut reasons: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (number, stands) in &*shards {
            if let Doing::Waiting(why) | Doing::Stopped(why) = &stands.doing {
                reasons.entry(why).or_default().push(*number);
            }
        }
        // Most often one reason holds for all.
        said.extend(reasons.iter().take(MOST_TOLD).map(|(why, numbers)| match numbers.as_slice() {
            _ if numbers.len() == of as usize => (*why).to_owned(),
            [number] => format!("connection {number}: {why}"),
            numbers => format!("{} of them: {why}", numbers.len()),
        }));
        if of == 0 {
            let unasked = self.unasked.lock().unwrap_or_else(PoisonError::into_inner);
            said.extend(unasked.as_ref().map(ToString::to_string));
        }
        said.extend(more.map(str::to_owned));
        Condition { ready, detail: said.join("; "), holds_up_server: false }
    }

    // It holds plain values: whoever panics in between leaves them whole.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Stands>> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A moment as people read it, to the second.
pub fn when(moment: Moment) -> String {
    let micros = i64::try_from(moment.as_micros()).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn how_they_stand_is_told_in_plain_words() {
        let standing = Standing::default();
        assert_eq!(standing.told(None), condition(false, "not connected yet"));

        set(&standing, 0, Doing::Connected);
        set(&standing, 1, Doing::Waiting("Discord cannot be reached".to_owned()));
        assert_eq!(standing.told(None), condition(false, "1 of 2 connections; connection 1: Discord cannot be reached"));

        set(&standing, 0, Doing::Waiting("Discord cannot be reached".to_owned()));
        assert_eq!(standing.told(None), condition(false, "0 of 2 connections; Discord cannot be reached"));

        set(&standing, 0, Doing::Connected);
        set(&standing, 1, Doing::Connected);
        assert_eq!(standing.told(Some("half deaf")), condition(true, "2 of 2 connections; half deaf"));
    }

    #[test]
    fn what_stopped_for_good_is_told_on_and_what_was_left_is_not() {
        let standing = Standing::default();
        set(&standing, 0, Doing::Connected);
        set(&standing, 1, Doing::Stopped("bad token".to_owned()));

        standing.leave(shard(0));
        standing.leave(shard(1));

        assert_eq!(standing.told(None), condition(false, "0 of 2 connections; connection 1: bad token"));
    }

    #[test]
    fn what_was_refused_before_any_connection_is_told_until_it_is_not() {
        let standing = Standing::default();

        standing.asked(Some(Disconnected::Never("bad token".to_owned())));
        assert_eq!((standing.told(None), standing.has_stopped()), (condition(false, "not connected yet; bad token"), true));
        standing.asked(Some(Disconnected::Later { after: None, detail: "no answer".to_owned() }));
        assert_eq!(
            (standing.told(None), standing.has_stopped()),
            (condition(false, "not connected yet; not now: no answer"), false)
        );
        standing.asked(None);
        assert_eq!((standing.told(None), standing.has_stopped()), (condition(false, "not connected yet"), false));
    }

    #[test]
    fn a_moment_is_told_to_the_second() {
        assert_eq!(when(Moment::from_micros(1_800_000_000_999_999)), "2027-01-15T08:00:00Z");
        assert!(when(Moment::from_micros(u64::MAX)).starts_with("9999-12-3"));
    }

    fn set(standing: &Standing, number: u32, doing: Doing) {
        standing.set(shard(number), doing, &Instruments::noop());
    }

    fn shard(number: u32) -> Shard {
        Shard { number, of: NonZeroU32::new(2).unwrap() }
    }

    fn condition(ready: bool, detail: &str) -> Condition {
        Condition { ready, detail: detail.to_owned(), holds_up_server: false }
    }
}

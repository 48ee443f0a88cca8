//! Lets shards identify: one after the other where Discord wants that, counted over restarts, and never one too many.

mod turns;

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex as Quick, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::sleep;

pub use self::turns::Turn;
use self::turns::Turns;
use super::super::identify::{Announced, Leave, Spent, Stopped};
use super::super::platform::Discord;
use super::super::rest::{Failed, Request};
use super::Times;
use super::frame;
use super::told::when;
use crate::domain::moment::Moment;
use crate::ports::clock::Clock;
use crate::ports::gateway::Disconnected;
use crate::ports::notes::Notes;
use crate::settings::discord::MOST_SHARDS;
use crate::telemetry::instruments::{Instruments, NONE};

/// Where the identifies are kept.
const NOTE: &str = "discord/identifies";
/// What Discord says of its limits is asked for again when it is older than this.
const LASTS: Duration = Duration::from_secs(600);
/// While there are no identifies left, Discord is asked as often whether there are: the count is a new one when the token was reset.
const LOOK_AGAIN: Duration = Duration::from_secs(900);

/// The identifies of all shards of this process.
pub struct Starts {
    discord: Arc<Discord>,
    notes: Arc<dyn Notes>,
    clock: Arc<dyn Clock>,
    instruments: Instruments,
    times: Times,
    books: Mutex<Books>,
    turns: Turns,
    /// Where Discord said that the gateway is: a shard that resumes waits for no answer.
    url: Quick<Option<String>>,
    /// Until when there are none, if that is so.
    exhausted: Quick<Option<Moment>>,
}

#[derive(Default)]
struct Books {
    /// None: not read yet.
    spent: Option<Spent>,
    told: Option<Told>,
}

/// What Discord told.
#[derive(Clone, Debug)]
pub struct Told {
    /// Of the limits.
    pub announced: Announced,
    /// How many connections there should be.
    pub shards: NonZeroU32,
}

/// The answer to `GET /gateway/bot` (Discord's documentation, "Gateway", "Get Gateway Bot").
#[derive(Deserialize)]
pub(super) struct Answer {
    #[serde(default)]
    url: Option<String>,
    shards: u32,
    session_start_limit: Limit,
}

#[derive(Deserialize)]
struct Limit {
    remaining: u32,
    /// In milliseconds.
    reset_after: u64,
    max_concurrency: u32,
}

impl Answer {
    /// What it tells, within what may be set: each connection costs something here.
    pub(super) fn told(&self, told_at: Moment, apart: Duration) -> Told {
        let Limit { remaining, reset_after, max_concurrency } = self.session_start_limit;
        let one = NonZeroU32::MIN;
        Told {
            announced: Announced {
                remaining,
                resets_at: told_at + Duration::from_millis(reset_after),
                max_concurrency: NonZeroU32::new(max_concurrency).unwrap_or(one),
                apart,
                told_at,
            },
            shards: NonZeroU32::new(self.shards.min(MOST_SHARDS)).unwrap_or(one),
        }
    }
}

impl Starts {
    /// Nothing is read or asked yet.
    pub fn new(
        discord: Arc<Discord>,
        notes: Arc<dyn Notes>,
        clock: Arc<dyn Clock>,
        instruments: Instruments,
        times: Times,
    ) -> Self {
        let (books, turns) = (Mutex::default(), Turns::default());
        Self { discord, notes, clock, instruments, times, books, turns, url: Quick::default(), exhausted: Quick::default() }
    }

    /// What Discord tells now.
    ///
    /// # Errors
    /// It cannot be asked, or does not know the token.
    pub async fn ask(&self) -> Result<Told, Disconnected> {
        let mut books = self.books.lock().await;
        books.told = None;
        self.open(&mut books).await.cloned()
    }

    /// Where Discord said that the gateway is, if it was asked.
    pub fn url(&self) -> Option<String> {
        self.url.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until this shard may connect in order to identify. The lowest number goes first. What it has to wait long for is told.
    ///
    /// # Errors
    /// Discord cannot be asked how many identifies are left, or they cannot be read.
    pub async fn turn(&self, shard: u32, waits: impl Fn(String)) -> Result<Turn<'_>, Disconnected> {
        let max_concurrency = {
            let mut books = self.books.lock().await;
            self.open(&mut books).await?.announced.max_concurrency
        };
        let turn = self.turns.take(shard, max_concurrency).await;
        loop {
            let mut books = self.books.lock().await;
            let announced = self.open(&mut books).await?.announced;
            let now = self.clock.now();
            let mut spent = books.spent.clone().unwrap_or_default();
            let leave = spent.ask(shard, &announced, now);
            self.note_exhausted(&leave);
            let until = match leave {
                Leave::Now => return Ok(turn),
                Leave::At(at) => at.since(now),
                Leave::Exhausted(until) => {
                    // Whatever Discord said is older than what it says next time.
                    books.told = None;
                    waits(none_left(until));
                    until.since(now).min(LOOK_AGAIN)
                }
            };
            drop(books);
            sleep(until).await;
        }
    }

    /// Lets one identify leave, which is counted and stored before.
    ///
    /// # Errors
    /// It may not, or it could not be stored.
    pub async fn leave(&self, shard: u32) -> Result<(), Disconnected> {
        loop {
            let mut books = self.books.lock().await;
            let announced = self.open(&mut books).await?.announced;
            let now = self.clock.now();
            let spent = books.spent.get_or_insert_default();
            let leave = spent.ask(shard, &announced, now);
            self.note_exhausted(&leave);
            match leave {
                Leave::Now => {
                    let left = spent.left(&announced, now);
                    let bytes = serde_json::to_vec(spent).map_err(|error| later(error.to_string()))?;
                    self.notes
                        .write(None, vec![(NOTE.to_owned(), Some(bytes))])
                        .await
                        .map_err(|error| later(error.to_string()))?;
                    self.instruments.discord_identifies_left.set(left.into(), NONE);
                    return Ok(());
                }
                Leave::At(at) => {
                    drop(books);
                    sleep(at.since(now)).await;
                }
                Leave::Exhausted(until) => return Err(later(none_left(until))),
            }
        }
    }

    /// What Discord told, asked for again if it is old, and what was spent, read if it was not.
    async fn open<'a>(&self, books: &'a mut MutexGuard<'_, Books>) -> Result<&'a Told, Disconnected> {
        if books.spent.is_none() {
            let read = self.notes.read(None, NOTE).await.map_err(|error| later(error.to_string()))?;
            // What cannot be read counts as nothing: Discord's own count holds all the same.
            let spent: Spent = read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
            books.spent = Some(spent);
        }
        let now = self.clock.now();
        let is_old = |told: &Told| now.since(told.announced.told_at) > LASTS || now < told.announced.told_at;
        if books.told.as_ref().is_none_or(is_old) {
            let told = self.ask_discord().await?;
            if let Some(spent) = &books.spent {
                self.instruments.discord_identifies_left.set(spent.left(&told.announced, now).into(), NONE);
            }
            books.told = Some(told);
        }
        books.told.as_ref().ok_or_else(|| later("Discord was not asked".to_owned()))
    }

    async fn ask_discord(&self) -> Result<Told, Disconnected> {
        let answer: Answer = self.discord.rest().ask(Request::gateway()).await.map_err(unasked)?;
        let url = answer.url.as_deref().and_then(frame::address);
        self.url.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&url);
        Ok(answer.told(self.clock.now(), self.times.apart))
    }

    /// Tells once that there are none left, and once that there are again.
    fn note_exhausted(&self, leave: &Leave) {
        let mut exhausted = self.exhausted.lock().unwrap_or_else(PoisonError::into_inner);
        let now = if let Leave::Exhausted(until) = leave { Some(*until) } else { None };
        match (*exhausted, now) {
            (None, Some(until)) => tracing::error!(platform = "discord", "{}", none_left(until)),
            (Some(_), None) => tracing::info!(platform = "discord", "there are identifies again"),
            _ => {}
        }
        *exhausted = now;
    }
}

/// Why nothing can be asked, for the operator.
pub(super) fn unasked(failed: Failed) -> Disconnected {
    match failed {
        Failed::Refused(refusal) if refusal.status == 401 => Disconnected::Never(Stopped::BadToken.told().to_owned()),
        Failed::NotNow { after, detail } => Disconnected::Later { after, detail },
        other => later(other.to_string()),
    }
}

fn later(detail: String) -> Disconnected {
    Disconnected::Later { after: None, detail }
}

fn none_left(until: Moment) -> String {
    format!(
        "so many connections had to begin anew that Discord would reset the token at a few more: no new session before {}. Find out what \
         ends the connections; is another program running with the same token?",
        when(until)
    )
}

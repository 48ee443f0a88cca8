//! The life of one shard: connection after connection, each resumed from the one before as long as that is possible.

use std::time::Duration;

use tokio::time::sleep;

use super::super::identify::{Return, Stopped, failed_to_connect, identify_pause, pause};
use super::Shared;
use super::asking;
use super::connection::{Connection, Lost, Plan};
use super::end::{End, Ended};
use super::session::{Session, Shelf};
use super::starts::{Turn, unasked};
use super::told::Doing;
use crate::ports::gateway::{Disconnected, Shard};

/// After so many attempts at the address that a session was given, it is resumed at the common one.
const MOST_AT_OWN_URL: u32 = 2;
/// After so many attempts to resume that were answered and brought nothing, the session is given up.
const MOST_RESUMES: u32 = 4;
/// After so many attempts in a row it is told louder.
const LOUD: u32 = 3;

/// A shard's life.
pub struct Life<'a> {
    shared: &'a Shared,
    shard: Shard,
    shelf: Shelf,
    session: Option<Session>,
    /// Failures to connect in a row, and connections that this server gave up soon.
    failures: u32,
    /// Attempts in a row to resume at the session's own address.
    at_own_url: u32,
    /// Attempts in a row to resume that were answered.
    resumes: u32,
    /// Identifies in a row that brought no session that lasted.
    identifies: u32,
    /// The last connection that was heard on, if it is gone.
    lost: Option<Lost>,
    /// How long Discord wants to be left alone.
    after: Option<Duration>,
}

/// A shard that is not lived any more is not told of.
struct Leaving<'a>(&'a Shared, Shard);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.standing.leave(self.1);
    }
}

impl<'a> Life<'a> {
    /// A life that is about to begin.
    pub fn new(shared: &'a Shared, shard: Shard) -> Self {
        let shelf = Shelf::new(shared.notes.clone(), shard);
        Self {
            shared,
            shard,
            shelf,
            session: None,
            failures: 0,
            at_own_url: 0,
            resumes: 0,
            identifies: 0,
            lost: None,
            after: None,
        }
    }

    /// Lives it. Returns only when going on has no use.
    pub async fn live(mut self) -> Disconnected {
        let _leaving = Leaving(self.shared, self.shard);
        self.does(Doing::Connecting);
        self.session = self.remembered().await;
        loop {
            let ended = match self.plan().await {
                Ok(plan) => Connection::live(self.shared, self.shard, &self.shelf, plan).await,
                Err(Disconnected::Never(why)) => return Disconnected::Never(why),
                Err(why) => Ended::before(End::NoLeave(why)),
            };
            if let Some(why) = self.follows(ended).await {
                return why;
            }
            self.rest().await;
        }
    }

    /// The session of an earlier process, if it is one of ours.
    async fn remembered(&self) -> Option<Session> {
        let found = self.shelf.find().await;
        let found = found.unwrap_or_else(|error| {
            tracing::warn!(platform = "discord", shard = self.shard.number, %error, "an earlier session is not known");
            None
        });
        found.filter(|session| self.fits(session))
    }

    /// Whether a session is of this application, for so many shards, and told of what is asked for. One of which nothing is accepted is
    /// not gone on with: nobody promises that READY is told again, and what follows from that would be lost.
    fn fits(&self, session: &Session) -> bool {
        let asking = &self.shared.asking;
        session.accepted > 0
            && session.shards == self.shard.of.get()
            && asking.application().is_none_or(|application| application == session.application)
            && asking.intents().is_none_or(|intents| intents == session.intents)
    }

    /// How the next connection begins.
    async fn plan(&mut self) -> Result<Plan<'a>, Disconnected> {
        let asking = &self.shared.asking;
        if let Some(session) = self.session.clone().filter(|session| self.fits(session)) {
            let own = session.resume_url.clone().filter(|_| self.at_own_url < MOST_AT_OWN_URL);
            let url = own.unwrap_or_else(|| self.shared.url());
            let intents = asking.intents().unwrap_or(asking::WITHOUT);
            // It is told what it asked for when it began.
            self.shared.discord.set_reads_all(asking::has_content(session.intents));
            return Ok(Plan { url, intents, session: Some(session), turn: None, lost: self.lost });
        }
        self.session = None;
        // What is asked for may depend on it.
        match (self.shared.learn().await, asking.intents()) {
            (Err(failed), None) => Err(unasked(failed)),
            (_, Some(intents)) => {
                let turn = self.turn().await?;
                self.shared.discord.set_reads_all(asking::has_content(intents));
                Ok(Plan { url: self.shared.url(), intents, session: None, turn: Some(turn), lost: self.lost })
            }
            (Ok(()), None) => {
                Err(Disconnected::Later { after: None, detail: "Discord told nothing of the application".to_owned() })
            }
        }
    }

    /// Waits for the turn to identify, and says so.
    async fn turn(&self) -> Result<Turn<'a>, Disconnected> {
        let starts = &self.shared.starts;
        let turn = starts.turn(self.shard.number, |why| self.does(Doing::Waiting(why)));
        turn.await
    }

    /// Takes in how a connection ended. Returns why there is no other.
    async fn follows(&mut self, ended: Ended) -> Option<Disconnected> {
        self.count(&ended);
        let mut returns = ended.end.followed_by();
        if returns == Return::Stop(Stopped::ForbiddenIntents) && self.shared.asking.asks_for_less() {
            returns = Return::Identify;
        }
        if returns == Return::Resume && self.resumes >= MOST_RESUMES {
            tracing::info!(
                platform = "discord",
                shard = self.shard.number,
                "the session cannot be resumed: another one is begun"
            );
            returns = Return::Identify;
        }
        self.shared.recorder.discord_reconnects.add(1, [ended.end.as_str()]);
        let session = match returns {
            Return::Resume => ended.session,
            Return::Identify => None,
            Return::Stop(stopped) => {
                let why = stopped.told();
                tracing::error!(platform = "discord", shard = self.shard.number, "{why}");
                return Some(Disconnected::Never(why.to_owned()));
            }
        };
        let session = session.filter(|session| self.fits(session));
        if session.is_none() {
            (self.at_own_url, self.resumes) = (0, 0);
        }
        if let Err(error) = self.shelf.put(session.as_ref()).await {
            tracing::warn!(platform = "discord", shard = self.shard.number, %error, "a session is not kept");
        }
        self.session = session;
        self.tell(&ended.end);
        match ended.end {
            End::NoLeave(Disconnected::Never(why)) => Some(Disconnected::Never(why)),
            End::NoLeave(Disconnected::Later { after, .. }) => {
                self.after = after;
                None
            }
            _ => None,
        }
    }

    fn count(&mut self, ended: &Ended) {
        let at = self.shared.clock.now();
        if ended.lived.is_some() {
            self.lost = Some(Lost { cause: ended.end.as_str(), at, attempts: 0 });
        }
        if let Some(lost) = &mut self.lost {
            lost.attempts += 1;
        }
        let has_lasted = ended.lived.is_some_and(|lived| lived >= self.shared.times.lasting);
        // What this server gives up it would give up again.
        let is_given_up = matches!(ended.end, End::Lost | End::Stuck | End::Confused);
        if has_lasted || !(is_given_up || failed_to_connect(ended.lived, ended.has_heard)) {
            self.failures = 0;
        } else {
            self.failures = self.failures.saturating_add(1);
        }
        if has_lasted {
            self.identifies = 0;
        } else {
            self.identifies = self.identifies.saturating_add(u32::from(ended.has_identified));
        }
        if ended.lived.is_some() {
            (self.at_own_url, self.resumes) = (0, 0);
        } else if ended.session.is_some() {
            self.at_own_url = self.at_own_url.saturating_add(1);
            // Where nobody answers, nothing was said of the session.
            self.resumes = self.resumes.saturating_add(u32::from(ended.has_greeted));
        }
    }

    fn tell(&self, end: &End) {
        let (shard, cause, why) = (self.shard.number, end.as_str(), end.told());
        if self.failures < LOUD {
            tracing::info!(platform = "discord", shard, cause, "{why}; connecting again");
        } else {
            tracing::warn!(platform = "discord", shard, cause, failures = self.failures, "{why}; trying again");
        }
        self.does(Doing::Waiting(why));
    }

    /// Pauses before the next attempt.
    async fn rest(&mut self) {
        let jitter = self.shared.rng.fraction();
        let mut pause = pause(self.failures, jitter);
        if self.session.is_none() {
            pause = pause.max(identify_pause(self.identifies, jitter));
        }
        let pause = pause.mul_f64(self.shared.times.pauses).max(self.after.take().unwrap_or_default());
        sleep(pause).await;
    }

    fn does(&self, doing: Doing) {
        self.shared.standing.set(self.shard, doing, self.shared.recorder.instruments());
    }
}

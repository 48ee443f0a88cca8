//! A run: lives of the process, one after the other, until faults are over and everything is at rest.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::checks;
use super::dice::Dice;
use super::life::{Life, Props};
use super::plan::Plan;
use super::stage::{Ending, Notes, lock};
use crate::actors::erasure::cleanup;
use crate::domain::id::Ward;
use crate::ports::store::Store;
use crate::ports::store::key::{Key, Kind};

/// Once faults are over, everything is quiet within this time plus the time that the clock was set back, because a long silence ends by the clock.
/// Back-offs last ten minutes at most.
const QUIET_WITHIN: Duration = Duration::from_secs(7_200);
/// After this time without a message every channel sleeps, whenever it last checked.
const ASLEEP_WITHIN: Duration = Duration::from_secs(1_300);
/// A process that ends this often never comes up.
const LIVES_AT_MOST: u64 = 100;

pub(super) struct Outcome {
    pub(super) seed: u64,
    pub(super) notes: Notes,
    /// Everything that is stored, byte for byte.
    pub(super) stored: Vec<u8>,
    /// The metrics of the last life.
    pub(super) measured: String,
    pub(super) lives: u64,
    pub(super) events: usize,
    pub(super) statements: usize,
}

pub(super) fn run(seed: u64) -> Outcome {
    let props = Props::of(Plan::of(seed));
    let stage = props.stage.clone();
    let mut downtime = Dice::new(seed, "downtime");
    let mut at = Duration::ZERO;
    let measured = loop {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime can be made");
        let outcome = runtime.block_on(live(&props, at));
        at = stage.clock.elapsed();
        // Everything in flight is lost at once.
        drop(runtime);
        match outcome {
            Ok(measured) => break measured,
            Err(_) if stage.life() < LIVES_AT_MOST => {}
            Err(ending) => {
                stage.violate(format!("the process never comes up: {ending:?}"));
                break String::new();
            }
        }
        props.store.reopen();
        at += downtime.millis(20, 4_000);
    };
    checks::of_record(&props);
    let committed = lock(&props.store.committed);
    let statements = committed.iter().filter(|entry| checks::is_statement(&entry.recorded)).count();
    let mut stored = Vec::new();
    for (key, value) in props.store.all() {
        stored.extend_from_slice(key.as_bytes());
        stored.extend_from_slice(&value);
    }
    let (lives, events) = (stage.life(), committed.len());
    drop(committed);
    let notes = std::mem::take(&mut *stage.notes());
    Outcome { seed, notes, stored, measured, lives, events, statements }
}

/// Runs one life of the process. Returns its metrics if it is the last.
async fn live(props: &Arc<Props>, at: Duration) -> Result<String, Ending> {
    let stage = &props.stage;
    stage.begin(at);
    let started = Mutex::new(None);
    let course = async {
        let (life, tree) = Life::begin(props.clone()).await?;
        *lock(&started) = Some(life.clone());
        let play = async {
            strike_by_time(&life);
            life.play_externals();
            super::checks::watch(life.clone());
            life.act().await;
            come_to_rest(&life).await;
        };
        tokio::select! {
            biased;
            _ = tree => Err("the root actor ended".to_owned()),
            () = play => Ok(life),
        }
    };
    let outcome = tokio::select! {
        biased;
        () = stage.ended.notified() => Err(String::new()),
        outcome = course => outcome,
    };
    let measured = match outcome {
        Ok(life) if !stage.is_dead() => Ok(checks::of_life(&life).await),
        Ok(_) => Err("dead".to_owned()),
        Err(why) => Err(why),
    };
    if measured.is_err()
        && let Some(life) = lock(&started).take()
    {
        checks::of_ended(&life);
    }
    stage.clock.stop();
    if let Err(why) = &measured {
        stage.end(Ending::Ended(why.clone()));
        if stage.is_calm() {
            stage.violate(format!("the process ended although faults were over: {why}"));
        }
    }
    let ending = stage.end_life();
    measured.map_err(|why| ending.unwrap_or(Ending::Ended(why)))
}

fn strike_by_time(life: &Life) {
    let stage = life.props.stage.clone();
    tokio::spawn(async move {
        while let Some(at) = stage.next_timed() {
            stage.pass(at.saturating_sub(stage.now())).await;
            for strike in stage.take_due() {
                super::nemesis::strike_after_steps(stage.clone(), strike);
            }
        }
    });
}

/// Faults are over. Releases every guild, and waits until everything owed is done.
async fn come_to_rest(life: &Life) {
    let stage = &life.props.stage;
    if !stage.is_calm() {
        stage.calm_down();
    }
    let mut began = stage.now();
    let mut quiet_since = None;
    let mut has_waited_a_day = false;
    loop {
        release(life).await;
        let to_forget = lock(&life.props.people.to_forget).clone();
        for ((guild, person), answers) in to_forget {
            life.forget(guild, person, answers).await;
        }
        stage.pass(Duration::from_secs(20)).await;
        let unfinished = unfinished_work(life).await;
        if unfinished.is_none() && !has_waited_a_day && life.props.store.has_unfinished_work() {
            // Work that failed in this life is resumed a day later.
            has_waited_a_day = true;
            stage.reach("unfinished work resumed a day later");
            stage.pass(cleanup::AGAIN_AFTER).await;
            (began, quiet_since) = (stage.now(), None);
            continue;
        }
        let now = stage.now();
        match (unfinished, quiet_since) {
            (None, None) => {
                quiet_since = Some(now);
                // The last batch may be stored without being acknowledged yet.
                stage.pass(Duration::from_secs(1)).await;
                checks::of_quiet(life);
            }
            (None, Some(since)) if now - since > ASLEEP_WITHIN => return,
            (None, Some(_)) => {}
            (Some(unfinished), _) => {
                quiet_since = None;
                if now - began > QUIET_WITHIN + stage.plan.set_back() {
                    stage.violate(format!("the system has not come to rest: {unfinished}"));
                    return;
                }
            }
        }
    }
}

async fn release(life: &Life) {
    let Ok(quarantine) = life.backend.maintenance.quarantine().await else { return };
    for guild in quarantine.guilds {
        life.props.stage.reach("guild in quarantine");
        life.props.stage.disturb();
        if life.backend.maintenance.release(guild.id.as_str()).await.is_ok() {
            life.props.stage.note_release(guild.id.as_str());
        }
    }
}

/// Work that is still unfinished, if there is any.
async fn unfinished_work(life: &Life) -> Option<String> {
    if !life.props.wire.is_all_taken(life.props.stage.life()) {
        return Some("a connection is down, or has not delivered everything".to_owned());
    }
    if !life.props.people.are_all_accepted() {
        return Some("a message is not accepted".to_owned());
    }
    if let Some(((_, person), _)) = lock(&life.props.people.to_forget).first_key_value() {
        return Some(format!("{person} is not forgotten"));
    }
    let wards = life.props.stage.plan.guilds.iter().map(|guild| Ward::of(&guild.id.as_str().into()));
    for ward in wards {
        for kind in [Kind::Pending, Kind::Outbox] {
            let from = Key::new(ward, kind);
            let found = life.props.store.inner.scan(from.clone(), from.end(), false, 1).await.unwrap_or_default();
            if let Some((key, _)) = found.first() {
                return Some(format!("{kind:?} {key} is left"));
            }
        }
    }
    None
}

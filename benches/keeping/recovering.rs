//! Reading and folding a channel: without a snapshot, by the length of its history; with one, by the number of messages after it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tertulia::domain::budget::Ledger;
use tertulia::domain::conversation::{Conversation, Rules, World};
use tertulia::domain::event::Recorded;
use tertulia::domain::gate::InterjectionPolicy;
use tertulia::domain::id::{CompanionId, Seq, TurnId};
use tertulia::domain::moment::Moment;
use tertulia::journal::channel_key::ChannelKey;
use tertulia::journal::key;
use tertulia::journal::reader::Reader;
use tertulia::journal::record::{ChannelRecord, encode, encode_event, encode_snapshot};
use tertulia::ports::store::key::ChannelNo;
use tertulia::ports::store::{Append, Batch, Store, Write};
use tertulia::settings::Settings;
use tertulia::telemetry::instruments::Instruments;
use tokio::time::Instant;

use super::appending::open;
use super::spread;

#[path = "../deciding/room.rs"]
#[allow(dead_code, reason = "others use more of it")]
mod room;

/// How often a channel is read back in a round.
const TIMES: usize = 20;

/// Numbers of messages before and after the snapshot.
const HISTORIES: [(usize, usize); 7] = [(0, 100), (0, 1_000), (0, 10_000), (100, 20), (1_000, 20), (10_000, 20), (10_000, 100)];

pub async fn measure(rounds: usize) -> anyhow::Result<()> {
    println!("\nreading a channel back from disk, median of {} (least – most), milliseconds", rounds * TIMES);
    println!("{:>16} {:>16} {:>28}", "messages before", "after snapshot", "read and folded");
    for (before, after) in HISTORIES {
        let folder = tempfile::tempdir()?;
        let store: Arc<dyn Store> = Arc::new(open(folder.path(), Instruments::noop())?);
        let channel_key = ChannelKey::new(&"home".into(), &"console:bench".into());
        write(&*store, &channel_key, before, after).await?;
        let mut took = Vec::new();
        for _ in 0..rounds * TIMES {
            took.push(read(&*store, &channel_key, before + after).await?.as_secs_f64() * 1e3);
        }
        println!("{before:>16} {after:>16} {:>28}", spread(took));
    }
    Ok(())
}

/// Stores the history of a channel with one companion and these messages.
async fn write(store: &dyn Store, channel_key: &ChannelKey, before: usize, after: usize) -> anyhow::Result<()> {
    let mut room = room::Room::on_record(1, 9, Moment::from_micros(1_000_000));
    let talk = |room: &mut room::Room, messages: usize| {
        for number in 0..messages {
            let called = number.is_multiple_of(10).then(|| room.companion(0));
            room.handle_message(called.as_ref());
        }
    };
    talk(&mut room, before);
    let made = room.record.as_ref().and_then(|record| record.last()).map_or(Seq::NONE, |recorded| recorded.seq);
    let snapshot = (before > 0).then(|| encode_snapshot(made, &room.conversation));
    talk(&mut room, after);
    let (ward, no) = (channel_key.ward(), ChannelNo(0));
    let term = store.acquire_ward(ward).await?;
    let record = ChannelRecord { guild: channel_key.guild.clone(), channel: channel_key.channel.clone() };
    let mut writes =
        vec![Write::Put(key::channel_name(channel_key), encode(&no.0)), Write::Put(key::channel_of(ward, no), encode(&record))];
    writes.extend(snapshot.map(|snapshot| Write::Put(key::snapshot(ward, no), snapshot)));
    let records = room.record.iter().flatten().map(encode_event).collect();
    let append = Some(Append { channel: no, after: Seq::NONE, records });
    let outcomes = store.commit(vec![Batch { ward, term, append, fresh: Vec::new(), writes }]).await?;
    anyhow::ensure!(outcomes == [Ok(())], "{outcomes:?}");
    Ok(())
}

async fn read(store: &dyn Store, channel_key: &ChannelKey, messages: usize) -> anyhow::Result<Duration> {
    let settings = Settings::overlay(serde_json::json!({})).map_err(|problems| anyhow::anyhow!("{problems}"))?;
    let policy = InterjectionPolicy {
        level: tertulia::settings::companion::Interjection::Average,
        starting_interval: 9,
        text_lull_timeout: Duration::from_secs(10),
        voice_lull_timeout: Duration::from_secs(5),
        quiet_hours: [tertulia::domain::policy::quiet_hours::QuietHours::Never; 2],
        starts_after: None,
        max_turns: None,
        repetition: true,
    };
    let policies = BTreeMap::from([(CompanionId::from("name0"), policy)]);
    let mut ledger = Ledger::default();
    let mut world = World {
        channel: &channel_key.channel,
        rules: Rules::from(&settings),
        policies: &policies,
        jitter: &mut || 0,
        roll: &mut || None,
        turn: &mut || TurnId(0),
        ledger: &mut ledger,
        summary: None,
        notes: None,
        tokens_per_day: None,
        is_unpostable: false,
    };
    let began = Instant::now();
    let restored = Reader::new(store).restore(channel_key).await?;
    let mut conversation = restored.snapshot.map_or_else(Conversation::default, |snapshot| snapshot.conversation);
    restored.events.iter().for_each(|recorded: &Recorded| conversation.fold(recorded, &mut world));
    let took = began.elapsed();
    anyhow::ensure!(conversation.handled().0 >= messages as u64, "not all was read: {}", conversation.handled());
    Ok(took)
}

//! Measures a store of a million messages in a thousand rooms: the duration of copies, the memory they need, and their effect on commits.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::tests::options;
use super::*;
use crate::domain::conversation::Conversation;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::Seq;
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::record::{ChannelRecord, encode, encode_event, encode_snapshot};
use crate::ports::store::key::ChannelNo;
use crate::ports::store::{Append, Write};
use crate::samples;

const ROOMS: u32 = 1_000;
const MESSAGES_PER_ROOM: u64 = 1_000;
/// 1 January 2026.
const LONG_AGO: u64 = 1_767_225_600_000_000;

fn channel_key(room: u32) -> ChannelKey {
    ChannelKey::new(&format!("g{}", room % 100).as_str().into(), &format!("console:r{room}").as_str().into())
}

fn message(room: u32, seq: u64) -> Recorded {
    let text = format!("message {seq} of room {room}, which says about as much as people say at once in a chat.");
    let message = samples::message(samples::person(&format!("person {}", seq % 20)), &text);
    Recorded { at: Moment::from_micros(LONG_AGO + seq * 60_000_000), ..samples::recorded(seq, samples::said(message)) }
}

async fn fill(store: &SledStore, room: u32) {
    let channel_key = channel_key(room);
    let (ward, no) = (channel_key.ward(), ChannelNo(room));
    let term = store.acquire_ward(ward).await.unwrap();
    let events: Vec<_> = (1..=MESSAGES_PER_ROOM).map(|seq| message(room, seq)).collect();
    let mut conversation = Conversation::default();
    conversation.skip(&message(room, MESSAGES_PER_ROOM));
    let channel = ChannelRecord { guild: channel_key.guild.clone(), channel: channel_key.channel.clone() };
    let mut writes = vec![
        Write::Put(key::channel_name(&channel_key), encode(&no.0)),
        Write::Put(key::channel_of(ward, no), encode(&channel)),
        Write::Put(key::next_channel(ward), encode(&ROOMS)),
        Write::Put(key::snapshot(ward, no), encode_snapshot(Seq(MESSAGES_PER_ROOM), &conversation)),
    ];
    for recorded in &events {
        let Event::Said { message, .. } = &recorded.event else { continue };
        let person = (*message.from.id).into();
        writes.push(Write::Put(key::person(&channel_key.guild, &person, no, recorded.seq), encode(&())));
    }
    let append = Append { channel: no, after: Seq::NONE, records: events.iter().map(encode_event).collect() };
    let outcome = store.commit(vec![Batch { ward, term, append: Some(append), fresh: Vec::new(), writes }]).await.unwrap();
    assert_eq!(outcome, [Ok(())]);
}

/// The durations of single commits until `is_over` is set, sorted.
async fn commits(store: Arc<SledStore>, is_over: Arc<AtomicBool>) -> Vec<Duration> {
    let ward = Ward(7);
    let term = store.acquire_ward(ward).await.unwrap();
    let mut durations = Vec::new();
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        let write = Write::Put(key::note(None, &format!("note {number}")), vec![1; 200]);
        let batch = Batch { ward, term, append: None, fresh: Vec::new(), writes: vec![write] };
        let began = Instant::now();
        store.commit(vec![batch]).await.unwrap();
        durations.push(began.elapsed());
        number += 1;
    }
    durations.sort();
    durations
}

fn summary(durations: &[Duration]) -> String {
    let at = |share: f64| durations[((durations.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    format!("{} commits, p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms", durations.len(), at(0.5), at(0.99), at(1.0))
}

/// The memory of this process now and at its peak, in MB.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim_start_matches(':').trim().split(' ').next().and_then(|kb| kb.parse::<u64>().ok()).unwrap_or_default() / 1024
    };
    format!("{} MB now, {} MB at most", field("VmRSS"), field("VmHWM"))
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let outcome = work();
    println!("{what}: {:.1} s; memory {}", began.elapsed().as_secs_f64(), memory());
    outcome
}

/// `TERTULIA_MILLION=DIR` keeps the store in a folder, for other experiments with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a minute in a release build: cargo test --release --lib million -- --ignored --nocapture"]
async fn a_million_messages_are_copied_in_bounded_memory_while_others_write() {
    let folder = tempfile::tempdir().unwrap();
    let data = std::env::var_os("TERTULIA_MILLION").map_or_else(|| folder.path().join("data"), PathBuf::from);
    let store = Arc::new(SledStore::open(&data, &options()).unwrap());
    let began = Instant::now();
    for room in 0..ROOMS {
        fill(&store, room).await;
    }
    println!("filled: {:.1} s; {} MB; memory {}", began.elapsed().as_secs_f64(), disk_bytes(&data).unwrap() >> 20, memory());

    let is_over = Arc::new(AtomicBool::new(false));
    let idle = tokio::spawn(commits(Arc::clone(&store), Arc::clone(&is_over)));
    tokio::time::sleep(Duration::from_secs(5)).await;
    is_over.store(true, Ordering::Relaxed);
    println!("alone: {}", summary(&idle.await.unwrap()));

    let is_over = Arc::new(AtomicBool::new(false));
    let busy = tokio::spawn(commits(Arc::clone(&store), Arc::clone(&is_over)));
    let (copier, backup) = (Arc::clone(&store), folder.path().join("backup"));
    let to = backup.clone();
    let copied =
        tokio::task::spawn_blocking(move || timed("backup", || SledStore::backup(&copier, &to, |_| {}).unwrap())).await.unwrap();
    is_over.store(true, Ordering::Relaxed);
    println!("meanwhile: {}", summary(&busy.await.unwrap()));
    println!("backup: {} records, {} MB", copied.records, copied.bytes_after >> 20);

    let read = timed("verify the backup", || super::super::backup::verify(&backup, (), |_| {}).unwrap());
    assert!(read.is_sound() && read.events == u64::from(ROOMS) * MESSAGES_PER_ROOM);
    drop(Arc::into_inner(store).expect("nobody else has it"));
    let elsewhere = folder.path().join("elsewhere");
    timed("restore", || restore(&backup, &elsewhere, &options(), (), |_| {}).unwrap());
    let compacted = timed("compact", || compact(&data, &options(), (), |_| false, |_| {}).unwrap());
    println!("compact: {} MB before, {} MB now", compacted.bytes_before >> 20, compacted.bytes_after >> 20);
    assert_same(&data, &elsewhere);
}

fn assert_same(one: &Path, other: &Path) {
    let read = |data| SledStore::open(data, &options()).unwrap().verify((), |_| {}).unwrap();
    assert_eq!(read(one).events, read(other).events);
}

//! Fifty people talk in one call, while a companion speaks in another: what that costs, and whether the companion's packets come in time.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context as _;
use tertulia::adapters::console::voice::protocol::{PageMessage, ServerMessage};
use tokio::time::{Instant, interval, sleep};

use super::page::{FRAME, Page, SILENCE, Say, What, sentence};
use super::server::Server;
use super::{Times, load, talker};

const PEOPLE: usize = 50;

pub async fn run(secs: u64) -> anyhow::Result<()> {
    let server = Server::start().await?;
    server.room("quiet").await?;
    server.room("crowd").await?;
    let span = Duration::from_secs(secs);
    // Warm-up: somebody talks, leaves and is forgotten, and a companion speaks.
    let first = Page::enter(&server.url, "crowd", "first").await?;
    first.say(Say::Forever(sentence()))?;
    sleep(Duration::from_secs(5)).await;
    first.say(Say::Message(PageMessage::Leave {}))?;
    let mut listener = Page::enter(&server.url, "quiet", "Ana").await?;
    listener.say(Say::Message(PageMessage::Say { text: "Aria, tell us more.".into() }))?;
    while !matches!(listener.next(Duration::from_secs(20)).await.context("no reply is spoken")?.what, What::Packet) {}
    sleep(Duration::from_secs(5)).await;

    println!("\n### {PEOPLE} people talk for {secs} s\n\n{}", Times::HEAD);
    let mut ticks = interval(FRAME);
    let mut idle = Vec::new();
    for _ in 0..secs * 50 {
        ticks.tick().await;
        idle.push(Instant::now());
    }
    jitter(&idle).print("jitter of a timer of 20 ms");
    let before = (server.resident()?, server.processor_time()?);
    jitter(&packets(&mut listener, span).await?).print("jitter of a companion's packets, nobody talks");
    let alone = (server.processor_time()? - before.1).as_secs_f64() / span.as_secs_f64();

    let mut watching = talker(&server, "crowd", 0, &pauses()).await?;
    let _others = load(&server, "crowd", PEOPLE - 1, &pauses()).await?;
    sleep(Duration::from_secs(5)).await;
    let at_first = server.resident()?;
    while watching.next(Duration::from_millis(1)).await.is_some() {}
    let (begun, used) = (Instant::now(), server.processor_time()?);
    jitter(&packets(&mut listener, span).await?).print(&format!("jitter of a companion's packets, {PEOPLE} people talk"));
    let share = (server.processor_time()? - used).as_secs_f64() / begun.elapsed().as_secs_f64();
    let at_end = server.resident()?;
    let (mut onsets, mut heard) = (0, BTreeSet::new());
    while let Some(event) = watching.next(Duration::from_millis(1)).await {
        if let What::Told(ServerMessage::Talking { user, on: true }) = event.what {
            onsets += 1;
            heard.insert(user);
        }
    }
    println!("\n* Processor time: {:.1} % of a core, {:.1} % of it for one companion that speaks.", share * 100.0, alone * 100.0);
    println!("* {} people were heard, with {onsets} onsets. Packets: {}.", heard.len(), server.packets().await?);

    let each = [at_first, at_end].map(|resident| (resident - before.0) / PEOPLE as f64);
    println!("* Memory: {:.0} KiB for each who talks after 5 s, {:.0} KiB at the end.", each[0], each[1]);
    Ok(())
}

/// Speech and a pause of the same length.
fn pauses() -> Vec<&'static [u8]> {
    let speech = sentence();
    let pause = speech.iter().take(SILENCE).cycle().take(speech.len());
    speech.iter().chain(pause).copied().collect()
}

/// When packets come within a time.
async fn packets(page: &mut Page, span: Duration) -> anyhow::Result<Vec<Instant>> {
    while page.next(Duration::from_millis(1)).await.is_some() {}
    let (begun, mut times) = (Instant::now(), Vec::new());
    while begun.elapsed() < span {
        let event = page.next(Duration::from_secs(5)).await.context("the companion is silent")?;
        if matches!(event.what, What::Packet) {
            times.push(event.at);
        }
    }
    Ok(times)
}

/// How much the times between two differ from 20 ms.
fn jitter(times: &[Instant]) -> Times {
    Times::of(times.windows(2).map(|two| (two[1] - two[0]).abs_diff(FRAME)))
}

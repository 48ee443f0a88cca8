//! Measures voice calls of the real program, through the WebSocket that the console's page uses:
//!
//! * how soon a companion is ducked, pauses, resumes and goes on when somebody talks, alone and beside 40 other people, and what of its words was heard;
//! * what 50 people in one call cost, and how evenly a companion's packets come.
//!
//! `cargo bench --bench voice -- [alone | beside | fifty] [TRIALS [SECS]]`. The default is all three, 5 interruptions and 5 seconds, some two minutes.
//! `100 60` takes twenty. People send packets that Chromium made. They are heard here, too, so that it is known with which packet speech
//! begins. `TERTULIA_PROGRAM` names another binary. Linux only.

mod fifty;
mod interruptions;
mod page;
mod server;

use std::time::Duration;

use page::{Page, Say};
use server::Server;
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Cargo passes `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let mut numbers = arguments.iter().filter_map(|argument| argument.parse().ok());
    let (trials, secs) = (numbers.next().unwrap_or(5), numbers.next().unwrap_or(5));
    let is_wanted = |part| !arguments.iter().any(|argument| argument.parse::<usize>().is_err() && argument != part);
    for (part, has_others) in [("alone", false), ("beside", true)] {
        if is_wanted(part) {
            interruptions::run(trials, has_others).await?;
        }
    }
    if is_wanted("fifty") {
        fifty::run(secs as u64).await?;
    }
    Ok(())
}

/// People who send the same packets again and again, each beginning with another one, until the set is dropped.
async fn load(server: &Server, room: &str, people: usize, packets: &[&'static [u8]]) -> anyhow::Result<JoinSet<()>> {
    let mut all = JoinSet::new();
    for number in 1..=people {
        all.spawn(talker(server, room, number, packets).await?.watch());
    }
    Ok(all)
}

async fn talker(server: &Server, room: &str, number: usize, packets: &[&'static [u8]]) -> anyhow::Result<Page> {
    let page = Page::enter(&server.url, room, &format!("person{number}")).await?;
    let mut packets = packets.to_vec();
    let begin = number * 7 % packets.len();
    packets.rotate_left(begin);
    page.say(Say::Forever(packets))?;
    Ok(page)
}

/// Times, sorted.
struct Times(Vec<Duration>);

impl Times {
    const HEAD: &str = "| what | times | 50 %, ms | 95 %, ms | 99 %, ms | most, ms |\n| --- | ---: | ---: | ---: | ---: | ---: |";

    fn of(times: impl Iterator<Item = Duration>) -> Self {
        let mut times: Vec<_> = times.collect();
        times.sort_unstable();
        Self(times)
    }

    fn print(&self, what: &str) {
        let part = |part: f64| {
            let index = (self.0.len() as f64 * part).ceil() as usize;
            self.0.get(index.saturating_sub(1)).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
        };
        println!("| {what} | {} | {:.1} | {:.1} | {:.1} | {:.1} |", self.0.len(), part(0.5), part(0.95), part(0.99), part(1.0));
    }
}

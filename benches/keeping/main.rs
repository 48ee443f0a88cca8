//! The cost of storage.
//!
//! * Committing in groups, and message by message.
//! * Reading a channel back, by the length of its history and by the number of messages after its snapshot.
//!
//! `cargo bench --bench keeping -- [ROUNDS]`. The default is 3 rounds. Each round measures every variant once, so that other work of the machine
//! affects them alike. Everything is stored on the disk of the temporary folder.

mod appending;
mod recovering;
#[path = "../shared/system.rs"]
#[expect(dead_code, reason = "others use more of it")]
mod system;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let rounds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(3);
    appending::measure(rounds).await?;
    recovering::measure(rounds).await
}

/// The median, the minimum and the maximum.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let (middle, least, most) = (values[values.len() / 2], values[0], values[values.len() - 1]);
    let digits = if middle < 100.0 { 1 } else { 0 };
    format!("{middle:.digits$} ({least:.digits$} – {most:.digits$})")
}

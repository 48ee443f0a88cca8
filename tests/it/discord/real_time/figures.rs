//! Figures of trials.

use std::time::Duration;

/// The load of the machine, which figures of time depend on.
pub fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or_default().to_owned()
}

/// Times in milliseconds, as a line: how many, and the values that 50 %, 95 % and all do not exceed.
pub fn print(what: &str, times: impl IntoIterator<Item = Duration>) {
    let mut times: Vec<Duration> = times.into_iter().collect();
    times.sort_unstable();
    let part = |part: f64| {
        let index = (times.len() as f64 * part).ceil() as usize;
        times.get(index.saturating_sub(1)).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    };
    println!("{what}: {} times, 50 % {:.1} ms, 95 % {:.1} ms, most {:.1} ms", times.len(), part(0.5), part(0.95), part(1.0));
}

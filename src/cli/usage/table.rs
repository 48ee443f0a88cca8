//! Formats usage as a table for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

use indicatif::HumanCount;

use super::By;
use crate::domain::price::Cost;
use crate::ports::backend::usage::{Calls, Cap, GuildUsage, Safety, SafetyFigures, Speech, ToolCalls, ToolsBy, Usage, UsageBy};
use crate::telemetry::plain::Plain;

/// The cells of a line.
pub(super) type Row = Vec<String>;

/// The table, the caps and the notes.
pub(super) fn of(usage: &Usage, by: By) -> String {
    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = writeln!(out, "from {} to {}\n", usage.from, usage.to);
    if usage.guilds.is_empty() {
        let _ = writeln!(out, "Nothing was used.");
        return out;
    }
    // A guild has a number in the second column; other rows have a second name there.
    let first_number = if by == By::Guild { 1 } else { 2 };
    align(&rows(usage, by), first_number..8, &mut out);
    let speech = speech(usage);
    if !speech.is_empty() {
        let _ = writeln!(out, "\nspeech");
        align(&speech, 4..7, &mut out);
    }
    let tools = tools(usage);
    if !tools.is_empty() {
        let _ = writeln!(out, "\ntools");
        align(&tools, 3..5, &mut out);
    }
    let _ = writeln!(out, "\nusage of daily caps, last 24 hours");
    align(&usage.guilds.iter().flat_map(caps).collect::<Vec<_>>(), 2..3, &mut out);
    for note in notes(&usage.total.calls) {
        let _ = writeln!(out, "\n{note}");
    }
    out
}

/// The figures that laws require, one line for each guild and month.
pub(super) fn safety(figures: &SafetyFigures) -> String {
    let mut out = format!("from {} to {} (months in UTC)\n\n", figures.from, figures.to);
    let row = |guild: &str, month: &str, sums: &Safety| -> Row {
        let numbers = [sums.told.first, sums.told.day, sums.told.interval, sums.helped, sums.refused].map(grouped);
        [plain(guild), month.to_owned()].into_iter().chain(numbers).collect()
    };
    let head = ["guild", "month", "told first", "on another day", "after a while", "shown help", "refused"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(figures.months.iter().map(|month| row(month.guild.as_str(), &month.month, &month.sums)));
    rows.push(row("total", "", &figures.total));
    align(&rows, 2..head.len(), &mut out);
    out.push_str(
        "\ntold: people told that companions are AI, each time; shown help: messages whose authors were shown where to find help; refused: statements that the \
         moderation service refused\n",
    );
    out
}

fn rows(usage: &Usage, by: By) -> Vec<Row> {
    let head = ["calls", "no answer", "input tokens", "cached", "output tokens"].map(str::to_owned);
    let cost = [format!("cost ({})", usage.currency)];
    let mut rows = Vec::new();
    let titled = |titles: &[&str], more: &[String]| -> Row {
        titles.iter().map(|title| (*title).to_owned()).chain(more.iter().cloned()).chain(cost.clone()).collect()
    };
    if by == By::Guild {
        rows.push(titled(&["guild", "statements"], &head));
        for guild in &usage.guilds {
            rows.push(row([plain(guild.guild.as_str()), grouped(guild.used.statements)], &guild.used.calls));
        }
        rows.push(row(["total".to_owned(), grouped(usage.total.statements)], &usage.total.calls));
        return rows;
    }
    if by == By::Guest {
        rows.push(["guild", "guest (today, in UTC)", "messages", "seconds of voice", "tokens"].map(str::to_owned).to_vec());
        for guild in &usage.guilds {
            rows.extend(guild.guests.iter().map(|guest| {
                let numbers = [guest.messages, guest.voice_secs, guest.tokens].map(grouped);
                [plain(guild.guild.as_str()), plain(&guest.name)].into_iter().chain(numbers).collect()
            }));
        }
        return rows;
    }
    let title: &[&str] = match by {
        By::Companion => &["guild", "companion"],
        By::Model => &["model", "served by"],
        By::Guild | By::Guest | By::Role => &["role", ""],
    };
    rows.push(titled(title, &head));
    let mut sums: BTreeMap<[String; 2], Calls> = BTreeMap::new();
    for guild in &usage.guilds {
        for one in &guild.by {
            *sums.entry(named(guild, one, by)).or_default() += one.calls.clone();
        }
    }
    rows.extend(sums.into_iter().map(|(names, calls)| row(names, &calls)));
    rows.push(row(["total".to_owned(), String::new()], &usage.total.calls));
    rows
}

fn named(guild: &GuildUsage, one: &UsageBy, by: By) -> [String; 2] {
    match by {
        By::Companion => {
            let companion = one.companion.as_ref().map_or_else(|| "(rooms)".to_owned(), |companion| plain(companion.as_str()));
            [plain(guild.guild.as_str()), companion]
        }
        By::Model => [plain(&one.model), plain(&one.provider)],
        By::Guild | By::Guest | By::Role => {
            let what = match &*one.role {
                "side" => "decisions, summaries",
                "main" => "statements",
                _ => "",
            };
            [plain(&one.role), what.to_owned()]
        }
    }
}

fn row(names: [String; 2], calls: &Calls) -> Row {
    let usage = calls.usage;
    let [all, failed, read, written] = [calls.calls, calls.failed_calls, usage.input_tokens, usage.output_tokens].map(grouped);
    let cached = usage.cached_share().map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", share * 100.0));
    // What cost nothing beside calls without a price, such as those of `rehearsal`, says nothing about the cost.
    let known = calls.costs.cost.filter(|cost| calls.unpriced_calls == 0 || cost.as_units() > 0.0);
    let cost = known.map_or_else(|| "–".to_owned(), money);
    names.into_iter().chain([all, failed, read, cached, written, cost]).collect()
}

/// The usage of speech services, if there is any.
fn speech(usage: &Usage) -> Vec<Row> {
    let row = |[guild, who, what, provider]: [String; 4], speech: &Speech| -> Row {
        let heard = format!("{:.1}", Duration::from_millis(speech.recognised_ms).as_secs_f64());
        let cost = speech.costs.cost.map_or_else(|| "–".to_owned(), money);
        vec![guild, who, what, provider, heard, grouped(speech.characters), cost]
    };
    let mut rows = Vec::new();
    for guild in &usage.guilds {
        rows.extend(guild.speech_by.iter().map(|by| {
            let (who, what) = match &by.companion {
                Some(companion) => (plain(companion.as_str()), "spoke"),
                None => ("(people)".to_owned(), "were heard"),
            };
            row([plain(guild.guild.as_str()), who, what.to_owned(), plain(&by.provider)], &by.speech)
        }));
    }
    if !rows.is_empty() {
        let head = ["guild", "who", "", "served by", "seconds heard", "characters spoken"].map(str::to_owned);
        rows.insert(0, head.into_iter().chain([format!("cost ({})", usage.currency)]).collect());
        rows.push(row(["total", "", "", ""].map(str::to_owned), &usage.total.speech));
    }
    rows
}

/// The calls of tools from outside, if there are any.
fn tools(usage: &Usage) -> Vec<Row> {
    let row = |[guild, who, tool]: [String; 3], calls: &ToolCalls| -> Row {
        vec![guild, who, tool, grouped(calls.calls), calls.costs.cost.map_or_else(|| "–".to_owned(), money)]
    };
    let mut rows = Vec::new();
    for guild in &usage.guilds {
        let by = |by: &ToolsBy| row([guild.guild.as_str(), by.companion.as_str(), &by.tool].map(plain), &by.calls);
        rows.extend(guild.tools_by.iter().map(by));
    }
    if !rows.is_empty() {
        let head = ["guild", "companion", "tool", "calls"].map(str::to_owned);
        rows.insert(0, head.into_iter().chain([format!("cost ({})", usage.currency)]).collect());
        rows.push(row(["total", "", ""].map(str::to_owned), &usage.total.tools));
    }
    rows
}

fn caps(guild: &GuildUsage) -> Vec<Row> {
    let row = |cap: &Cap, what: &str| -> Row {
        let limit = cap.limit.map_or_else(|| "no limit".to_owned(), |limit| format!("of {}", grouped(limit)));
        let state = match cap.free_at {
            Some(free_at) if cap.is_used_up() => format!("used up, available again at {free_at}"),
            None if cap.is_used_up() => "none allowed".to_owned(),
            _ => String::new(),
        };
        vec![plain(guild.guild.as_str()), what.to_owned(), grouped(cap.used), limit, state]
    };
    let caps = &guild.caps;
    let others = [
        (&caps.tool_calls, "calls of tools"),
        (&caps.recognised_secs, "seconds heard"),
        (&caps.spoken_characters, "characters spoken"),
    ];
    let others = others.into_iter().filter_map(|(cap, what)| Some((cap.as_ref()?, what)));
    [(&caps.tokens, "tokens"), (&caps.statements, "statements")]
        .into_iter()
        .chain(others)
        .map(|(cap, what)| row(cap, what))
        .collect()
}

fn notes(total: &Calls) -> Vec<String> {
    let mut notes = Vec::new();
    let calls = |number: u64| if number == 1 { "1 call".to_owned() } else { format!("{} calls", grouped(number)) };
    if total.unpriced_calls > 0 {
        notes.push(format!(
            "{} without a recorded price, not included in the cost: set input_price and output_price of models.side and models.main for future \
             calls",
            calls(total.unpriced_calls)
        ));
    }
    if total.failed_calls > 0 {
        notes.push(format!("{} without an answer: their usage is not known", calls(total.failed_calls)));
    }
    if !total.costs.other_costs.is_empty() {
        let costs: Vec<_> =
            total.costs.other_costs.iter().map(|(currency, cost)| format!("{currency} {}", money(*cost))).collect();
        notes.push(format!("not included, because their prices were in another currency: {}", costs.join(", ")));
    }
    notes
}

/// Writes rows as aligned columns. The columns in `right` are right-aligned.
pub(super) fn align(rows: &[Row], right: Range<usize>, out: &mut String) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    for row in rows {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let width = widths[column];
            if right.contains(&column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

pub(super) fn plain(id: &str) -> String {
    Plain(id).to_string()
}

/// Formats 1234567 as 1,234,567.
pub(super) fn grouped(number: u64) -> String {
    HumanCount(number).to_string()
}

/// Formats a cost with four decimals. A smaller cost is `<0.0001`.
fn money(cost: Cost) -> String {
    let units = cost.as_units();
    if units > 0.0 && units < 0.000_1 {
        return "<0.0001".to_owned();
    }
    let text = format!("{units:.4}");
    let (whole, part) = text.split_once('.').unwrap_or((&text, "0"));
    whole.parse().map_or_else(|_| text.clone(), |whole| format!("{}.{part}", grouped(whole)))
}

#[cfg(test)]
mod tests;

//! The days that a question names: "yesterday", "on Monday", "three days ago", "3 May", "2026-05-03".

use std::collections::BTreeSet;

use jiff::ToSpan as _;
use jiff::civil::Date;

use super::topic::{Lists, Surface};

/// The days that are named, at most today. Without a year, the newest such day is meant.
pub(super) fn named(words: &[Surface], lists: &[&Lists], today: Date) -> BTreeSet<Date> {
    let mut days = BTreeSet::new();
    let ago = |days: i64| today.saturating_sub(days.days());
    for (at, Surface { plain: word, is_spaceless, .. }) in words.iter().enumerate() {
        let near = |distance: isize| at.checked_add_signed(distance).and_then(|at| words.get(at)).map_or("", |word| &*word.plain);
        for list in lists {
            let is_named = |name: &&str| match is_spaceless {
                true => word.contains(name),
                false => name.split('_').rev().enumerate().all(|(before, part)| near(-(before as isize)) == part),
            };
            // "The day before yesterday" is not yesterday.
            let back = list.relative.iter().rposition(|names| names.iter().any(is_named));
            days.extend(back.map(|back| ago(back as i64)));
            let place = |names: &[Vec<&str>]| names.iter().position(|names| names.iter().any(is_named));
            if let Some(weekday) = place(&list.weekdays) {
                let back = (i64::from(today.weekday().to_monday_zero_offset()) - weekday as i64 - 1).rem_euclid(7) + 1;
                days.insert(ago(back));
            }
            if let Some(month) = place(&list.months) {
                let day = [near(-1), near(-2), near(1)].into_iter().find_map(leading_number);
                let year = [near(1), near(2), near(3)].into_iter().filter_map(leading_number).find(|year| *year > 1_000);
                days.extend(day.and_then(|day| latest(year, month as i16 + 1, day, today)));
            }
            let is_ago = || [near(-2), near(-3), near(1)].iter().any(|word| list.ago.contains(word)) || word.ends_with('前');
            if list.days.contains(&**word) && is_ago() {
                let counted = list.numbers.iter().position(|number| *number == near(-1)).map(|place| place as i16 + 1);
                days.extend(counted.or_else(|| leading_number(near(-1))).map(|count| ago(count.into())));
            }
        }
        if word == "月" {
            days.extend(
                leading_number(near(-1)).zip(leading_number(near(1))).and_then(|(month, day)| latest(None, month, day, today)),
            );
        }
        // A date in digits, which is also given without its separators.
        if let (8, Ok(number)) = (word.len(), word.parse::<u32>()) {
            let (first, second, third) = (number / 10_000, number / 100 % 100, number % 100);
            let readings = [
                (first, second, third),
                (number % 10_000, number / 10_000 % 100, number / 1_000_000),
                (number % 10_000, number / 1_000_000, number / 10_000 % 100),
            ];
            days.extend(readings.into_iter().filter_map(|(year, month, day)| {
                latest(Some(year as i16).filter(|year| *year > 1_900), month as i16, day as i16, today)
            }));
        }
    }
    days.retain(|day| *day <= today);
    days
}

fn leading_number(word: &str) -> Option<i16> {
    word.split(|char: char| !char.is_ascii_digit()).next()?.parse().ok()
}

fn latest(year: Option<i16>, month: i16, day: i16, today: Date) -> Option<Date> {
    let (month, day) = (i8::try_from(month).ok()?, i8::try_from(day).ok()?);
    let in_year = |year| Date::new(year, month, day).ok();
    match year {
        Some(year) => in_year(year),
        None => in_year(today.year()).filter(|date| *date <= today).or_else(|| in_year(today.year() - 1)),
    }
}

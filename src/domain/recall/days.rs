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
            let is_named = |name: &str| match is_spaceless {
                true => word.contains(name),
                false => name.split('_').rev().enumerate().all(|(before, part)| near(-(before as isize)) == part),
            };
            let place = |names| list.place(names, is_named);
            // "The day before yesterday" is not yesterday.
            let back = ["day-0", "day-1", "day-2"].into_iter().rposition(|names| place(names).is_some());
            days.extend(back.map(|back| ago(back as i64)));
            if let Some(weekday) = place("weekdays") {
                days.insert(ago((i64::from(today.weekday().to_monday_zero_offset()) - weekday as i64 - 1).rem_euclid(7) + 1));
            }
            if let Some(month) = place("months") {
                let day = [near(-1), near(-2), near(1)].into_iter().find_map(leading_number);
                let year = [near(1), near(2), near(3)].into_iter().filter_map(leading_number).find(|year| *year > 1_000);
                days.extend(day.and_then(|day| latest(year, month as i16 + 1, day, today)));
            }
            let is_ago =
                || word.ends_with('前') || [-2, -3, 1].into_iter().any(|at| list.place("ago", |name| name == near(at)).is_some());
            if place("days").is_some() && is_ago() {
                let number = list.place("numbers", |number| number == near(-1)).map(|place| place as i16 + 1);
                days.extend(number.or_else(|| leading_number(near(-1))).map(|number| ago(number.into())));
            }
        }
        if word == "月" {
            days.extend(
                leading_number(near(-1)).zip(leading_number(near(1))).and_then(|(month, day)| latest(None, month, day, today)),
            );
        }
        // A date in digits: 20260503, 03052026 or 05032026. Its form with separators is given like that, too.
        if let (8, Ok(number)) = (word.len(), word.parse::<u32>()) {
            let [first, second, last, ending] = [number / 1_000_000, number / 10_000 % 100, number % 100, number % 10_000];
            let readings = [(number / 10_000, ending / 100, last), (ending, second, first), (ending, first, second)];
            let readings = readings.into_iter().filter(|(year, ..)| (1_900..2_200).contains(year));
            days.extend(readings.filter_map(|(year, month, day)| latest(Some(year as i16), month as i16, day as i16, today)));
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

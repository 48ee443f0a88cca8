use super::*;

fn scored(excerpt: usize, yes: bool, replied: bool) -> Scored {
    Scored { excerpt, kind: Kind::Neither, replied, yes, score: f64::from(u8::from(yes)) }
}

fn graded(score: f64, replied: bool) -> Scored {
    Scored { score, ..scored(0, score >= 0.5, replied) }
}

/// A table of 20 hits, 5 false alarms, 10 misses and 65 rejections.
fn table() -> Vec<Scored> {
    let cells = [(20, true, true), (5, true, false), (10, false, true), (65, false, false)];
    cells.into_iter().flat_map(|(count, yes, replied)| (0..count).map(move |n| scored(n % 2, yes, replied))).collect()
}

fn close(value: Option<f64>, expected: f64) -> bool {
    value.is_some_and(|value| (value - expected).abs() < 5e-4)
}

#[test]
fn the_figures_are_those_of_a_table_computed_by_hand() {
    let Figures { count, base_rate, said_yes, precision, recall, balanced_accuracy, mcc, pr_auc } = measure(&table()).all;

    assert_eq!((count, base_rate, said_yes, precision), (100, Some(0.3), Some(0.25), Some(0.8)));
    assert!(close(recall, 0.6667), "{recall:?}");
    // The mean of 20 of 30 and 65 of 70.
    assert!(close(balanced_accuracy, 0.7976), "{balanced_accuracy:?}");
    // (20 · 65 − 5 · 10) / √(25 · 30 · 70 · 75).
    assert!(close(mcc, 0.6299), "{mcc:?}");
    assert_eq!(pr_auc, None);
}

#[test]
fn figures_that_are_not_defined_are_absent() {
    let silent = measure(&[scored(0, false, true), scored(0, false, false)]).all;
    let nothing = measure(&[]).all;
    let no_replies = measure(&[scored(0, true, false)]).all;

    assert_eq!((silent.precision, silent.recall, silent.balanced_accuracy, silent.mcc), (None, Some(0.0), Some(0.5), Some(0.0)));
    assert_eq!(nothing, Figures::default());
    assert_eq!((no_replies.precision, no_replies.recall, no_replies.balanced_accuracy), (Some(0.0), None, None));
}

#[test]
fn average_precision_takes_equal_scores_at_once() {
    // The precisions at the replies are 1 of 1, and 3 of 4 for the two replies that share a score.
    let measured = measure(&[graded(0.9, true), graded(0.6, true), graded(0.6, false), graded(0.6, true), graded(0.1, false)]);

    assert!(close(measured.all.pr_auc, (1.0 + 0.75 + 0.75) / 3.0), "{measured:?}");
}

#[test]
fn intervals_hold_the_figure_are_the_same_each_time_and_need_two_excerpts() {
    let measured = measure(&table());
    let single: Vec<_> = table().iter().map(|scored| Scored { excerpt: 0, ..*scored }).collect();

    let Interval(low, high) = measured.interval["recall"];
    assert!(low <= 0.6667 && 0.6666 <= high && low < high + 1e-9, "{low} to {high}");
    assert_eq!(measured, measure(&table()));
    assert!(measure(&single).interval.is_empty());
}

#[test]
fn a_difference_is_paired_so_it_is_exact_where_each_excerpt_differs_by_the_same() {
    let worse: Vec<_> = (0..4).flat_map(|excerpt| [scored(excerpt, true, true), scored(excerpt, false, true)]).collect();
    let better: Vec<_> = worse.iter().map(|scored| Scored { yes: true, score: 1.0, ..*scored }).collect();

    let differences = differences(&worse, &better);

    assert_eq!(differences["recall"], Difference { by: 0.5, interval: Some(Interval(0.5, 0.5)) });
    assert_eq!(differences.get("balanced_accuracy"), None);
}

#[test]
fn each_kind_has_its_own_figures() {
    let addressed = Scored { kind: Kind::Addressed, ..scored(0, true, true) };

    let by_kind = measure(&[addressed, scored(0, true, false)]).by_kind;

    assert_eq!((by_kind[&Kind::Addressed].precision, by_kind[&Kind::Neither].precision), (Some(1.0), Some(0.0)));
    assert_eq!(by_kind[&Kind::Continuing].count, 0);
}

#[test]
fn the_curve_says_how_many_replies_are_kept_by_asking_less() {
    let addressed = Scored { kind: Kind::Addressed, ..graded(1.0, true) };
    let scored = [addressed, graded(0.9, true), graded(0.5, true), graded(0.5, false), graded(0.1, false)];

    let kept = measure(&scored).kept;

    assert_eq!(kept, [(0.0, 0.0), (0.25, 0.5), (0.75, 1.0), (1.0, 1.0)]);
    assert_eq!([0.0, 0.125, 0.25, 0.5, 1.0].map(|share| kept_at(&kept, share)), [0.0, 0.25, 0.5, 0.75, 1.0].map(Some));
    assert_eq!(kept_at(&[], 0.5), None);
}

#[test]
fn a_long_curve_is_thinned_and_keeps_its_ends() {
    let scored: Vec<_> = (0..2_000).map(|n| graded(f64::from(n) / 2_000.0, n % 3 == 0)).collect();

    let kept = measure(&scored).kept;

    assert_eq!((kept.len(), kept.first(), kept.last()), (500, Some(&(0.0, 0.0)), Some(&(1.0, 1.0))));
    assert!(kept.is_sorted());
}

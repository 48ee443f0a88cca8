//! Renders the report as a single HTML file with the table, and the curves as SVG. The page loads nothing and runs no script.

use std::fmt::Write as _;

use super::decisions::Kind;
use super::figures::{Figures, Interval};
use super::report::{Report, Row, SHARES, counted, shown};
use crate::domain::text::{in_html, is_invisible};

const STYLE: &str = "body{font:1rem/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;font-variant-numeric:tabular-nums}\
td,th,.range{white-space:nowrap}td,th{padding:.15rem .6rem;text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}\
tr.kind td{color:#555}tr.kind td:first-child{padding-left:1.6rem}.range{color:#666;font-size:.8rem;display:block}\
svg{max-width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:#444}pre{white-space:pre-wrap;overflow-wrap:anywhere}\
.scroll{overflow-x:auto}";

/// Colours that people with red-green colour blindness can distinguish (Okabe and Ito).
const COLOURS: [&str; 7] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"];

const LEFT: f64 = 50.0;
const TOP: f64 = 10.0;
const SIDE: f64 = 360.0;

/// The complete HTML.
pub fn page(report: &Report) -> String {
    let mut html = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    let text = escaped(&report.to_string());
    let parts = [
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n",
        &format!(
            "<title>Evaluation of decisions</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>Evaluation of decisions</h1>\n"
        ),
        &format!(
            "<p>{}, {} of them measured.</p>\n",
            counted(&[(report.excerpts, "excerpt"), (report.companions, "companion"), (report.decisions, "decision")]),
            report.measured
        ),
        &labels(report),
        &warnings(report),
        "<h2>Figures</h2>\n<div class=\"scroll\">\n",
        &table(&report.rows),
        "</div>\n<h2>Calls against replies kept</h2>\n<p>Unaddressed messages, the highest scores first: which share of the replies is kept if \
         only that share of the messages is asked about. A rule that only says YES or NO has one bend.</p>\n",
        &kept_chart(&report.rows),
        &kept_table(&report.rows),
        "<h2>Precision and recall by kind</h2>\n<p>● addressed, ■ continuing, ▲ neither</p>\n",
        &kinds_chart(&report.rows),
        "<h2>As text</h2>\n<pre>",
        &text,
        "</pre>\n</body>\n</html>\n",
    ];
    parts.into_iter().for_each(|part| html.push_str(part));
    html
}

/// What makes the figures doubtful.
fn warnings(report: &Report) -> String {
    report.warnings().map(|warning| format!("<p><strong>{}</strong></p>\n", escaped(&warning))).collect()
}

fn labels(report: &Report) -> String {
    let label = |(label, excerpts): (&super::excerpts::Label, &usize)| {
        let excerpts = counted(&[(*excerpts, "excerpt")]);
        format!("<p>Label <code>{}</code> ({excerpts}): {}.</p>\n", label.as_str(), label.sentence())
    };
    report.labels.iter().map(label).collect()
}

fn table(rows: &[Row]) -> String {
    let mut html = String::from("<table>\n<tr><th></th>");
    for title in ["count", "base rate", "YES", "precision", "recall", "balanced accuracy", "MCC", "PR-AUC"] {
        // Writing to a String does not fail.
        let _ = write!(html, "<th>{title}</th>");
    }
    html.push_str("</tr>\n");
    for row in rows {
        let range = |name: &str| {
            let interval = row.measured.interval.get(name);
            interval.map(|Interval(low, high)| format!("<span class=\"range\">{low:.3}–{high:.3}</span>")).unwrap_or_default()
        };
        let _ = write!(
            html,
            "<tr title=\"{}\"><td>{}</td>{}",
            escaped(&row.about),
            escaped(&row.name),
            cells(&row.measured.all, range)
        );
        html.push_str("</tr>\n");
        for kind in Kind::ALL {
            let _ =
                writeln!(html, "<tr class=\"kind\"><td>{}</td>{}</tr>", kind.as_str(), cells(&row.of(kind), |_| String::new()));
        }
    }
    html.push_str("</table>\n");
    html
}

fn cells(figures: &Figures, range: impl Fn(&str) -> String) -> String {
    let Figures { count, base_rate, said_yes, precision, recall, balanced_accuracy, mcc, pr_auc } = *figures;
    let mut html = format!("<td>{count}</td>");
    for (name, value) in [
        ("base_rate", base_rate),
        ("said_yes", said_yes),
        ("precision", precision),
        ("recall", recall),
        ("balanced_accuracy", balanced_accuracy),
        ("mcc", mcc),
        ("pr_auc", pr_auc),
    ] {
        let _ = write!(html, "<td>{}{}</td>", shown(value), range(name));
    }
    html
}

/// The rows whose curve has points between its ends, each with a colour.
fn with_curves(rows: &[Row]) -> impl Iterator<Item = (&Row, &'static str)> {
    rows.iter().zip(COLOURS.into_iter().cycle()).filter(|(row, _)| row.measured.kept.len() > 2)
}

fn kept_chart(rows: &[Row]) -> String {
    let mut svg = frame("share of the unaddressed messages asked about", "share of their replies kept", rows.len());
    for (place, (row, colour)) in with_curves(rows).enumerate() {
        let point = |(asked, kept): &(f64, f64)| format!("{:.1},{:.1}", x(*asked), y(*kept));
        let points = row.measured.kept.iter().map(point).collect::<Vec<_>>().join(" ");
        let _ = writeln!(svg, "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>");
        legend(&mut svg, place, &row.name, colour);
    }
    svg.push_str("</svg>\n");
    svg
}

fn kept_table(rows: &[Row]) -> String {
    let mut html = String::from("<table>\n<tr><th>messages asked about</th>");
    for share in SHARES {
        let _ = write!(html, "<th>{:.0} %</th>", share * 100.0);
    }
    html.push_str("</tr>\n");
    for (row, _) in with_curves(rows) {
        let _ = write!(html, "<tr><td>{}</td>", escaped(&row.name));
        for share in SHARES {
            let kept = super::figures::kept_at(&row.measured.kept, share);
            let _ = write!(html, "<td>{}</td>", kept.map_or_else(|| "-".to_owned(), |kept| format!("{:.0} %", kept * 100.0)));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table>\n");
    html
}

fn kinds_chart(rows: &[Row]) -> String {
    let mut svg = frame("recall", "precision", rows.len());
    for (place, (row, colour)) in rows.iter().zip(COLOURS.into_iter().cycle()).enumerate() {
        for (kind, mark) in Kind::ALL.into_iter().zip(["●", "■", "▲"]) {
            let figures = row.of(kind);
            if let (Some(recall), Some(precision)) = (figures.recall, figures.precision) {
                let _ = writeln!(
                    svg,
                    "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" style=\"fill:{colour}\">{mark}<title>{} {}: precision {precision:.3}, \
                     recall {recall:.3}</title></text>",
                    x(recall),
                    y(precision) + 4.0,
                    escaped(&row.name),
                    kind.as_str()
                );
            }
        }
        legend(&mut svg, place, &row.name, colour);
    }
    svg.push_str("</svg>\n");
    svg
}

fn x(share: f64) -> f64 {
    LEFT + SIDE * share
}

fn y(share: f64) -> f64 {
    TOP + SIDE * (1.0 - share)
}

/// The axes of a chart from 0 to 1.
fn frame(across: &str, up: &str, rows: usize) -> String {
    let (width, height) = (LEFT + SIDE + 260.0, (TOP + SIDE + 45.0).max(TOP + 20.0 * rows as f64));
    let mut svg = format!("<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n");
    let _ = writeln!(svg, "<title>{up} against {across}</title>");
    for step in 0..=5 {
        let share = f64::from(step) / 5.0;
        let (bottom, right) = (y(0.0), x(1.0));
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {0:.1}H{right}M{1:.1} {TOP}V{bottom}\" stroke=\"#ddd\" fill=\"none\"/>",
            y(share),
            x(share)
        );
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{share:.1}</text>", LEFT - 6.0, y(share) + 4.0);
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{share:.1}</text>", x(share), bottom + 16.0);
    }
    let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{across}</text>", x(0.5), y(0.0) + 36.0);
    let _ = writeln!(svg, "<text transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">{up}</text>", y(0.5));
    svg
}

fn legend(svg: &mut String, place: usize, name: &str, colour: &str) {
    let top = TOP + 20.0 * place as f64;
    let left = x(1.0) + 20.0;
    let _ = writeln!(svg, "<rect x=\"{left}\" y=\"{top}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>");
    let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\">{}</text>", left + 18.0, top + 11.0, escaped(name));
}

/// Escapes a text for HTML, and replaces invisible and control characters.
fn escaped(text: &str) -> String {
    in_html(&text.replace(|char: char| char != '\n' && (char.is_control() || is_invisible(char)), "\u{fffd}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::evaluation::figures::{Scored, measure};

    #[test]
    fn the_page_has_the_table_and_the_curves_and_nothing_that_runs_or_loads() {
        let scored = |n: usize| {
            let (kind, score) = (Kind::ALL[n % 3], n as f64 / 12.0);
            Scored { excerpt: n % 4, kind, replied: n > 6, yes: n > 5, score }
        };
        let measured = measure(&(0..12).map(scored).collect::<Vec<_>>());
        let row = Row { name: "<script>alert(1)</script>".to_owned(), about: "\"a\"".to_owned(), is_rule: false, measured };
        let report = Report {
            excerpts: 4,
            companions: 4,
            decisions: 12,
            measured: 12,
            labels: BTreeMap::new(),
            rows: vec![row],
            asked: Vec::new(),
            comparison: None,
        };

        let html = page(&report);

        assert!(!html.contains("<script") && !html.contains("http:") && !html.contains("https:"), "{html}");
        assert!(
            html.contains("&lt;script&gt;") && html.contains("<polyline") && html.contains("title=\"&quot;a&quot;\""),
            "{html}"
        );
        assert_eq!(html.matches("</svg>").count(), 2);
        assert!(html.contains("class=\"range\""), "{html}");
    }
}

//! `strftime_now`: the time as Python's strftime writes it in the C locale, in UTC.

use crate::boundary::{Error, Result};
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const SECONDS_PER_DAY: i64 = 86_400;
/// Years 1 to 9999, as in Python.
const RANGE: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// A moment, in seconds since 1970.
#[derive(Clone, Copy)]
pub struct Clock(i64);

struct Date {
    year: i64,
    /// From 0.
    month: usize,
    /// From 1.
    day: i64,
    /// From 0.
    day_of_year: i64,
    weekday: usize,
}

impl Clock {
    /// `now` is the context's `__now`, if it has one; else the system's clock is asked.
    pub fn of(now: Option<&serde_json::Value>) -> Result<Self> {
        let Some(now) = now else {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            return Ok(Clock(since.as_secs() as i64));
        };
        let seconds = now.as_i64().or_else(|| now.as_f64().map(|s| s.floor() as i64));
        match seconds {
            Some(s) if RANGE.contains(&s) => Ok(Clock(s)),
            _ => Err(Error::invalid("__now is not a number of seconds in the years 1 to 9999")),
        }
    }

    /// Days to a date by eras of 400 years that begin in March, so that a leap day ends its year.
    fn date(self) -> Date {
        let days = self.0.div_euclid(SECONDS_PER_DAY);
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let from_march = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * from_march + 2) / 153;
        let day = from_march - (153 * march_month + 2) / 5 + 1;
        let month = (march_month + 2) % 12;
        let year = year_of_era + era * 400 + i64::from(month < 2);
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let day_of_year = if month < 2 { from_march - 306 } else { from_march + 59 + i64::from(leap) };
        Date { year, month: month as usize, day, day_of_year, weekday: (days + 4).rem_euclid(7) as usize }
    }

    pub fn format(self, format: &str) -> String {
        let (date, second) = (self.date(), self.0.rem_euclid(SECONDS_PER_DAY));
        let mut out = String::with_capacity(format.len() * 2);
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            match chars.next() {
                // glibc: no padding.
                Some('-') => {
                    let mut field = String::new();
                    self.field(chars.next(), &date, second, &mut field);
                    let bare = field.trim_start_matches(['0', ' ']);
                    out.push_str(if bare.is_empty() { "0" } else { bare });
                }
                letter => self.field(letter, &date, second, &mut out),
            }
        }
        out
    }

    fn field(self, letter: Option<char>, d: &Date, second: i64, out: &mut String) {
        let (hour, minute) = (second / 3600, second / 60 % 60);
        let twelve = (hour + 11) % 12 + 1;
        // Writing to a String cannot fail.
        let _ = match letter {
            Some('Y') => write!(out, "{:04}", d.year),
            Some('y') => write!(out, "{:02}", d.year % 100),
            Some('C') => write!(out, "{:02}", d.year / 100),
            Some('m') => write!(out, "{:02}", d.month + 1),
            Some('B') => write!(out, "{}", MONTHS[d.month]),
            Some('b' | 'h') => write!(out, "{}", &MONTHS[d.month][..3]),
            Some('d') => write!(out, "{:02}", d.day),
            Some('e') => write!(out, "{:2}", d.day),
            Some('j') => write!(out, "{:03}", d.day_of_year + 1),
            Some('A') => write!(out, "{}", DAYS[d.weekday]),
            Some('a') => write!(out, "{}", &DAYS[d.weekday][..3]),
            Some('w') => write!(out, "{}", d.weekday),
            Some('u') => write!(out, "{}", if d.weekday == 0 { 7 } else { d.weekday }),
            Some('H') => write!(out, "{hour:02}"),
            Some('I') => write!(out, "{twelve:02}"),
            Some('M') => write!(out, "{minute:02}"),
            Some('S') => write!(out, "{:02}", second % 60),
            Some('f') => write!(out, "000000"),
            Some('p') => write!(out, "{}", if hour < 12 { "AM" } else { "PM" }),
            Some('s') => write!(out, "{}", self.0),
            // Python's datetime.now() has no zone.
            Some('Z' | 'z') => Ok(()),
            Some('F') => write!(out, "{}", self.format("%Y-%m-%d")),
            Some('T' | 'X') => write!(out, "{}", self.format("%H:%M:%S")),
            Some('R') => write!(out, "{}", self.format("%H:%M")),
            Some('D' | 'x') => write!(out, "{}", self.format("%m/%d/%y")),
            Some('c') => write!(out, "{}", self.format("%a %b %e %H:%M:%S %Y")),
            Some('n') => write!(out, "\n"),
            Some('t') => write!(out, "\t"),
            Some('%') => write!(out, "%"),
            Some(other) => write!(out, "%{other}"),
            None => write!(out, "%"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_as_python_writes_them() {
        let all = "%Y-%m-%d %H:%M:%S %j %a %A %b %B %y %I %p %-d %e %%";
        let cases = [
            (0, "1970-01-01 00:00:00 001 Thu Thursday Jan January 70 12 AM 1  1 %"),
            (951_827_696, "2000-02-29 12:34:56 060 Tue Tuesday Feb February 00 12 PM 29 29 %"),
            (1_735_689_599, "2024-12-31 23:59:59 366 Tue Tuesday Dec December 24 11 PM 31 31 %"),
            (4_107_542_400, "2100-03-01 00:00:00 060 Mon Monday Mar March 00 12 AM 1  1 %"),
            (-1, "1969-12-31 23:59:59 365 Wed Wednesday Dec December 69 11 PM 31 31 %"),
        ];
        for (seconds, want) in cases {
            assert_eq!(Clock(seconds).format(all), want);
        }
        assert!(Clock::of(Some(&serde_json::json!("today"))).is_err());
        assert!(Clock::of(Some(&serde_json::json!(1e300))).is_err());
    }
}
